// SPDX-License-Identifier: GPL-3.0-or-later
#ifndef HM_CALL_TREE_H
#define HM_CALL_TREE_H
#include "calls.h"

/* Who was called by whom, from the outermost function on: equal beginnings of stacks are one. */
struct call_node {
	uint32_t name;		      /* of calls.texts */
	uint32_t parent, child, next; /* numbers of nodes; 0: none */
	uint32_t depth;		      /* 0 is the root */
	double self, total; /* live bytes: of stacks that end here, and with those below */
};
struct call_tree {
	struct call_node *v; /* the first is the root, which is no function; parents come first */
	size_t n;
};

/* About 70 bytes each: what a hostile profile can unfold to is bounded. */
#define CALL_TREE_NODES ((size_t)4 << 20)
/* -ENOMEM; -EFBIG beyond that many nodes. The children of a node are in the order of their names.
 */
HM_MUST_CHECK int call_tree_make(const struct calls *c, struct call_tree *out);
void call_tree_free(struct call_tree *t);

/*
 * One line "OUTER;...;INNER BYTES" per stack, as flame graph tools read it; what a ";" of a name's
 * own would part is a ":" here. Depth first.
 */
void call_tree_folded(const struct calls *c, const struct call_tree *t, struct bytes *out);
#endif
