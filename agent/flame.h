// SPDX-License-Identifier: GPL-3.0-or-later
#ifndef HM_FLAME_H
#define HM_FLAME_H
#include "call_tree.h"

/* Frames that are drawn at most: the narrowest are left out, and the picture says so. */
#define FLAME_FRAMES 20000

/*
 * Appends a flame graph as an SVG file: width is live bytes, callers are below. It needs no other
 * file; a browser zooms and searches in it (flame.js), and whoever runs no scripts sees it whole,
 * with each frame's name and size as its title. title is any text. -ENOMEM.
 */
HM_MUST_CHECK int flame_svg(const struct calls *c, const struct call_tree *t, const char *title,
			    struct bytes *out);
#endif
