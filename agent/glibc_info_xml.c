// SPDX-License-Identifier: GPL-3.0-or-later
#include "glibc_info_xml.h"

#include <errno.h>
#include <expat.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "glibc_stats.h"

#define WRAP	  (1ULL << 32)
#define DEPTH_MAX 8 /* malloc_info nests four deep */
/* Of one tag; the longest of malloc_info has four numbers. expat starts a tag that is not complete
 * anew with each piece that it is given. */
#define TAG_MAX ((size_t)1024)

/* What is being read: the arena between <heap> and </heap>, the totals after the last one. */
struct reader {
	XML_Parser x;
	struct glibc_info *out;
	struct info_arena arena, printed; /* free: "rest" as printed, without fast */
	struct info_arena sum;		  /* of the arenas as printed */
	uint64_t flag_bytes;		  /* flag bits in the sizes of the bin rows */
	uint64_t bin_count;		  /* chunks in the bin rows */
	unsigned depth;
	bool in_heap, has_system, done, refused;
	int error; /* -errno that ended it */
};

static void stop(struct reader *r, int error)
{
	if (!r->error)
		r->error = error;
	XML_StopParser(r->x, XML_FALSE);
}

static const char *attribute(const char **attr, const char *name)
{
	for (; *attr; attr += 2)
		if (!strcmp(attr[0], name))
			return attr[1];
	return NULL;
}

/* A decimal attribute; absent or not a number: the input is damaged here. */
static uint64_t count(struct reader *r, const char **attr, const char *name)
{
	const char *s = attribute(attr, name);
	char *end;
	unsigned long long v;

	if (!s || *s < '0' || *s > '9') {
		stop(r, -EBADMSG);
		return 0;
	}
	errno = 0;
	v = strtoull(s, &end, 10);
	if (errno || end[strspn(end, " ")] != '\0')
		stop(r, -EBADMSG);
	return v;
}

/*
 * The flags in a row: all of its n chunks have a neighbour in use before them (1); one that a
 * thread arena has split off may lack the mark of those (4). Where all are of one size, the rest is
 * flags; else as many as can be: sizes are multiples of 16, so that the sum of the flags is known
 * to 16.
 */
static uint64_t row_flags(uint64_t from, uint64_t to, uint64_t total, uint64_t n)
{
	uint64_t each = from & ~(uint64_t)7, bits = (from | to) & 7, most = n * bits, sum, odd;

	if (each == (to & ~(uint64_t)7) && !__builtin_mul_overflow(each, n, &sum) && sum <= total &&
	    total - sum <= most)
		return total - sum;
	odd = (most - total) & 15;
	return odd <= most - n ? most - odd : most;
}

/*
 * <size from to total count/> and <unsorted .../>. In rows of bins from, to and total are sums of
 * raw size fields, whose low three bits are flags; rows of fast bins have the exact size in "to".
 */
static void row_read(struct reader *r, const char **attr)
{
	uint64_t n = count(r, attr, "count"), to = count(r, attr, "to");

	if (!(to & 7) || n > UINT64_MAX / 8)
		return;
	r->bin_count = info_add(r->bin_count, n);
	r->flag_bytes = info_add(r->flag_bytes,
				 row_flags(count(r, attr, "from"), to, count(r, attr, "total"), n));
}

static void total_read(struct reader *r, struct info_arena *a, const char *type, const char **attr)
{
	if (!strcmp(type, "fast")) {
		a->fast = count(r, attr, "size");
		a->fast_count = count(r, attr, "count");
	} else if (!strcmp(type, "rest")) {
		a->free = count(r, attr, "size");
		a->free_count = count(r, attr, "count");
	} else if (!strcmp(type, "mmap") && !r->in_heap) {
		r->out->mmapped = count(r, attr, "size");
		r->out->mmapped_count = count(r, attr, "count");
	}
}

static void size_read(struct reader *r, struct info_arena *a, const char *element, const char *type,
		      const char **attr)
{
	bool system = !strcmp(element, "system");
	uint64_t v = count(r, attr, "size");

	if (system && !strcmp(type, "current")) {
		a->system = v;
		r->has_system = true;
		r->out->has_total |= !r->in_heap;
	} else if (system && !strcmp(type, "max")) {
		a->max = v;
	} else if (!system && !strcmp(type, "total")) {
		a->aspace = v;
	} else if (!system && !strcmp(type, "mprotect")) {
		a->mprotect = v;
	} else if (!system && !strcmp(type, "subheaps")) {
		a->subheaps = v > UINT_MAX ? UINT_MAX : (unsigned)v;
	}
}

static void heap_start(struct reader *r, const char **attr)
{
	uint64_t nr = count(r, attr, "nr");

	if (r->in_heap || nr > UINT_MAX) {
		stop(r, -EBADMSG);
		return;
	}
	r->arena = (struct info_arena){ .index = (unsigned)nr };
	r->flag_bytes = r->bin_count = 0;
	r->has_system = false;
	r->in_heap = true;
}

static void XMLCALL on_start(void *arg, const char *element, const char **attr)
{
	struct reader *r = arg;
	struct info_arena *a = r->in_heap ? &r->arena : &r->printed;
	const char *type;

	if (++r->depth > DEPTH_MAX) {
		stop(r, -EBADMSG);
		return;
	}
	if (!strcmp(element, "heap"))
		heap_start(r, attr);
	else if (r->in_heap && (!strcmp(element, "size") || !strcmp(element, "unsorted")))
		row_read(r, attr);
	type = attribute(attr, "type");
	if (!type)
		return;
	if (!strcmp(element, "total"))
		total_read(r, a, type, attr);
	else if (!strcmp(element, "system") || !strcmp(element, "aspace"))
		size_read(r, a, element, type, attr);
}

/* Values that glibc keeps equal (a main arena's address space and its system bytes) prove a wrap.
 */
static uint64_t unwrap(uint64_t v, uint64_t equal, unsigned *flags)
{
	if (equal <= v || (equal - v) % WRAP)
		return v;
	*flags |= INFO_WRAPPED;
	return equal;
}

static void in_use_set(struct info_arena *a)
{
	a->flags &= ~(unsigned)INFO_FREE_OVER_SYSTEM;
	if (a->free > a->system)
		a->flags |= INFO_FREE_OVER_SYSTEM;
	a->in_use = a->free > a->system ? 0 : a->system - a->free;
}

/*
 * Since 2.31 "rest" counts the top chunk of each arena beside the chunks in its bins. Where it
 * counts no more than the bins hold, top is in no row.
 */
static void heap_end(struct reader *r)
{
	struct info_arena *a = &r->arena;
	int rc;

	if (!r->has_system) {
		stop(r, -EBADMSG);
		return;
	}
	info_arena_add(&r->sum, a);
	if (a->free_count == r->bin_count && a->system)
		a->flags |= INFO_TOP_IN_USE;
	if (a->free > r->flag_bytes)
		a->free -= r->flag_bytes;
	a->free = info_add(a->free, a->fast);
	a->free_count = info_add(a->free_count, a->fast_count);
	a->system = unwrap(a->system, a->aspace, &a->flags);
	a->max = unwrap(a->max, a->system, &a->flags);
	in_use_set(a);
	rc = glibc_info_add(r->out, a);
	if (rc < 0)
		stop(r, rc);
	r->in_heap = false;
}

static void XMLCALL on_end(void *arg, const char *element)
{
	struct reader *r = arg;

	r->depth--;
	if (r->in_heap && !strcmp(element, "heap")) {
		heap_end(r);
	} else if (!strcmp(element, "malloc")) {
		r->done = true;
		XML_StopParser(r->x, XML_FALSE); /* what follows is not ours */
	}
}

static void XMLCALL on_doctype(void *arg, const char *name, const char *sysid, const char *pubid,
			       int internal)
{
	struct reader *r = arg;

	(void)name, (void)sysid, (void)pubid, (void)internal;
	r->refused = true;
	stop(r, -EBADMSG);
}

static void XMLCALL on_entity(void *arg, const char *name, int parameter, const char *text, int len,
			      const char *base, const char *sysid, const char *pubid,
			      const char *notation)
{
	(void)parameter, (void)text, (void)len, (void)base, (void)notation;
	on_doctype(arg, name, sysid, pubid, 0);
}

/* Does an element of malloc_info start at s (after '<' and perhaps '/')? */
static bool known_name(const char *s, const char *end)
{
	static const char *const names[] = { "malloc", "heap",	 "sizes",  "size",
					     "total",  "system", "aspace", "unsorted" };

	if (s < end && *s == '/')
		s++;
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		size_t n = strlen(names[i]);

		if ((size_t)(end - s) > n && !memcmp(s, names[i], n) && strchr(" />\t\n\r", s[n]))
			return true;
	}
	return false;
}

/* The same for a tag that is complete. */
static bool known_tag(const char *s, const char *end)
{
	size_t left = (size_t)(end - s);

	return known_name(s, end) && memchr(s, '>', left < TAG_MAX ? left : TAG_MAX);
}

/*
 * Blanks what a log has put between the elements (stray '<' and '&', bytes that are not printable
 * ASCII: malloc_info has none), and undoes the backslashes of a JSON string. Line ends stay, so
 * that line numbers do. Returns the new length.
 */
static size_t clean(char *text, size_t len)
{
	const char *s = text, *end = text + len;
	char *to = text;

	for (; s < end; s++) {
		if (*s == '\\') {
			if (s + 1 < end && s[1] && strchr("ntr", s[1]))
				s++;
			else if (s + 1 < end && s[1] == '"')
				continue;
			*to++ = ' ';
		} else if (*s == '&' || (*s == '<' && !known_tag(s + 1, end)) ||
			   (*s != '\n' && (*s < ' ' || *s > '~'))) {
			*to++ = ' ';
		} else {
			*to++ = *s;
		}
	}
	return (size_t)(to - text);
}

/* Where an arena had wrapped and the printed total had not, their difference is what it lost. */
static bool arena_undo(struct glibc_info *o, uint64_t lost)
{
	struct info_arena *suspect = NULL;

	for (size_t i = 0; i < o->arenas; i++) {
		if (!(o->arena[i].flags & INFO_FREE_OVER_SYSTEM))
			continue;
		if (suspect)
			return false;
		suspect = &o->arena[i];
	}
	if (!suspect)
		return false;
	suspect->system += lost;
	suspect->flags |= INFO_WRAPPED;
	in_use_set(suspect);
	return true;
}

/* malloc_info adds up the very numbers it prints, so its totals are the sums of its arenas. */
static void total_check(struct reader *r)
{
	struct glibc_info *o = r->out;
	uint64_t printed = r->printed.system, sum = r->sum.system;

	if (printed != sum && (printed - sum) % WRAP == 0) {
		o->total.flags |= INFO_WRAPPED;
		if (printed > sum && !arena_undo(o, printed - sum))
			o->total.flags |= INFO_TOTAL_DIFFERS;
	} else if (printed != sum) {
		o->total.flags |= INFO_TOTAL_DIFFERS;
	}
	if (r->printed.free != r->sum.free || r->printed.fast != r->sum.fast)
		o->total.flags |= INFO_TOTAL_DIFFERS;
}

static void total_finish(struct reader *r)
{
	struct glibc_info *o = r->out;

	/* Totals that the text did not reach the end of are not used. */
	if (!r->done)
		o->total.flags |= INFO_CUT;
	if (o->has_total && r->done)
		total_check(r);
	else
		o->has_total = false;
	glibc_info_sum(o);
	for (size_t i = 0; i < o->arenas; i++)
		o->total.flags |= o->arena[i].flags;
}

static int reader_open(struct reader *r)
{
	r->x = XML_ParserCreate("US-ASCII");
	if (!r->x)
		return -ENOMEM;
	XML_SetUserData(r->x, r);
	XML_SetElementHandler(r->x, on_start, on_end);
	XML_SetStartDoctypeDeclHandler(r->x, on_doctype);
	XML_SetEntityDeclHandler(r->x, on_entity);
	return 0;
}

/* Feeds text until its end, </malloc>, or the first damage. */
static int reader_run(struct reader *r, const char *text, size_t len)
{
	while (len) {
		int n = len > (1 << 20) ? 1 << 20 : (int)len;

		if (XML_Parse(r->x, text, n, 0) != XML_STATUS_OK) {
			if (XML_GetErrorCode(r->x) == XML_ERROR_NO_MEMORY)
				return -ENOMEM;
			break;
		}
		text += n;
		len -= (size_t)n;
	}
	return r->error == -ENOMEM ? -ENOMEM : 0;
}

/* The first "<malloc" that is the element. */
static const char *malloc_start(const char *text, size_t len)
{
	const char *end = text + len;

	for (const char *s = text; (s = memmem(s, (size_t)(end - s), "<malloc", 7)); s += 7)
		if (known_name(s + 1, end))
			return s;
	return NULL;
}

static int no_info(struct diag *d, const char *why, unsigned long line)
{
	return diag_fail(d, -EINVAL, HM_CALL_FAILED, "bad-malloc-info",
			 "it wants the output of malloc_info(3) or malloc_stats(3)", "line %lu: %s",
			 line, why);
}

static unsigned long line_of(const char *text, const char *at)
{
	unsigned long n = 1;

	for (; text < at; text++)
		n += *text == '\n';
	return n;
}

static int xml_parse(const char *text, size_t len, struct glibc_info *out, unsigned long line,
		     struct diag *d)
{
	struct reader r = { .out = out };
	char *copy = malloc(len);
	int rc = -ENOMEM;

	if (!copy)
		return diag_internal(d, rc, "malloc_info");
	memcpy(copy, text, len);
	len = clean(copy, len);
	rc = reader_open(&r);
	if (!rc)
		rc = reader_run(&r, copy, len);
	if (rc < 0)
		diag_internal(d, rc, "malloc_info");
	else if (r.refused)
		rc = no_info(d, "a document type is declared: refused", line);
	else if (!out->arenas)
		rc = no_info(d, "no complete <heap> element follows",
			     line + XML_GetCurrentLineNumber(r.x) - 1);
	else
		total_finish(&r);
	if (r.x)
		XML_ParserFree(r.x);
	free(copy);
	return rc;
}

int glibc_info_parse(const char *text, size_t len, struct glibc_info *out, struct diag *d)
{
	const char *start = malloc_start(text, len);
	const char *bad = memmem(text, len, "<!DOCTYPE", 9);
	int rc;

	*out = (struct glibc_info){ 0 };
	if (!bad)
		bad = memmem(text, len, "<!ENTITY", 8);
	if (bad)
		return no_info(d, "a document type or entity is declared: refused",
			       line_of(text, bad));
	if (!start) {
		rc = glibc_stats_parse(text, len, out);
		if (rc == -ENOENT)
			return no_info(d, "no <malloc> element and no malloc_stats text up to here",
				       line_of(text, text + len));
		return rc < 0 ? diag_internal(d, rc, "malloc_stats") : 0;
	}
	rc = xml_parse(start, len - (size_t)(start - text), out, line_of(text, start), d);
	if (rc < 0)
		glibc_info_free(out);
	return rc;
}
