// SPDX-License-Identifier: GPL-3.0-or-later
#include "owner_text.h"

#include <stdio.h>
#include <string.h>

#include "../inject/status.h"

#define LABEL 96 /* of a path or a name, shortened */

const char *owner_row_text(const struct owner_row *row, char *buf, size_t size)
{
	char label[LABEL] = "";
	const char *name = piece_label(row->largest);
	const char *dash = *row->kind && strcmp(name, row->kind) != 0 ? ": " : "";

	if (strcmp(name, row->kind) != 0)
		escape_copy(label, sizeof(label), name, strlen(name));
	if (row->largest->id >= 0 && row->count == 1)
		snprintf(label, sizeof(label), "%ld", row->largest->id);
	if (*label && row->count > 1)
		snprintf(buf, size, "%s%s%s and %zu more", row->kind, dash, label, row->count - 1);
	else
		snprintf(buf, size, "%s%s%s", row->kind, *label ? dash : "", label);
	return buf;
}
