// SPDX-License-Identifier: GPL-3.0-or-later
#ifndef HM_FAULT_POINT_H
#define HM_FAULT_POINT_H
/*
 * Where the tests kill us: before each request that touches the target. Only a program that is
 * built for it (HM_FAULT_POINTS, see build/heapmedic-fault in the Makefile) has any code here.
 */
#ifdef HM_FAULT_POINTS
void fault_point(void);
#else
static inline void fault_point(void)
{
}
#endif
#endif
