// SPDX-License-Identifier: GPL-3.0-or-later
#include "liveness.h"

#include <string.h>

#include "insn.h"

#define MOST_STEPS 240 /* instructions looked at */
#define FARTHEST   (1 << 24)

static const uint8_t arg_register[6] = { RDI, RSI, RDX, R10, R8, R9 };

/*
 * Addresses still to be looked at, and those that have been, each once for what is looked for
 * there: reads of the argument until it is overwritten, reads of the red zone until something is
 * called.
 */
struct place {
	uint64_t addr;
	bool arg, zone;
	bool called;	 /* in a function that the first one calls */
	bool from_frame; /* the stack pointer is rbp + sp, else that at the start + sp */
	int32_t sp;
};

struct walk {
	struct place at[MOST_STEPS];
	size_t n, done;
	bool lost; /* in something unknown, or too far away */
};

static bool same_place(const struct place *a, const struct place *b)
{
	return a->addr == b->addr && a->arg == b->arg && a->zone == b->zone &&
	       a->called == b->called && a->from_frame == b->from_frame && a->sp == b->sp;
}

static void visit(struct walk *w, struct place p, uint64_t addr)
{
	p.addr = addr;
	if (!p.arg && !p.zone)
		return;
	for (size_t i = 0; i < w->n; i++)
		if (same_place(&w->at[i], &p))
			return;
	if (w->n == MOST_STEPS)
		w->lost = true;
	else
		w->at[w->n++] = p;
}

/*
 * Displacements count from where the stack pointer is at p; the zone is below where it was at the
 * call. What the function stores there itself after it has made room is taken for a read, too.
 */
static void look_at_operand(const struct insn *in, const struct place *p, struct liveness *out)
{
	int64_t disp = in->disp;

	if (in->base != RSP && in->base != RBP)
		return;
	if (in->indexed)
		out->zone_unread = false;
	if (in->base == RSP)
		disp += p->sp;
	if (in->base == RSP && !p->from_frame)
		out->zone_unread = out->zone_unread && disp >= 0;
	else if (disp < out->lowest)
		out->lowest = (int32_t)disp;
}

static void follow_sp(struct walk *w, struct place *p, const struct insn *in)
{
	if (in->sp_from_rbp) {
		p->from_frame = true;
		p->sp = 0;
	}
	/* nobody moves it as far as that by what is written in an instruction */
	if (in->sp_unknown || in->sp_by > FARTHEST || in->sp_by < -FARTHEST || p->sp > FARTHEST ||
	    p->sp < -FARTHEST)
		w->lost = true;
	else
		p->sp += in->sp_by;
}

static void look_at_return(struct walk *w, const struct place *p, struct liveness *out)
{
	if (!p->arg || p->called)
		return;
	/* two that differ cannot both be right */
	if (out->returns && (out->from_frame != p->from_frame || out->return_at != p->sp))
		w->lost = true;
	out->returns = true;
	out->from_frame = p->from_frame;
	out->return_at = p->sp;
}

/* Where it goes on from in, an instruction at p. */
static void go_on(struct walk *w, struct place p, const struct insn *in, struct liveness *out)
{
	uint64_t next = p.addr + in->len;
	struct place there;

	/* who calls has no red zone */
	p.zone = p.zone && in->flow != FLOW_CALL;
	there = p;
	there.called = p.called || in->flow == FLOW_CALL;
	if (in->flow == FLOW_RETURN)
		look_at_return(w, &p, out);
	else if (in->flow != FLOW_NEXT)
		visit(w, there, next + (uint64_t)(int64_t)in->to);
	/* behind a call too: a compiler may know that a function of the same file leaves the
	 * register alone (gcc's -fipa-ra) */
	if (in->flow != FLOW_JUMP && in->flow != FLOW_RETURN)
		visit(w, p, next);
}

void liveness_look(liveness_reader read, void *context, uint64_t pc, unsigned arg,
		   struct liveness *out)
{
	struct walk w = { .n = 0 };
	uint8_t code[INSN_LONGEST];
	struct insn in;

	*out = (struct liveness){ .arg_unread = arg < 6, .zone_unread = arg < 6 };
	visit(&w, (struct place){ .arg = true, .zone = true }, pc);
	while (arg < 6 && w.done < w.n && !w.lost) {
		struct place p = w.at[w.done++];

		if (read(context, p.addr, code, sizeof(code)) ||
		    !insn_decode(code, sizeof(code), &in)) {
			w.lost = true;
			break;
		}
		if (p.arg && in.reads & INSN_BIT(arg_register[arg]))
			out->arg_unread = false;
		if (in.writes & INSN_BIT(arg_register[arg]))
			p.arg = false;
		if (p.zone)
			look_at_operand(&in, &p, out);
		follow_sp(&w, &p, &in);
		go_on(&w, p, &in, out);
	}
	if (w.lost)
		out->arg_unread = out->zone_unread = false;
}

bool liveness_caller_knows(liveness_reader read, void *context, uint64_t to)
{
	static const uint8_t endbr64[] = { 0xf3, 0x0f, 0x1e, 0xfa };
	uint8_t call[5], stub[8], *at = stub;
	int32_t by;

	if (read(context, to - sizeof(call), call, sizeof(call)))
		return true;
	if (call[0] != 0xe8)
		return false;
	memcpy(&by, call + 1, sizeof(by));
	if (read(context, to + (uint64_t)(int64_t)by, stub, sizeof(stub)))
		return true;
	if (memcmp(at, endbr64, sizeof(endbr64)) == 0)
		at += sizeof(endbr64);
	if (*at == 0xf2) /* bnd */
		at++;
	return at[0] != 0xff || at[1] != 0x25; /* jmp *disp(%rip) */
}
