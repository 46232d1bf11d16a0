// SPDX-License-Identifier: GPL-3.0-or-later
/* Names, values and replies of mallctl, values of mallopt; the first line is the name. */
#include <stdlib.h>
#include <string.h>

#include "../../agent/ctl_error.h"
#include "../../agent/ctl_path.h"
#include "../../agent/ctl_rule.h"
#include "../../agent/glibc_file.h"
#include "../../agent/jemalloc_signs.h"
#include "../../agent/jemalloc_stats.h"
#include "../../agent/mallctl.h"
#include "../../agent/mallopt.h"
#include "../../inject/status.h"
#include "fuzz.h"

const char fuzz_name[] = "mallctl";

static void one_type(const struct ctl_name *row, const char *value)
{
	struct ctl_value v, back;
	unsigned char raw[8];
	char text[1100];
	struct diag d;

	diag_clear(&d);
	if (ctl_value_parse(row, value, &v, &d)) {
		fuzz_diag(&d);
		return;
	}
	ctl_value_format(&v, text, sizeof(text));
	if (ctl_value_encode(&v, raw))
		return;
	FUZZ_CHECK(ctl_value_decode(row->type, raw, &back) == 0);
	FUZZ_CHECK(back.type == v.type && back.u == v.u);
	if (ctl_check_value(row, &v, &d))
		fuzz_diag(&d);
}

/* What a name is made of can be put together again. */
static void indices(const struct ctl_name *row, const char *name)
{
	uint64_t index[CTL_INDICES] = { 0 };
	struct ctl_path path;
	char again[160];
	struct diag d;

	diag_clear(&d);
	if (ctl_path_parse(row, name, &path))
		return;
	for (unsigned i = 0; i < path.n; i++) {
		FUZZ_CHECK(path.index[i].value <= UINT32_MAX);
		index[i] = path.index[i].value;
		if (ctl_path_check(&path, i, name, 9, &d))
			fuzz_diag(&d);
	}
	if (ctl_path_name(&path, index, again, sizeof(again)) == 0)
		FUZZ_CHECK(ctl_find(again) == row);
}

static void rules(const char *name, const char *rest, int rc)
{
	const struct ctl_name *row = ctl_find(name);
	struct ctl_build b = { 0 };
	const char *near[8];
	struct diag d;

	diag_clear(&d);
	/* slow with all of its comparisons traced, so not each time */
	if (strlen(rest) % 16 == 3) {
		FUZZ_CHECK(ctl_suggest(name, near, 8) <= 8);
		FUZZ_CHECK(ctl_unknown(name, &d) < 0);
		fuzz_diag(&d);
	}
	if (!row) {
		name = "arena.0.dirty_decay_ms";
		row = ctl_find(name);
	}
	for (unsigned f = 0; f < CTL_FACTS; f++)
		b.fact[f] = (enum ctl_answer)((unsigned char)rest[0] >> f % 4 & 1);
	escape_copy(b.version, sizeof(b.version), rest, strlen(rest));
	for (int write = 0; write < 2; write++) {
		if (ctl_check(row, name, write, &d))
			fuzz_diag(&d);
		FUZZ_CHECK(ctl_error(row, name, &b, write, rc, &d) < 0);
		fuzz_diag(&d);
	}
	indices(row, name);
}

static void parts(const char *text)
{
	char opts[16] = "J";
	struct diag d;

	diag_clear(&d);
	if (stats_omit(text, 0x050201, opts, sizeof(opts), &d))
		fuzz_diag(&d);
	FUZZ_CHECK(strlen(opts) < sizeof(opts));
	diag_clear(&d);
	if (stats_letters(text, &d))
		fuzz_diag(&d);
}

static void values(const char *text)
{
	struct ctl_name row = { .ctype = "x", .condition = "" };
	const struct mallopt_fact *fact;
	struct diag d;
	size_t n;
	long v;

	for (int type = CTL_VOID; type <= CTL_OTHER; type++) {
		row.type = (enum ctl_type)type;
		row.name = type == CTL_BOOL ? "background_thread" : "thread.idle";
		one_type(&row, text);
	}
	fact = mallopt_table(&n);
	for (size_t i = 0; i < n; i++) {
		diag_clear(&d);
		if (mallopt_value_parse(&fact[i], text, &v, &d))
			fuzz_diag(&d);
		else
			FUZZ_CHECK(v >= fact[i].min && v <= fact[i].max);
	}
	(void)!mallopt_find(text);
	parts(text);
}

static void replies(const uint8_t *data, size_t size)
{
	struct glibc_file_args args = { .buf = 0x1000, .len = 64, .fd = size % 2 ? 1 : -1 };
	unsigned char file[GLIBC_FILE_SIZE] = { 0 };
	struct glibc_file_state st;
	struct ctl_value v;
	unsigned char raw[8] = { 0 };
	bool cut;

	memcpy(raw, data, size < 8 ? size : 8);
	for (int type = CTL_VOID; type <= CTL_OTHER; type++)
		(void)!ctl_value_decode((enum ctl_type)type, raw, &v);
	memcpy(file, data, size < sizeof(file) ? size : sizeof(file));
	glibc_file_inspect(file, &st);
	FUZZ_CHECK(glibc_file_used(file, &args, &cut) <= args.len);
	(void)!glibc_file_build(file, &args);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = fuzz_text(data, size), *eol = strchr(text, '\n'), version[24];
	const char *rest = eol ? eol + 1 : "";
	struct jemalloc_signs signs = { 0 };

	if (eol)
		*eol = '\0';
	rules(text, rest, (int)(size % 64) - 2);
	values(text);
	values(rest);
	replies(data, size);
	ctl_version(text);
	jemalloc_version_shorten(text, version, sizeof(version));
	(void)!jemalloc_version_find((const char *)data, size, version, sizeof(version));
	jemalloc_signs_add((const char *)data, size, &signs);
	FUZZ_CHECK(strlen(signs.prefix) < sizeof(signs.prefix));
	free(text);
	return 0;
}
