// SPDX-License-Identifier: GPL-3.0-or-later
#include "size.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

struct unit {
	const char *name;
	uint64_t factor;
};

static const struct unit size_units[] = {
	{ "K", 1ULL << 10 }, { "M", 1ULL << 20 }, { "G", 1ULL << 30 },
	{ "T", 1ULL << 40 }, { "P", 1ULL << 50 },
};

static const struct unit time_units[] = {
	{ "ns", 1 },
	{ "us", 1000 },
	{ "ms", 1000 * 1000 },
	{ "s", 1000ULL * 1000 * 1000 },
	{ "m", 60 * 1000ULL * 1000 * 1000 },
	{ "h", 3600 * 1000ULL * 1000 * 1000 },
	{ "d", 86400 * 1000ULL * 1000 * 1000 },
};

/* Decimal places that count; more are read and do not matter (10^-9 of a PiB is a megabyte, of a
 * GiB a byte). */
#define FRACTION_MAX 15

struct decimal {
	uint64_t whole;
	uint64_t frac, scale; /* frac / scale */
	bool has_fraction;
};

static int decimal_parse(const char **text, struct decimal *out)
{
	const char *s = *text;

	*out = (struct decimal){ .scale = 1 };
	if (!isdigit((unsigned char)*s))
		return -EINVAL;
	for (; isdigit((unsigned char)*s); s++) {
		if (__builtin_mul_overflow(out->whole, 10, &out->whole) ||
		    __builtin_add_overflow(out->whole, (uint64_t)(*s - '0'), &out->whole))
			return -ERANGE;
	}
	if (*s == '.') {
		if (!isdigit((unsigned char)*++s))
			return -EINVAL;
		out->has_fraction = true;
		for (int n = 0; isdigit((unsigned char)*s); s++, n++) {
			if (n >= FRACTION_MAX)
				continue;
			out->frac = out->frac * 10 + (uint64_t)(*s - '0');
			out->scale *= 10;
		}
	}
	*text = s;
	return 0;
}

/* value * factor, rounded down. */
static int decimal_scale(const struct decimal *v, uint64_t factor, uint64_t *out)
{
	unsigned __int128 part = (unsigned __int128)v->frac * factor / v->scale;
	unsigned __int128 sum = (unsigned __int128)v->whole * factor + part;

	if (sum > UINT64_MAX)
		return -ERANGE;
	*out = (uint64_t)sum;
	return 0;
}

/* The factor of a size unit, 0 if text is none. */
static uint64_t size_unit(const char *text)
{
	if (!strcasecmp(text, "B"))
		return 1;
	for (size_t i = 0; i < sizeof(size_units) / sizeof(size_units[0]); i++) {
		const char *rest = text + 1;

		if (strncasecmp(text, size_units[i].name, 1) != 0)
			continue;
		if (!*rest || !strcasecmp(rest, "B") || !strcasecmp(rest, "i") ||
		    !strcasecmp(rest, "iB"))
			return size_units[i].factor;
	}
	return 0;
}

int size_parse(const char *text, uint64_t *bytes)
{
	struct decimal v;
	uint64_t factor;
	int rc = decimal_parse(&text, &v);

	if (rc < 0)
		return rc;
	if (!*text) {
		if (v.has_fraction)
			return -EINVAL;
		*bytes = v.whole;
		return 0;
	}
	if (*text == ' ')
		text++;
	factor = size_unit(text);
	if (!factor || (factor == 1 && v.has_fraction))
		return -EINVAL;
	return decimal_scale(&v, factor, bytes);
}

int time_parse(const char *text, uint64_t *ns)
{
	struct decimal v;
	int rc = decimal_parse(&text, &v);

	if (rc < 0)
		return rc;
	if (!*text)
		text = "s";
	else if (*text == ' ')
		text++;
	for (size_t i = 0; i < sizeof(time_units) / sizeof(time_units[0]); i++)
		if (!strcmp(text, time_units[i].name))
			return decimal_scale(&v, time_units[i].factor, ns);
	return -EINVAL;
}

int size_parse_arg(const char *what, const char *text, uint64_t *bytes, struct diag *d)
{
	int rc = size_parse(text, bytes);

	if (rc == -ERANGE)
		return diag_fail(d, rc, HM_USAGE, "bad-size", "sizes go up to 16 EiB",
				 "%s: %.64s is too large", what, text);
	if (rc < 0)
		return diag_fail(d, rc, HM_USAGE, "bad-size",
				 "write bytes, or a number with K, M, G or T: 4096, 512M, 1.5G",
				 "%s: '%.64s' is not a size", what, text);
	return 0;
}

int time_parse_arg(const char *what, const char *text, uint64_t *ns, struct diag *d)
{
	int rc = time_parse(text, ns);

	if (rc == -ERANGE)
		return diag_fail(d, rc, HM_USAGE, "bad-time", "times go up to 500 years",
				 "%s: %.64s is too long", what, text);
	if (rc < 0)
		return diag_fail(d, rc, HM_USAGE, "bad-time",
				 "write a number with us, ms, s, m, h or d: 500us, 2s, 10m",
				 "%s: '%.64s' is not a time", what, text);
	return 0;
}

static const char *format_scaled(uint64_t bytes, const char *sign, int gib_places, char *buf)
{
	static const char *const names[] = { "B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB" };
	double v = (double)bytes;
	size_t u = 0;

	/* 1023.95 would round up to "1024.0": the next unit shows it as 1.0. */
	while (u + 1 < sizeof(names) / sizeof(names[0]) && v >= (u ? 1023.95 : 1024.0)) {
		v /= 1024.0;
		u++;
	}
	if (u == 0)
		snprintf(buf, SIZE_TEXT, "%s%" PRIu64 " B", bytes ? sign : "", bytes);
	else
		snprintf(buf, SIZE_TEXT, "%s%.*f %s", sign, u >= 3 ? gib_places : 1, v, names[u]);
	return buf;
}

const char *size_format(uint64_t bytes, char buf[SIZE_TEXT])
{
	return format_scaled(bytes, "", 1, buf);
}

const char *size_format_fine(uint64_t bytes, char buf[SIZE_TEXT])
{
	return format_scaled(bytes, "", 2, buf);
}

const char *size_format_delta(int64_t bytes, char buf[SIZE_TEXT])
{
	/* 0 - x is defined also for the most negative number. */
	uint64_t size = bytes < 0 ? 0 - (uint64_t)bytes : (uint64_t)bytes;

	return format_scaled(size, bytes < 0 ? "-" : "+", 2, buf);
}

const char *time_format(uint64_t ns, char buf[SIZE_TEXT])
{
	double us = (double)ns / 1e3, s = (double)ns / 1e9;

	if (us < 99.5)
		snprintf(buf, SIZE_TEXT, "%.0f us", us);
	else if (us < 9950)
		snprintf(buf, SIZE_TEXT, "%.1f ms", us / 1e3);
	else if (us < 999500)
		snprintf(buf, SIZE_TEXT, "%.0f ms", us / 1e3);
	else if (s < 120)
		snprintf(buf, SIZE_TEXT, "%.1f s", s);
	else if (s < 7200)
		snprintf(buf, SIZE_TEXT, "%.1f m", s / 60);
	else
		snprintf(buf, SIZE_TEXT, "%.1f h", s / 3600);
	return buf;
}
