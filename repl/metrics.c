// SPDX-License-Identifier: GPL-3.0-or-later
#include "metrics.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "../agent/outfile.h"

struct metrics_of {
	pid_t pid;
	char comm[64];
	struct timespec when;
	struct facts facts;
};

int metrics_add(struct metrics *m, pid_t pid, const char *comm, const struct facts *f,
		const struct timespec *when)
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
	*of = (struct metrics_of){ .pid = pid, .facts = *f, .when = *when };
	snprintf(of->comm, sizeof(of->comm), "%s", comm);
	return 0;
}

void metrics_free(struct metrics *m)
{
	free(m->v);
	free(m->output);
	*m = (struct metrics){ 0 };
}

void metrics_name(enum fact_id id, char buf[64])
{
	const struct fact_info *info = fact_info(id);

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

static void begin_sample(FILE *out, const char *name, const struct metrics_of *of)
{
	fprintf(out, "%s{pid=\"%d\",comm=\"", name, (int)of->pid);
	metrics_label(out, of->comm);
}

static void put_sample(FILE *out, const char *name, const struct fact_info *info,
		       const struct metrics_of *of, const struct fact *v)
{
	begin_sample(out, name, of);
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

	metrics_name(id, name);
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
	if (m->n)
		metrics_head(out, METRICS_TIME, "gauge", "when it was looked at");
	for (size_t i = 0; i < m->n; i++) {
		begin_sample(out, METRICS_TIME, &m->v[i]);
		fprintf(out, "\"} %lld.%03ld\n", (long long)m->v[i].when.tv_sec,
			m->v[i].when.tv_nsec / 1000000);
	}
}

/* ---- into a file */

static bool is_metrics(const unsigned char *head, size_t n)
{
	static const char begin[] = "# HELP heapmedic_";

	return n >= sizeof(begin) - 1 && memcmp(head, begin, sizeof(begin) - 1) == 0;
}

static const struct outfile_kind metrics_kind = { "file of heapmedic's metrics", is_metrics, true };

int metrics_for(struct metrics *m, const char *path, bool force, struct diag *d)
{
	if (m->output && strcmp(m->output, path) != 0)
		return diag_fail(d, -EINVAL, HM_USAGE, "usage", "name one file",
				 "the metrics of several processes stand in one file, two are "
				 "named");
	if (!m->output)
		m->output = strdup(path);
	m->force |= force;
	return m->output ? 0 : diag_internal(d, -ENOMEM, "the metrics");
}

int metrics_save(const struct metrics *m, bool dry_run, struct diag *d)
{
	char *text = NULL;
	size_t len = 0;
	FILE *f;
	int err;

	if (dry_run)
		return outfile_check(m->output, &metrics_kind, m->force, d);
	f = open_memstream(&text, &len);
	if (!f)
		return diag_internal(d, -errno, "the metrics");
	metrics_write(m, f);
	err = ferror(f) ? -ENOMEM : 0;
	if (fclose(f))
		err = -ENOMEM;
	if (err)
		err = diag_internal(d, err, "the metrics");
	else
		err = outfile_save(m->output, text, len, &metrics_kind, m->force, d);
	free(text);
	return err;
}
