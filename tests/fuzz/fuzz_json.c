// SPDX-License-Identifier: GPL-3.0-or-later
/* What a target's names and texts become on the way out: valid JSON, and nothing that drives a
 * terminal. */
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "../../repl/sink.h"
#include "fuzz.h"

const char fuzz_name[] = "json";

/* UTF-8 without control characters, neither those of ASCII nor C1. */
static void terminal_safe(const char *text, size_t len, bool newlines)
{
	const unsigned char *s = (const unsigned char *)text;

	while (len) {
		size_t n = utf8_length(s, len);

		FUZZ_CHECK(n > 0);
		FUZZ_CHECK(s[0] != 0x7f && (s[0] >= 0x20 || (newlines && s[0] == '\n')));
		FUZZ_CHECK(n != 2 || s[0] != 0xc2 || s[1] >= 0xa0);
		s += n;
		len -= n;
	}
}

static void envelope(struct sink *s, const char *text, size_t size)
{
	struct diag d;
	struct envelope e = { .time = { .tv_sec = (time_t)size },
			      .pid = 1,
			      .comm = text,
			      .command = text,
			      .exit = size % 2 ? HM_CALL_FAILED : HM_OK,
			      .d = &d };

	diag_fail(&d, -1, HM_CALL_FAILED, "code", text, "%s", text);
	e.result = json_object();
	FUZZ_CHECK(json_object_set_new(e.result, "text", json_text(text, size)) == 0);
	FUZZ_CHECK(json_object_set_new(e.result, "n", json_u64((uint64_t)-1 - size)) == 0);
	FUZZ_CHECK(sink_envelope(s, &e) == 0);
	json_decref(e.result);
	sink_error(s, text, &d);
}

static void table(struct sink *s, const char *text)
{
	static const struct column columns[] = { { "NAME", false }, { "N", true } };
	const char *cells[2] = { text, text };
	struct table *t = table_new(columns, 2);

	FUZZ_CHECK(t != NULL);
	table_row(t, cells);
	FUZZ_CHECK(table_print(t, s) == 0);
	table_free(t);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = fuzz_text(data, size), *out = NULL, *err = NULL, *plain = NULL, *rows = NULL;
	size_t out_len, err_len, plain_len, rows_len;
	struct sink s = { .out = open_memstream(&out, &out_len),
			  .err = open_memstream(&err, &err_len) };
	struct sink t = { .out = open_memstream(&rows, &rows_len) };
	FILE *p = open_memstream(&plain, &plain_len);
	json_error_t why;
	json_t *back;

	FUZZ_CHECK(s.out && s.err && t.out && p);
	envelope(&s, text, size);
	sink_text(p, text, size);
	table(&t, text);
	fclose(s.out), fclose(s.err), fclose(t.out), fclose(p);
	back = json_loadb(out, out_len, JSON_ALLOW_NUL, &why);
	FUZZ_CHECK(back && json_is_object(json_object_get(back, "result")));
	json_decref(back);
	terminal_safe(out, out_len, true);
	FUZZ_CHECK(memchr(out, '\n', out_len) == out + out_len - 1);
	terminal_safe(err, err_len, true);
	fuzz_printable(plain, plain_len, "\n\t");
	free(out), free(err), free(plain), free(rows), free(text);
	return 0;
}
