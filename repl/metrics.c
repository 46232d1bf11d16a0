// SPDX-License-Identifier: GPL-3.0-or-later
#include "metrics.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

struct metrics_of {
	pid_t pid;
	char comm[64];
	struct facts facts;
};

int metrics_add(struct metrics *m, pid_t pid, const char *comm, const struct facts *f)
{
	struct metrics_of *grown = m->v, *of;
	size_t i = 0;

	/* a process has one sample of each: the later one, where it was looked at twice */
	while (i < m->n && m->v[i].pid != pid)
		i++;
	if (i == m->n)
		grown = realloc(m->v, (m->n + 1) * sizeof(*grown));
	if (!grown)
		return -ENOMEM;
	m->v = grown;
	m->n += i == m->n;
	of = &m->v[i];
	*of = (struct metrics_of){ .pid = pid, .facts = *f };
	snprintf(of->comm, sizeof(of->comm), "%s", comm);
	return 0;
}

void metrics_free(struct metrics *m)
{
	free(m->v);
	*m = (struct metrics){ 0 };
}

static void family_name(const struct fact_info *info, char buf[64])
{
	snprintf(buf, 64, "heapmedic_%s%s", info->name,
		 info->kind == KIND_COUNTER ? "_total"
		 : info->kind == KIND_TEXT  ? "_info"
					    : "");
	for (char *p = buf; *p; p++)
		if (*p == '.')
			*p = '_';
}

void metrics_label(FILE *out, const char *text)
{
	for (; *text; text++) {
		if (*text == '\\' || *text == '"')
			putc('\\', out);
		if (*text == '\n')
			fputs("\\n", out);
		else
			putc(*text, out);
	}
}

void metrics_head(FILE *out, const char *name, const char *type, const char *help)
{
	fprintf(out, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}

static void put_sample(FILE *out, const char *name, const struct fact_info *info,
		       const struct metrics_of *of, const struct fact *v)
{
	fprintf(out, "%s{pid=\"%d\",comm=\"", name, (int)of->pid);
	metrics_label(out, of->comm);
	if (info->kind == KIND_TEXT) {
		fputs("\",text=\"", out);
		metrics_label(out, v->text);
	}
	fputs("\"} ", out);
	if (info->kind == KIND_FRACTION)
		fprintf(out, "%.6g\n", v->fraction);
	else
		fprintf(out, "%" PRIu64 "\n", info->kind == KIND_TEXT ? 1 : v->n);
}

static void put_family(const struct metrics *m, enum fact_id id, FILE *out)
{
	const struct fact_info *info = fact_info(id);
	char name[64];
	bool begun = false;

	family_name(info, name);
	for (size_t i = 0; i < m->n; i++) {
		const struct fact *v = &m->v[i].facts.v[id];

		if (!v->known)
			continue;
		if (!begun)
			metrics_head(out, name, info->kind == KIND_COUNTER ? "counter" : "gauge",
				     info->meaning);
		begun = true;
		put_sample(out, name, info, &m->v[i], v);
	}
}

void metrics_write(const struct metrics *m, FILE *out)
{
	for (unsigned id = 0; id < FACT_COUNT; id++)
		put_family(m, (enum fact_id)id, out);
}
