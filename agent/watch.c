// SPDX-License-Identifier: GPL-3.0-or-later
#include "watch.h"

#include <stdio.h>
#include <string.h>

static double seconds(uint64_t from, uint64_t to)
{
	return to > from ? (double)(to - from) / 1e9 : 0;
}

void watch_begin(struct watch *w, uint64_t every)
{
	*w = (struct watch){ .every = every };
}

void watch_anew(struct watch *w)
{
	w->begun = w->looked = w->fresh = false;
	w->pace.done = false;
}

bool watch_due(const struct watch *w, uint64_t now)
{
	return pace_due(&w->pace, now, w->every);
}

void watch_looked(struct watch *w, uint64_t at, uint64_t cost, const struct makeup *m,
		  const struct facts *f)
{
	pace_done(&w->pace, at, cost);
	growth_sample_of(m, f, (double)at / 1e9, &w->look);
	if (!w->looked)
		w->first_look = w->look;
	w->looked = w->fresh = true;
	w->looks++;
}

void watch_not_looked(struct watch *w, uint64_t at, uint64_t cost)
{
	pace_done(&w->pace, at, cost);
}

/* Of what it is, the last look tells; that it is, the line itself. */
static void find_growth(const struct watch *w, const struct growth_sample *now,
			struct watch_line *out)
{
	uint64_t before = w->first.rss + w->first.swap, after = now->rss + now->swap;
	char text[GROWTH_TEXT];
	enum growth of;

	out->growth = growth_of(&w->first, now, out->text);
	if (w->looked && (w->fresh || out->growth != GROWTH_NONE)) {
		of = growth_of(&w->first_look, &w->look, text);
		/* it may have grown since that look */
		if (w->fresh || of != GROWTH_NONE) {
			out->growth = of;
			memcpy(out->text, text, sizeof(text));
		}
	}
	if (out->growth != GROWTH_NONE && after > before)
		out->grown = after - before;
}

void watch_next(struct watch *w, const struct watch_reading *r, const struct trim_mark *mark,
		struct watch_line *out)
{
	struct growth_sample now = {
		.at = (double)r->at / 1e9,
		.rss = r->usage.rss,
		.swap = r->usage.swap,
		.minflt = r->minflt,
	};

	*out = (struct watch_line){ .now = *r, .looked = w->looked };
	if (!w->begun) {
		w->first = now;
		w->began_at = r->at;
		w->first_minflt = r->minflt;
	} else if (r->at > w->at && r->minflt >= w->minflt) {
		out->rate_known = true;
		out->rate = (double)(r->minflt - w->minflt) / seconds(w->at, r->at);
	}
	w->begun = true;
	if (w->looked) {
		out->look = w->look;
		out->older = !w->fresh;
		out->age = out->older && now.at > w->look.at ? now.at - w->look.at : 0;
	}
	find_growth(w, &now, out);
	out->after = mark->made;
	if (mark->made)
		after_trim_of(mark, r->at, r->usage.anon + r->usage.swap, r->minflt, &out->trim);
	w->at = r->at;
	w->minflt = r->minflt;
	w->fresh = false;
	w->lines++;
}

bool watch_rate(const struct watch *w, double *rate)
{
	if (w->at <= w->began_at || w->minflt < w->first_minflt)
		return false;
	*rate = (double)(w->minflt - w->first_minflt) / seconds(w->began_at, w->at);
	return true;
}
