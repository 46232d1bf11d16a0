// SPDX-License-Identifier: GPL-3.0-or-later
/* A file that is said to be a snapshot: compressed, or (what begins with no gzip header) its text.
 */
#include <stdlib.h>
#include <string.h>

#include "../../agent/diff.h"
#include "../../agent/snapshot.h"
#include "fuzz.h"

const char fuzz_name[] = "snapshot";

static void printable(const char *text)
{
	if (text)
		fuzz_printable(text, strlen(text), "");
}

/* What commands print without a further look at it. */
static void check_texts(const struct snapshot *s)
{
	const struct look *l = &s->look;

	printable(s->comm), printable(s->host), printable(s->kernel), printable(s->version);
	printable(l->summary), printable(l->cgroup.path), printable(l->jemalloc_unasked);
	printable(l->tcmalloc.unasked), printable(l->mimalloc.unasked);
	printable(l->glibc_unread.text), printable(s->no_arenas.text);
	for (size_t i = 0; i < l->advice.n; i++)
		printable(l->advice.v[i].text);
	for (size_t i = 0; i < s->allocs.n; i++)
		printable(s->allocs.v[i].version), printable(s->allocs.v[i].ops->name);
	for (size_t i = 0; i < s->threads.n; i++) {
		char state[2] = { s->threads.v[i].t.state, '\0' };

		printable(s->threads.v[i].t.name), printable(state);
		printable(s->threads.v[i].t.reason);
	}
	for (size_t i = 0; i < l->memory.owners.n; i++)
		printable(l->memory.owners.v[i].kind);
	for (unsigned i = 0; i < FACT_COUNT; i++)
		printable(l->facts.v[i].text);
}

static void check_rows(const struct memory *m)
{
	struct owner_table t;
	uint64_t sum = 0;

	FUZZ_CHECK(owners_table(&m->owners, &t) == 0);
	for (size_t i = 0; i < t.n; i++)
		sum += t.v[i].a.resident;
	FUZZ_CHECK(sum == m->owners.total.resident);
	FUZZ_CHECK((int64_t)sum + m->remainder == (int64_t)m->usage.rss);
	owner_table_free(&t);
}

/* Written and read again it is the same: by its bytes, as nothing of it is in no member. */
static void check_again(const struct snapshot *s)
{
	unsigned char *bytes, *again;
	size_t len, len2;
	struct snapshot back;
	struct diff f;
	struct diag d;

	FUZZ_CHECK(snapshot_encode(s, &bytes, &len) == 0);
	FUZZ_CHECK(snapshot_decode(bytes, len, "again", &back, &d) == 0);
	FUZZ_CHECK(snapshot_encode(&back, &again, &len2) == 0);
	FUZZ_CHECK(len == len2 && memcmp(bytes, again, len) == 0);
	FUZZ_CHECK(diff_make(s, &back, &f) == 0);
	FUZZ_CHECK(f.same && f.growth == GROWTH_NONE && f.total.delta == 0);
	for (size_t i = 0; i < f.rows; i++)
		FUZZ_CHECK(f.row[i].delta == 0);
	diff_free(&f);
	snapshot_free(&back);
	free(bytes);
	free(again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct snapshot s;
	struct diag d;
	int err;

	diag_clear(&d);
	err = size && data[0] == 0x1f ? snapshot_decode(data, size, "file", &s, &d)
				      : snapshot_parse((const char *)data, size, "file", &s, &d);
	if (err) {
		FUZZ_CHECK(err < 0 && d.exit == HM_USAGE);
		fuzz_diag(&d);
		return 0;
	}
	check_texts(&s);
	check_rows(&s.look.memory);
	check_again(&s);
	snapshot_free(&s);
	return 0;
}
