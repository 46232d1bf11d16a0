// SPDX-License-Identifier: GPL-3.0-or-later
#ifndef HM_PREDICTION_H
#define HM_PREDICTION_H
#include <stdbool.h>
#include <stdint.h>

/* What a trim of one allocator would return, found out without a call. */
struct prediction {
	bool known;		  /* else nothing here can be said */
	uint64_t bytes;		  /* by which Anonymous + Swap will fall */
	uint64_t ranges;	  /* given back one by one */
	uint64_t duration_ns;	  /* estimated */
	uint64_t locked, hugetlb; /* bytes that are free, but that no call returns */
	bool moving;		  /* the heap was changing while it was read: the number is near */
	bool partial;		  /* a part of the heap could not be read: it is at least so much */
	bool most; /* of some pages it is not known whether they are resident: it is at most so
		      much */
};
#endif
