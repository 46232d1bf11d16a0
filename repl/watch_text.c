// SPDX-License-Identifier: GPL-3.0-or-later
#include "watch_text.h"

#include <inttypes.h>
#include <string.h>

#include "sink.h"

enum watch_column {
	COL_TIME,
	COL_RSS,
	COL_SWAP,
	COL_LIVE,
	COL_RETAINED,
	COL_FAULTS,
	COL_FAULTED, /* these three only after a trim */
	COL_BACK,
	COL_BACK_RATE,
	COL_GROWTH,
	COLS
};

static const struct {
	const char *title;
	int width, raw; /* of sizes, and of the same in bytes */
} columns[COLS] = {
	[COL_TIME] = { "TIME", -8, -8 },	  [COL_RSS] = { "RSS", 10, 14 },
	[COL_SWAP] = { "SWAP", 10, 14 },	  [COL_LIVE] = { "LIVE", 11, 15 },
	[COL_RETAINED] = { "RETAINED", 11, 15 },  [COL_FAULTS] = { "FAULTS/S", 8, 8 },
	[COL_FAULTED] = { "FAULTED", 11, 15 },	  [COL_BACK] = { "BACK", 15, 19 },
	[COL_BACK_RATE] = { "BACK/MIN", 10, 14 }, [COL_GROWTH] = { "GROWTH", 0, 0 },
};

#define CELL_TEXT (SIZE_TEXT + 32)

static bool is_shown(enum watch_column i, const struct watch_style *s)
{
	return s->after || i < COL_FAULTED || i > COL_BACK_RATE;
}

static void put(FILE *out, const struct watch_style *s, enum watch_column i, const char *text)
{
	if (is_shown(i, s))
		fprintf(out, "%s%*s%s", i == COL_TIME ? "" : "  ",
			s->raw ? columns[i].raw : columns[i].width, text,
			i == COL_GROWTH ? "\n" : "");
}

void watch_print_header(FILE *out, const struct watch_style *s)
{
	for (enum watch_column i = COL_TIME; i < COLS; i++)
		put(out, s, i, columns[i].title);
}

/* "~" marks what is older than its line. */
static const char *part(char buf[CELL_TEXT], const struct watch_line *l, uint64_t bytes, bool raw)
{
	char size[SIZE_TEXT];

	if (!l->looked || !l->look.divided)
		return "-";
	snprintf(buf, CELL_TEXT, "%s%s", l->older ? "~" : "", text_size(size, bytes, raw));
	return buf;
}

static const char *growth_cell(char buf[CELL_TEXT], const struct watch_line *l, bool raw)
{
	char size[SIZE_TEXT];

	if (l->growth == GROWTH_NONE)
		return "none";
	/* that it has grown is of this line in any case */
	snprintf(buf, CELL_TEXT, "%s%s %s", l->older && l->growth != GROWTH_UNKNOWN ? "~" : "",
		 growth_name(l->growth), text_delta(size, (int64_t)l->grown, raw));
	return buf;
}

static const char *back_cell(char buf[CELL_TEXT], const struct after_trim *a, bool raw)
{
	char size[SIZE_TEXT];

	snprintf(buf, CELL_TEXT, "%s %3.0f%%", text_size(size, a->back, raw), a->back_share * 100);
	return buf;
}

void watch_print(FILE *out, const struct watch_style *s, const char *time,
		 const struct watch_line *l)
{
	const struct usage *u = &l->now.usage;
	char buf[CELL_TEXT], size[SIZE_TEXT], rate[32] = "-";

	if (l->rate_known)
		snprintf(rate, sizeof(rate), "%.0f", l->rate);
	put(out, s, COL_TIME, time);
	put(out, s, COL_RSS, text_size(size, u->rss, s->raw));
	put(out, s, COL_SWAP, text_size(size, u->swap, s->raw));
	put(out, s, COL_LIVE, part(buf, l, l->look.live, s->raw));
	put(out, s, COL_RETAINED, part(buf, l, l->look.retained, s->raw));
	put(out, s, COL_FAULTS, rate);
	put(out, s, COL_FAULTED, text_size(size, l->trim.faulted, s->raw));
	put(out, s, COL_BACK, back_cell(buf, &l->trim, s->raw));
	put(out, s, COL_BACK_RATE, text_size(size, (uint64_t)l->trim.per_minute, s->raw));
	put(out, s, COL_GROWTH, growth_cell(buf, l, s->raw));
}

/* ---- JSON */

json_t *growth_json(enum growth g)
{
	return g == GROWTH_UNKNOWN ? json_null() : json_string(growth_name(g));
}

json_t *after_trim_json(struct reply *r, const struct trim_mark *mark, const struct after_trim *a)
{
	char text[AFTER_TRIM_TEXT];
	json_t *o;

	if (!mark->made)
		return json_null();
	o = json_object();
	reply_member(r, o, "seconds", json_real(a->seconds));
	reply_member(r, o, "returned_bytes", json_u64(mark->returned));
	reply_member(r, o, "back_bytes", json_u64(a->back));
	reply_member(r, o, "back_bytes_per_minute", json_u64((uint64_t)a->per_minute));
	reply_member(r, o, "minflt", json_u64(a->faults));
	reply_member(r, o, "minflt_per_second", json_real(a->rate));
	reply_member(r, o, "minflt_per_second_before",
		     mark->rate_known ? json_real(mark->rate) : json_null());
	reply_member(r, o, "faulted_bytes_at_most", json_u64(a->faulted));
	reply_member(r, o, "worth", json_string(trim_worth_name(after_trim_judge(mark, a, text))));
	reply_member(r, o, "text", json_text(text, strlen(text)));
	return o;
}

json_t *watch_json(struct reply *r, const struct watch_line *l, const struct trim_mark *mark)
{
	bool divided = l->looked && l->look.divided;
	json_t *o = json_object();

	reply_member(r, o, "rss_bytes", json_u64(l->now.usage.rss));
	reply_member(r, o, "swap_bytes", json_u64(l->now.usage.swap));
	reply_member(r, o, "live_bytes", divided ? json_u64(l->look.live) : json_null());
	reply_member(r, o, "retained_bytes", divided ? json_u64(l->look.retained) : json_null());
	reply_member(r, o, "other_bytes", divided ? json_u64(l->look.other) : json_null());
	reply_member(r, o, "age_seconds", divided ? json_real(l->age) : json_null());
	reply_member(r, o, "minflt", json_u64(l->now.minflt));
	reply_member(r, o, "minflt_per_second", l->rate_known ? json_real(l->rate) : json_null());
	reply_member(r, o, "growth", growth_json(l->growth));
	reply_member(r, o, "growth_bytes", json_u64(l->grown));
	reply_member(r, o, "text", json_text(l->text, strlen(l->text)));
	reply_member(r, o, "after_trim", after_trim_json(r, mark, &l->trim));
	return o;
}
