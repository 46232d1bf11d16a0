// SPDX-License-Identifier: GPL-3.0-or-later
#ifndef HM_COMMANDS_H
#define HM_COMMANDS_H
#include "../agent/allocator.h"
#include "../agent/size.h"
#include "command.h"

/* The functions behind the rows of the command table, one file per family. */
typedef int check_fn(const struct args *a, struct diag *d);
typedef int command_fn(struct context *c, const struct args *a, struct reply *r, struct diag *d);

/* Own options, by their place in the row. */
enum { INFO_RAW, INFO_ALL, INFO_FILE };
enum { MAPS_ALL };
enum { ARENAS_ALL };
enum { TRIM_MIN_YIELD, TRIM_FORCE };
enum { CTL_LIST };
enum { STATS_OMIT };
enum { CHECK_HOLD };
enum { WATCH_AFTER_TRIM };
enum { SNAPSHOT_FORCE };
enum { METRICS_OUTPUT, METRICS_FORCE };
enum { GUARD_WHEN, GUARD_DO, GUARD_CLEAR, GUARD_EVERY, GUARD_COOLDOWN, GUARD_MAX, GUARD_FOR };
enum { SERVE_LISTEN, SERVE_ANYWHERE, SERVE_INTERVAL, SERVE_ASK };
enum { PROF_FOR, PROF_FILE, PROF_CUM, PROF_RAW, PROF_MANGLED, PROF_FORCE };

/* cmd_look.c */
command_fn cmd_threads, cmd_bt;
check_fn check_bt;
/* cmd_maps.c */
command_fn cmd_maps;
/* cmd_facts.c */
command_fn cmd_facts;
check_fn check_facts;
/* cmd_diagnose.c */
command_fn cmd_diagnose;
/* cmd_snapshot.c */
command_fn cmd_snapshot;
/* cmd_diff.c */
command_fn cmd_diff;
unsigned effect_diff(const struct args *a);
/* cmd_arenas.c */
command_fn cmd_arenas;
/* cmd_check.c */
command_fn cmd_check;
unsigned effect_check(const struct args *a);
/* cmd_info.c */
command_fn cmd_info;
unsigned effect_info(const struct args *a);
/* cmd_call.c */
command_fn cmd_stats, cmd_mallopt;
check_fn check_mallopt, check_stats;
/* Exit 5: the process uses no allocator that can be asked for that. */
int no_allocator(const struct context *c, const char *what, struct diag *d);
/* cmd_trim.c */
command_fn cmd_trim;
check_fn check_trim;
struct trim_report;
/* A trim with all that is said of it; the context remembers it. */
HM_MUST_CHECK int trim_and_tell(struct context *c, struct reply *r, uint64_t pad,
				struct trim_report *out, struct diag *d);
/* cmd_watch.c */
command_fn cmd_watch;
check_fn check_watch;
unsigned effect_watch(const struct args *a);
/* cmd_ctl.c */
command_fn cmd_mallctl;
check_fn check_mallctl;
unsigned effect_mallctl(const struct args *a);
/* cmd_metrics.c */
command_fn cmd_metrics;
/* cmd_guard.c */
command_fn cmd_guard;
check_fn check_guard;
/* Exit 2 where there are several. */
HM_MUST_CHECK int guard_one_target(size_t targets, struct diag *d);
/* cmd_serve.c */
command_fn cmd_serve;
check_fn check_serve;
unsigned effect_serve(const struct args *a);
/* cmd_control.c */
command_fn cmd_require, cmd_when, cmd_on_error;
check_fn check_require, check_when, check_on_error;
unsigned effect_require(const struct args *a), effect_when(const struct args *a);
unsigned effect_guard(const struct args *a);
/* cmd_prof.c */
command_fn cmd_prof;
check_fn check_prof;
unsigned effect_prof(const struct args *a);
struct ctl_value;
struct ctl_fresh;
json_t *ctl_value_json(const struct ctl_value *v);
/* The jemalloc that the process allocates with. Exit 5 without one, 2 where of several none owns
 * malloc and none was chosen. */
HM_MUST_CHECK int find_jemalloc(struct context *c, struct reply *r, const struct allocator **out,
				struct diag *d);
/* When the statistics are of: a line of talk, and two members. Nothing where none were read. */
void tell_fresh(struct context *c, struct reply *r, const struct ctl_fresh *fresh);
/* cmd_ctl_list.c */
command_fn ctl_list;
/* cmd_decay.c */
command_fn cmd_decay;
check_fn check_decay;
unsigned effect_decay(const struct args *a);
/* cmd_jemalloc.c */
command_fn cmd_purge, cmd_background_thread;
check_fn check_purge, check_background_thread;
/* "all" or nothing (JEMALLOC_ALL), or the number of an arena. Exit 2. */
HM_MUST_CHECK int arena_parse(const char *word, long *out, struct diag *d);
/* Prints what a purge of index would return at most, by asking jemalloc; false where that is not
 * known. */
bool purge_outlook(struct context *c, const struct allocator *jemalloc, long index);
unsigned effect_background_thread(const struct args *a);
/* cmd_arenas_jemalloc.c */
struct jemalloc_arenas;
HM_MUST_CHECK int show_jemalloc_arenas(struct context *c, struct reply *r,
				       const struct jemalloc_arenas *a, bool all, bool titled,
				       struct diag *d);
/* "10 s", "at once", "never" */
const char *decay_text(int64_t ms, char buf[SIZE_TEXT]);
/* cmd_shell.c */
command_fn cmd_set, cmd_echo, cmd_sleep, cmd_help, cmd_quit, cmd_source, cmd_attach;
check_fn check_set, check_sleep;
#endif
