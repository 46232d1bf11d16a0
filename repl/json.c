// SPDX-License-Identifier: GPL-3.0-or-later
#include "sink.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

size_t utf8_length(const unsigned char *s, size_t left)
{
	size_t len = s[0] < 0x80		   ? 1
		     : s[0] >= 0xc2 && s[0] < 0xe0 ? 2
		     : s[0] >= 0xe0 && s[0] < 0xf0 ? 3
		     : s[0] >= 0xf0 && s[0] < 0xf5 ? 4
						   : 0;

	if (len == 0 || len > left)
		return 0;
	for (size_t i = 1; i < len; i++)
		if ((s[i] & 0xc0) != 0x80)
			return 0;
	if ((s[0] == 0xe0 && s[1] < 0xa0) || (s[0] == 0xed && s[1] >= 0xa0) ||
	    (s[0] == 0xf0 && s[1] < 0x90) || (s[0] == 0xf4 && s[1] >= 0x90))
		return 0;
	return len;
}

json_t *json_text(const char *text, size_t len)
{
	const unsigned char *s = (const unsigned char *)text;
	char *clean;
	size_t used = 0;
	json_t *out;

	clean = malloc(len * 3 + 1);
	if (!clean)
		return NULL;
	for (size_t i = 0; i < len;) {
		size_t n = utf8_length(s + i, len - i);

		memcpy(clean + used, n ? (const char *)s + i : "\xef\xbf\xbd", n ? n : 3);
		used += n ? n : 3;
		i += n ? n : 1;
	}
	out = json_stringn_nocheck(clean, used);
	free(clean);
	return out;
}

json_t *json_u64(uint64_t v)
{
	return v <= INT64_MAX ? json_integer((json_int_t)v) : json_real((double)v);
}

static json_t *error_json(const struct diag *d)
{
	json_t *o = json_object();

	if (json_object_set_new(o, "code", json_text(d->code, strlen(d->code))) ||
	    json_object_set_new(o, "text", json_text(d->text, strlen(d->text))) ||
	    json_object_set_new(o, "hint", json_text(d->hint, strlen(d->hint)))) {
		json_decref(o);
		return NULL;
	}
	return o;
}

json_t *json_time(const struct timespec *t)
{
	char day[64], text[96];
	struct tm tm;

	if (!gmtime_r(&t->tv_sec, &tm))
		return NULL;
	strftime(day, sizeof(day), "%Y-%m-%dT%H:%M:%S", &tm);
	snprintf(text, sizeof(text), "%s.%03ldZ", day, t->tv_nsec / 1000000);
	return json_string(text);
}

static json_t *text_or_null(const char *text)
{
	return text ? json_text(text, strlen(text)) : json_null();
}

json_t *envelope_json(const struct envelope *e)
{
	json_t *o = json_object();
	bool ok = e->exit == HM_OK;

	if (json_object_set_new(o, "schema", json_string("heapmedic/1")) ||
	    json_object_set_new(o, "time", json_time(&e->time)) ||
	    json_object_set_new(o, "pid", e->pid > 0 ? json_integer(e->pid) : json_null()) ||
	    json_object_set_new(o, "comm", text_or_null(e->comm)) ||
	    json_object_set_new(o, "command", text_or_null(e->command)) ||
	    json_object_set_new(o, "ok", json_boolean(ok)) ||
	    json_object_set_new(o, "exit", json_integer(e->exit)) ||
	    json_object_set_new(o, "result", e->result ? json_incref(e->result) : json_object()) ||
	    json_object_set_new(o, "warnings",
				e->warnings ? json_incref(e->warnings) : json_array()) ||
	    json_object_set_new(o, "error", ok || !e->d ? json_null() : error_json(e->d))) {
		json_decref(o);
		return NULL;
	}
	return o;
}

/*
 * What jansson leaves as it is although a terminal obeys it (ECMA-48): DEL, and the C1 control
 * characters, which in UTF-8 are 0xc2 and the byte of the same number. Both stand in strings only.
 */
static bool is_control(const char *s)
{
	const unsigned char *u = (const unsigned char *)s;

	return u[0] == 0x7f || (u[0] == 0xc2 && u[1] >= 0x80 && u[1] < 0xa0);
}

char *json_line(const json_t *o)
{
	char *text = o ? json_dumps(o, JSON_COMPACT) : NULL, *out, *w;
	size_t controls = 0;

	for (const char *s = text; s && *s; s++)
		controls += is_control(s);
	if (!controls)
		return text;
	w = out = malloc(strlen(text) + controls * 5 + 1);
	for (const char *s = text; out && *s; s++) {
		if (is_control(s)) {
			w += sprintf(w, "\\u%04X", (unsigned char)(*s == 0x7f ? s[0] : s[1]));
			s += *s != 0x7f;
		} else {
			*w++ = *s;
		}
	}
	if (out)
		*w = '\0';
	free(text);
	return out;
}

int sink_envelope(struct sink *s, const struct envelope *e)
{
	json_t *o = envelope_json(e);
	char *text = json_line(o);

	json_decref(o);
	if (!text)
		return -ENOMEM;
	fprintf(s->out, "%s\n", text);
	free(text);
	return 0;
}
