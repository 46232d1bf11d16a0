// SPDX-License-Identifier: GPL-3.0-or-later
#include "commands.h"

#include <errno.h>
#include <string.h>

#include "nearest.h"

/* clang-format off */
static const struct command rows[] = {
	{ .name = "check", .flags = CMD_PASSIVE, .usage = "", .run = cmd_check, .effect = effect_check,
	  .options = { [CHECK_HOLD] = { "hold", NULL, "hold a thread for a moment, to ask what only it knows" } },
	  .help = "can calls be made, and if not why; nothing is held",
	  .more = "Looks at permissions, architecture, seccomp, libc and threads and says what a\n"
		  "command would meet: the allocators with their versions, the thread that would\n"
		  "be borrowed, what is in the way, and whether glibc's heap is whole. Its exit\n"
		  "code is the one that a trim would fail with, as far as that can be seen from\n"
		  "outside.\n"
		  "Some things can not: whether a thread comes to a safe point, what a seccomp\n"
		  "filter says, and whether memory can be had. --hold finds out by holding one;\n"
		  "nothing of it stays.\n",
	  .examples = { { "heapmedic -p 4711 check", "can calls be made, and if not why" },
			{ "heapmedic -p 4711 check --hold", "also what only a held thread tells" } },
	  .exits = { { HM_OK, "a call can be made; else the code that a trim would fail with" } } },
	{ .name = "diagnose", .flags = CMD_PASSIVE | CMD_LOADED | CMD_CALLS, .usage = "", .run = cmd_diagnose,
	  .help = "where the memory is, leak or retained, what to do",
	  .more = "One page: a verdict with its evidence, the owners of the resident memory (the\n"
		  "rows add up to the RSS), what each allocator has, and what helps with how many\n"
		  "bytes of it: now, and at the next restart.\n"
		  "\n"
		  "retained: a trim returns a good part. fragmented: free, but live blocks hold the\n"
		  "pages. live: in use, a leak or a cache. go-heap, not-allocator (stacks, files,\n"
		  "shared or other memory), locked, healthy, undecided.\n"
		  "\n"
		  "glibc's heap is read: nothing is held or called. jemalloc, tcmalloc and mimalloc\n"
		  "are asked by calls, which --passive leaves out; what they have in use is not\n"
		  "known then. ORIGIN says where a number comes from: kernel, passive (read from\n"
		  "memory), called, predicted.\n",
	  .examples = { { "heapmedic -p 4711 diagnose", "leak or retained, and what helps" },
			{ "heapmedic -p 4711 --passive diagnose", "the same without a call" },
			{ "heapmedic -p 4711 --json diagnose", "for a program to read" } } },
	{ .name = "facts", .flags = CMD_PASSIVE | CMD_LOADED | CMD_CALLS, .usage = "[NAME...]", .max = -1,
	  .completes = COMPLETE_FACT, .check = check_facts, .run = cmd_facts,
	  .help = "everything that is known, each fact by its name",
	  .more = "One per line with where it comes from: kernel, passive (read from memory),\n"
		  "called, predicted. What could not be found out is left out (null in JSON): that\n"
		  "is not zero. jemalloc, tcmalloc and mimalloc are asked by calls, which --passive\n"
		  "leaves out. --bytes prints plain numbers.\n"
		  "With names only these, in their order; a name that ends in a dot is all that\n"
		  "begin so. One that is not known is a - with the reason (null in JSON), and no\n"
		  "error; calls are made only where a fact that takes one is asked for.\n",
	  .examples = { { "heapmedic -p 4711 facts", "all that is known" },
			{ "heapmedic -p 4711 facts rss glibc.trimmable", "these two, in this order" },
			{ "heapmedic -p 4711 facts cgroup.", "all that begin so" },
			{ "heapmedic -p 4711 --json --passive facts", "as one object, without a call" } } },
	{ .name = "watch", .flags = CMD_PASSIVE | CMD_STREAMS, .usage = "[EVERY [COUNT]]", .max = 2, .check = check_watch, .run = cmd_watch,
	  .effect = effect_watch,
	  .options = { [WATCH_AFTER_TRIM] = { "after-trim", NULL, "trim first (after two lines), and see what comes back" } },
	  .help = "line by line, what grows and what it is made of",
	  .more = "EVERY is a time (2s without one, 100ms at least), COUNT a number of lines; it\n"
		  "ends with Ctrl-C or with the process, and sums up. Nothing is held or called.\n"
		  "\n"
		  "LIVE is in use in an allocator (a leak or a cache), RETAINED free inside one,\n"
		  "FAULTS/S minor faults per second since the line before. GROWTH is counted from\n"
		  "the first line on, RSS and swap together: live, retained, not-allocator (stacks,\n"
		  "files, other memory), unknown, or none: too little to count. The heap is read as\n"
		  "often as that takes less than a hundredth of one CPU; ~ marks what is older than\n"
		  "its line. -v tells what the watching itself cost.\n"
		  "\n"
		  "After a `trim` in the same session, or with --after-trim: FAULTED, what its\n"
		  "minor faults have brought in since, at most (4 KiB each, but for huge pages);\n"
		  "BACK, how much of what was returned has come again, and how fast. It says so\n"
		  "where half of it is back within a minute, or where there are ten times as many\n"
		  "faults as before: then the trim was not worth it.\n",
	  .examples = { { "heapmedic -p 4711 watch", "a line every 2 s, until Ctrl-C" },
			{ "heapmedic -p 4711 watch 1s 60 --after-trim", "does a trim last, for a minute" },
			{ "heapmedic -p 4711 --json watch 10s", "an object every ten seconds" } },
	  .exits = { { HM_OK, "also where the process has ended meanwhile" } } },
	{ .name = "maps", .flags = CMD_PASSIVE | CMD_LOADED, .usage = "", .run = cmd_maps,
	  .options = { [MAPS_ALL] = { "all", NULL, "each mapping with its owner, by address" } },
	  .help = "who owns the memory: all that is resident",
	  .more = "One row per owner, most resident first. The rows add up to the RSS; what came\n"
		  "or went while it was read is a row of its own. Nothing is held or called.\n"
		  "HUGE, LAZY (free, the kernel takes it when it needs it) and LOCKED are parts of\n"
		  "RSS. file-text and file-data are pages of files, which the kernel can drop;\n"
		  "file-private is what the program and its libraries have written there, with\n"
		  "their .bss. Nobody is known to own what is unclaimed.\n",
	  .examples = { { "heapmedic -p 4711 maps", "one row per owner" },
			{ "heapmedic -p 4711 maps --all", "one row per mapping" } } },
	{ .name = "arenas", .flags = CMD_PASSIVE | CMD_LOADED | CMD_CALLS, .usage = "", .run = cmd_arenas,
	  .options = { [ARENAS_ALL] = { "all", NULL, "every arena, not only the 20 largest" } },
	  .help = "the arenas, and what a trim would return",
	  .more = "One row per arena, largest first. glibc's are read from memory: nothing is held\n"
		  "or called. jemalloc's are asked by calls, which --passive leaves out.\n"
		  "\n"
		  "glibc:\n"
		  "SYSTEM, IN USE and FREE are what `info` has too. FREE RSS is the part of FREE\n"
		  "that is in memory, TRIMMABLE the pages that a trim would return, STRANDED what\n"
		  "is free on pages that it cannot return, as something on them is in use or too\n"
		  "little of them is free. TOP is the chunk at the arena's end, THREADS those that\n"
		  "use it.\n"
		  "\n"
		  "FLAGS: moving (it changed while it was read, the numbers are about right),\n"
		  "swapped (a part is in swap) and cut (not read to its end): FREE and what stands\n"
		  "behind it are too small, IN USE too large. damaged names the place.\n"
		  "\n"
		  "Below: blocks that have mappings of their own, the thresholds in force (dynamic\n"
		  "ones follow what the program frees, frozen ones were set by somebody), and how\n"
		  "many arenas there can be. (passive): read from memory, glibc was not asked.\n"
		  "\n"
		  "jemalloc, those that are initialised: ALLOCATED is the program's (TCACHE of it\n"
		  "idle in thread caches), ACTIVE the pages that hold it. DIRTY pages are unused\n"
		  "and still in memory: `purge` returns them. MUZZY ones are lazily free: in RSS\n"
		  "until the kernel needs memory. RETAINED is address space without memory. DECAY\n"
		  "is after how long unused pages go back (`decay`). huge is the arena that\n"
		  "jemalloc keeps for large blocks.\n",
	  .examples = { { "heapmedic -p 4711 arenas", "the 20 largest" },
			{ "heapmedic -p 4711 --json arenas", "for a program to read" },
			{ "heapmedic -p 4711 --bytes arenas --all", "every arena, sizes in bytes" } } },
	{ .name = "metrics", .flags = CMD_PASSIVE | CMD_CALLS | CMD_LOADED | CMD_CONTROL, .usage = "", .run = cmd_metrics,
	  .options = { [METRICS_OUTPUT] = { "output", "FILE", "replace this file when all is known (mode 0644)" },
		       [METRICS_FORCE] = { "force", NULL, "replace a file of anything else, too" } },
	  .help = "the facts as Prometheus reads them",
	  .more = "Each fact is a gauge (minflt a counter) named heapmedic_ and its name, labelled\n"
		  "with pid and comm; what is not known is left out. Of several processes all\n"
		  "stand in one text, also with --json. jemalloc, tcmalloc and mimalloc are asked\n"
		  "by calls, which --passive leaves out. heapmedic_look_timestamp_seconds says\n"
		  "when it was. With --output no reader meets half a text, as node_exporter's\n"
		  "textfile collector needs it; what fails leaves the file as it was.\n",
	  .examples = { { "heapmedic --passive -n redis-server metrics", "all processes of that name" },
			{ "heapmedic --passive -n redis-server metrics --output /run/redis.prom", "into a file" } } },
	{ .name = "snapshot", .flags = CMD_PASSIVE | CMD_CALLS, .usage = "FILE", .min = 1, .max = 1,
	  .completes = COMPLETE_FILE, .run = cmd_snapshot,
	  .options = { [SNAPSHOT_FORCE] = { "force", NULL, "replace a file that is no snapshot, too" } },
	  .help = "save what is seen now, to look at it later",
	  .more = "--load FILE shows it again, on any machine: diagnose, maps, arenas, threads and\n"
		  "facts say what they would have said then. `diff` compares two. FILE - is stdout.\n"
		  "\n"
		  "Nothing that the program has stored is in it: addresses, sizes and counts, and\n"
		  "the names of mappings (paths), threads and the host. It is compressed JSON:\n"
		  "zcat FILE | python3 -m json.tool. jemalloc, tcmalloc and mimalloc are asked by\n"
		  "calls, which --passive leaves out.\n",
	  .examples = { { "heapmedic -p 4711 snapshot before.hms", "save it" },
			{ "heapmedic --load before.hms diagnose", "look at it, anywhere" } } },
	{ .name = "diff", .flags = CMD_PASSIVE | CMD_CALLS | CMD_LOADED, .usage = "A [B]", .min = 1, .max = 2,
	  .completes = COMPLETE_FILE, .run = cmd_diff, .effect = effect_diff,
	  .help = "what grew from one snapshot to another, or to now",
	  .more = "Two files need no process; one is compared with the process as it is now.\n"
		  "Largest growth first: per owner (resident and swapped bytes, with the rate),\n"
		  "then each of glibc's arenas that has changed, then the threads. The last line\n"
		  "says what the growth is made of:\n"
		  "\n"
		  "live: in use, a leak or a cache. retained: free inside an allocator.\n"
		  "not-allocator: stacks, files, shared or other memory. none: less than counts.\n"
		  "unknown (null in JSON): an allocator was not asked, or it is in swap.\n",
	  .examples = { { "heapmedic diff before.hms after.hms", "between two, no process needed" },
			{ "heapmedic -p 4711 diff before.hms", "from one until now" } } },
	{ .name = "info", .flags = CMD_CALLS, .usage = "", .run = cmd_info, .effect = effect_info,
	  .options = { [INFO_RAW] = { "raw", NULL, "the XML as malloc_info wrote it" },
		       [INFO_ALL] = { "all", NULL, "every arena, not only the 20 largest" },
		       [INFO_FILE] = { "file", "FILE", "read saved malloc_info text; needs no process" } },
	  .help = "glibc's arenas as malloc_info counts them",
	  .more = "One row per arena, largest first: what the arena has from the system, what is in\n"
		  "use, what is free inside it. These are glibc's books, not what is resident:\n"
		  "pages that a trim gave back stay in SYSTEM and FREE until they are used again,\n"
		  "only the RSS shows that they are gone. A flag names what is impossible in the\n"
		  "numbers.\n",
	  .examples = { { "heapmedic -p 4711 info", "by a call" },
			{ "heapmedic info --file saved.xml --json", "of saved text, no process needed" } } },
	{ .name = "stats", .flags = CMD_CALLS, .usage = "[ARG]", .max = 1, .check = check_stats, .run = cmd_stats,
	  .options = { [STATS_OMIT] = { "omit", "WHAT", "jemalloc: leave these parts out, as in bins,large" } },
	  .help = "the allocator's own statistics, as it prints them",
	  .more = "glibc: malloc_stats. jemalloc: malloc_stats_print, ARG is its option string\n"
		  "(J for JSON; with --json its members are in the answer). tcmalloc: its\n"
		  "MallocExtension's text. mimalloc: mi_stats_print_out, where threads that live\n"
		  "have little part. Nothing of it reaches the target's stderr.\n"
		  "\n"
		  "WHAT is one or more words with commas between them: general (version, build,\n"
		  "options), merged (sums over all arenas), destroyed, arenas (each by itself),\n"
		  "bins, large (size classes), mutexes, extents (since 5.2), hpa (since 5.3).\n",
	  .examples = { { "heapmedic -p 4711 stats", "all of it" },
			{ "heapmedic -p 4711 stats --omit arenas,bins,large,mutexes,extents", "jemalloc: only the sums" },
			{ "heapmedic -p 4711 --json stats J --omit arenas", "jemalloc's own JSON in the answer" } } },
	{ .name = "trim", .flags = CMD_CALLS | CMD_WRITES, .usage = "[PAD]", .max = 1, .check = check_trim, .run = cmd_trim,
	  .options = { [TRIM_MIN_YIELD] = { "min-yield", "SIZE", "exit 7 if less than this came back" },
		       [TRIM_FORCE] = { "force", NULL, "also in a damaged heap (expert: may end the process)" } },
	  .help = "give free memory back, and measure how much",
	  .more = "In every allocator that is in use, or in the one that --allocator names. glibc:\n"
		  "malloc_trim(PAD) in all arenas; jemalloc: a purge of all arenas; tcmalloc: the\n"
		  "free spans of its page heap; mimalloc: mi_collect, which reaches only what ended\n"
		  "threads have left (--via direct --thread TID: the heap of that one). PAD is left\n"
		  "at the top of glibc's main heap.\n"
		  "What is said to be returned was measured from outside. `predicted` was read\n"
		  "from glibc's heap before the call (tcmalloc: asked for; `at most`, as some pages\n"
		  "may never have been used); --dry-run tells only what takes no call. A size is\n"
		  "bytes, or a number with K, M, G or T.\n"
		  "\n"
		  "glibc aborts a process in whose heap it meets damage, so the heap is looked at\n"
		  "first: a damaged one is refused (exit 6), and the place is named. `check` looks\n"
		  "at every chunk, as far as a third of a second of CPU time goes.\n",
	  .examples = { { "heapmedic -p 4711 trim", "do it, and measure" },
			{ "heapmedic -p 4711 trim --min-yield 100M", "exit 7 unless 100 MiB came back" },
			{ "heapmedic -p 4711 trim --dry-run", "only predict" } },
	  .exits = { { HM_OK, "also where there was nothing to give back" },
		     { HM_UNMET, "less came back than --min-yield asks for" } } },
	{ .name = "mallopt", .flags = CMD_CALLS | CMD_WRITES, .usage = "NAME VALUE", .min = 2, .max = 2,
	  .completes = COMPLETE_MALLOPT, .check = check_mallopt, .run = cmd_mallopt,
	  .help = "set one of glibc's parameters by name",
	  .more = "Says what the parameter will not change: arenas that exist stay, and setting any\n"
		  "threshold freezes the dynamic ones for good. The change stays when heapmedic\n"
		  "leaves; glibc has no call that reads a parameter, so the old value is not known.\n",
	  .examples = { { "heapmedic -p 4711 mallopt M_TRIM_THRESHOLD 512K", "from now on trim a top above 512 KiB" } } },
	{ .name = "mallctl", .flags = CMD_CALLS | CMD_WRITES, .usage = "NAME [VALUE]", .max = 2,
	  .completes = COMPLETE_CTL, .check = check_mallctl, .run = cmd_mallctl, .effect = effect_mallctl,
	  .options = { [CTL_LIST] = { "list", NULL, "list the names that begin with NAME" } },
	  .help = "read or write any of jemalloc's names",
	  .more = "Without VALUE the name is read (a name without data is called: that is a\n"
		  "change). With VALUE it is written, and the old value is printed too. With `all`\n"
		  "for an index there is a line for each arena that is initialised, or each size\n"
		  "class; arena.all.purge and decay are one call. 4096 is jemalloc's own number for\n"
		  "all arenas together: stats.arenas.4096.pdirty is their sum. `arenas.` are the\n"
		  "defaults of arenas made later; those that exist are `arena.0.`, `arena.1.` and\n"
		  "so on. A change stays when heapmedic leaves.\n"
		  "\n"
		  "Statistics are renewed before they are read; which epoch they are of is told.\n",
	  .examples = { { "heapmedic -p 4711 mallctl stats.allocated", "one name" },
			{ "heapmedic -p 4711 mallctl stats.arenas.all.pdirty", "of each arena" },
			{ "heapmedic -p 4711 mallctl arena.all.dirty_decay_ms 1000", "write it in each arena" },
			{ "heapmedic mallctl --list arenas.", "the names that begin so" } } },
	{ .name = "purge", .flags = CMD_CALLS | CMD_WRITES, .usage = "[all|INDEX]", .max = 1,
	  .completes = COMPLETE_USAGE, .check = check_purge, .run = cmd_purge,
	  .help = "jemalloc: return unused pages now, measured",
	  .more = "Dirty pages (unused, in memory) and muzzy ones (lazily free) of all arenas, or\n"
		  "of one, go back at once. What the RSS and jemalloc's books say before and after\n"
		  "is told. Muzzy pages are in RSS until the kernel needs memory (LAZY in `maps`),\n"
		  "so that a purge lowers it; retained is address space, which costs nothing.\n"
		  "What is in use on partly used pages no call returns: ACTIVE less ALLOCATED.\n",
	  .examples = { { "heapmedic -p 4711 purge", "all arenas" },
			{ "heapmedic -p 4711 purge 3", "arena 3 only" } } },
	{ .name = "decay", .flags = CMD_CALLS | CMD_WRITES, .usage = "[dirty|muzzy] [all|INDEX|default] [MS|off]", .max = 3,
	  .completes = COMPLETE_USAGE, .check = check_decay, .effect = effect_decay, .run = cmd_decay,
	  .help = "jemalloc: after how long unused pages go back",
	  .more = "Without MS the times are shown: the default of arenas made later, and each arena\n"
		  "that is initialised. MS is milliseconds, or a time as in 10s; 0 is at once, off\n"
		  "is never. `all` sets the default and each initialised arena; others are not\n"
		  "touched, nor is the arena that jemalloc has for large blocks (its pages go back\n"
		  "at once by design): that one only by its number. Jemalloc looks at the time when\n"
		  "the program allocates or frees, or in its background threads.\n",
	  .examples = { { "heapmedic -p 4711 decay", "show the times" },
			{ "heapmedic -p 4711 decay dirty all 1000", "dirty pages go back after a second" },
			{ "heapmedic -p 4711 decay muzzy default off", "arenas made later keep muzzy pages" } } },
	{ .name = "background_thread", .flags = CMD_CALLS | CMD_WRITES, .usage = "[on|off]", .max = 1,
	  .completes = COMPLETE_USAGE, .check = check_background_thread, .effect = effect_background_thread, .run = cmd_background_thread,
	  .help = "jemalloc: its own threads that return pages",
	  .more = "Without a word: whether they run. `on` starts threads in the process, which stay\n"
		  "when heapmedic leaves; as heapmedic's own thread makes them, they share its\n"
		  "descriptor table and not the program's. So it is refused (exit 6) unless --yes\n"
		  "is given, or the shell's question answered. `off` ends them. Better in the\n"
		  "program's own options: MALLOC_CONF=background_thread:true.\n",
	  .examples = { { "heapmedic -p 4711 background_thread", "do they run" },
			{ "heapmedic -p 4711 background_thread on --yes", "start them, without the question" } } },
	{ .name = "prof", .flags = CMD_CALLS | CMD_WRITES, .usage = "WHAT [ARG...]", .min = 1, .max = 3,
	  .completes = COMPLETE_PROF, .check = check_prof, .run = cmd_prof, .effect = effect_prof,
	  .options = { [PROF_FOR] = { "for", "TIME", "on: and off again after that time" },
		       [PROF_FILE] = { "file", "HEAP", "top, export: of this dump; needs no process" },
		       [PROF_CUM] = { "cum", NULL, "top: in the order of what was allocated below" },
		       [PROF_RAW] = { "raw", NULL, "dump: as jemalloc writes it, without names" },
		       [PROF_MANGLED] = { "mangled", NULL, "names as they stand in the symbol tables" },
		       [PROF_FORCE] = { "force", NULL, "dump, export: also over a file that is there" } },
	  .help = "jemalloc's heap profile: who has allocated it",
	  .more = "  status         what there is: compiled in, enabled at start, sampling now\n"
		  "  on, off        switch the sampling\n"
		  "  reset [LG]     forget all samples; from now on one per 2^LG bytes\n"
		  "  dump FILE      bring the profile of now here, with names (jeprof's form)\n"
		  "  top [N]        the functions that hold most: 20, N or all\n"
		  "  export FILE    FILE.pb.gz for pprof, FILE.folded, FILE.svg, FILE.txt\n"
		  "  diff A B       what has grown between two dumps; needs no process\n"
		  "\n"
		  "FLAT is what a function has allocated itself, CUM with all that it called. Each\n"
		  "sample is counted for what it stands for, and the allocator's own frames are\n"
		  "left out, as jeprof and pprof do.\n"
		  "\n"
		  "What was not enabled when the process started cannot be switched on; the line\n"
		  "for the next start is printed. --for switches it off again also after Ctrl-C and\n"
		  "SIGTERM; after a SIGKILL of heapmedic its thread in the process does.\n"
		  "A dump is written to memory, not to the process's disk. Meanwhile who takes a\n"
		  "sample waits, and fork(2) does, but no other allocation: of 20,000 stacks a dump\n"
		  "took 70 ms and had 8 MiB, and a thread that takes samples waited 10 to 25 ms.\n",
	  .examples = { { "heapmedic -p 4711 prof status", "can a profile be had" },
			{ "heapmedic -p 4711 prof on --for 60s", "sample for a minute" },
			{ "heapmedic -p 4711 prof top 20", "who holds most" },
			{ "heapmedic prof top --file app.heap", "of a dump, no process needed" },
			{ "heapmedic prof export app.svg --file app.heap", "a flame graph of it" } } },
	{ .name = "threads", .flags = CMD_PASSIVE | CMD_LOADED, .usage = "", .run = cmd_threads,
	  .help = "what the threads wait in, and their arenas",
	  .more = "Best candidate first. Nothing is held. CALL is the system call that a thread is\n"
		  "in, ARENA the number of glibc's arena that it allocates from (none: it has not\n"
		  "allocated yet), TCACHE what it keeps in its cache of freed blocks, USABLE\n"
		  "whether it can be borrowed for a call and WHY what speaks against it; - is not\n"
		  "known. `arenas` has the arenas.\n"
		  "A socket's own timeout (SO_RCVTIMEO) begins anew when its thread is borrowed:\n"
		  "such a thread is the last choice.\n",
	  .examples = { { "heapmedic -p 4711 threads", "best candidate first" } } },
	{ .name = "bt", .flags = CMD_HOLDS, .usage = "[TID|all]", .max = 1, .completes = COMPLETE_USAGE, .check = check_bt, .run = cmd_bt,
	  .help = "backtrace of one thread, or of all of them",
	  .more = "Without a TID: of all. Each thread is held only while it is unwound. Frames\n"
		  "inside an allocator are marked with *.\n",
	  .examples = { { "heapmedic -p 4711 bt 4713", "of thread 4713" } } },
	{ .name = "guard", .flags = CMD_PASSIVE | CMD_CALLS | CMD_WRITES | CMD_STREAMS, .usage = "OPTIONS", .check = check_guard, .effect = effect_guard, .run = cmd_guard,
	  .options = { [GUARD_WHEN] = { "when", "EXPR", "act when this becomes true" },
		       [GUARD_DO] = { "do", "COMMAND", "what is done then" },
		       [GUARD_CLEAR] = { "clear", "EXPR", "act again only when this was true in between" },
		       [GUARD_EVERY] = { "every", "TIME", "look so often (30s)" },
		       [GUARD_COOLDOWN] = { "cooldown", "TIME", "between two actions at least (10m)" },
		       [GUARD_MAX] = { "max", "N", "end after so many actions" },
		       [GUARD_FOR] = { "for", "TIME", "end after this time" } },
	  .help = "act when a condition becomes true",
	  .more = "EXPR as in `require`. It acts once when the condition becomes true, and again\n"
		  "when it has been false in between (or what --clear names was true), but not\n"
		  "sooner than --cooldown after the last action on that process, whoever did it;\n"
		  "two guards never act at the same time. Each look is a line (an object with\n"
		  "--json) with the decision and its numbers: wait, act, hold (still true since the\n"
		  "last action: another would not help), cool, busy, unknown, spent; -q: only what\n"
		  "is another decision than before.\n"
		  "\n"
		  "With -n NAME it goes on with the process that is started anew; with -p PID it\n"
		  "ends with exit 3 when the process does. SIGTERM and Ctrl-C end it, exit 0. It\n"
		  "looks less often where a look costs more than a thousandth of a CPU. --dry-run\n"
		  "tells what it would do.\n",
	  .examples = { { "heapmedic -n redis-server guard --when 'rss > 3G and swap = 0' --do trim", "also after a restart of it" },
			{ "guard --when 'rss > 3G' --clear 'rss < 2G' --do trim --every 1m --max 5", "with hysteresis, five times at most" } },
	  .exits = { { HM_OK, "it was ended: by Ctrl-C, SIGTERM, --max or --for" },
		     { HM_GONE, "the process has ended (with -p)" } } },
	{ .name = "serve", .flags = CMD_PASSIVE | CMD_CALLS | CMD_NO_PROCESS | CMD_SELECTS | CMD_STREAMS, .usage = "OPTIONS", .check = check_serve, .effect = effect_serve, .run = cmd_serve,
	  .options = { [SERVE_LISTEN] = { "listen", "ADDRESS:PORT", "where (127.0.0.1:9748; [::1]:9748; port 0: any)" },
		       [SERVE_ANYWHERE] = { "listen-anywhere", NULL, "the address may be one that other hosts reach" },
		       [SERVE_INTERVAL] = { "min-interval", "TIME", "give the same numbers again for so long (5s)" },
		       [SERVE_ASK] = { "ask", NULL, "ask jemalloc, tcmalloc and mimalloc too, by calls" } },
	  .help = "the metrics over HTTP, for Prometheus to fetch",
	  .more = "/metrics is what `metrics` prints, of all processes that are named, found anew\n"
		  "each time: a restart is followed. heapmedic_up is 0 where nobody is there; it\n"
		  "starts then, too. /-/healthy answers as long as it runs. Nothing can be changed\n"
		  "through it. SIGTERM and Ctrl-C end it, exit 0.\n"
		  "\n"
		  "Nobody is held or called, unless --ask is given: then a thread of heapmedic's\n"
		  "waits in each process that uses another allocator than glibc's until the next\n"
		  "time (one with a single thread is asked on that). A process that refuses is\n"
		  "asked again after 10 minutes.\n"
		  "\n"
		  "The heap is read as often as that takes less than a hundredth of one CPU\n"
		  "(heapmedic_look_timestamp_seconds says when that was), the RSS each time.\n"
		  "One request is worked on at a time; 16 clients, 5 s and 16 KiB for each.\n",
	  .examples = { { "heapmedic -n redis-server serve --ask", "with the numbers of jemalloc" },
			{ "heapmedic -n postgres -n nginx serve --listen '[::1]:9748'", "of several, on IPv6" } },
	  .exits = { { HM_OK, "it was ended: by Ctrl-C or SIGTERM" },
		     { HM_CALL_FAILED, "the address cannot be had" } } },
	{ .name = "require", .flags = CMD_PASSIVE | CMD_CALLS | CMD_LOADED | CMD_CONTROL, .usage = "EXPR", .min = 1, .max = -1,
	  .completes = COMPLETE_FACT, .check = check_require, .effect = effect_require, .run = cmd_require,
	  .help = "go on only if a condition holds; exit 7 if not",
	  .more = "EXPR compares facts (`facts` lists them): > >= < <= = !=, and, or, not and\n"
		  "parentheses. Beside a fact stands another fact, a size (1.5G), a time (10m), a\n"
		  "number, a share of a fact (20% of rss) or a version. What names a fact that is\n"
		  "not known of this process is neither true nor false, and is not met (exit 7).\n"
		  "Only what is named is read: rss alone costs next to nothing. In a shell, quote\n"
		  "it: > and ( mean something there.\n",
	  .examples = { { "require rss > 1.5G and glibc.trimmable > 20% of rss", "in a runbook or the shell" },
			{ "heapmedic -p 4711 require 'cgroup.fraction < 0.9'", "from a script, quoted" } },
	  .exits = { { HM_UNMET, "the condition does not hold, or is not known" } } },
	{ .name = "when", .flags = CMD_PASSIVE | CMD_CALLS | CMD_LOADED | CMD_CONTROL | CMD_PREFIX | CMD_STREAMS, .usage = "EXPR then CMD", .min = 3, .max = -1,
	  .completes = COMPLETE_FACT, .check = check_when, .effect = effect_when, .run = cmd_when,
	  .help = "run a command only if a condition holds",
	  .more = "EXPR as in `require`. Where it does not hold, or cannot be known, nothing is\n"
		  "done, and that is no error. -v and --dry-run tell what was decided, and by which\n"
		  "numbers. Fails as the command does.\n",
	  .examples = { { "when jemalloc.fragmentation > 0.35 and rss > 1.5G then trim", "only where it may help" },
			{ "when glibc.trimmable > 25% of rss then trim --min-yield 100M", "with an option of the command" } },
	  .exits = { { HM_OK, "also where nothing was done; else the command's code" } } },
	{ .name = "on-error", .flags = CMD_NO_PROCESS | CMD_CONTROL, .usage = "continue|stop", .min = 1, .max = 1,
	  .completes = COMPLETE_USAGE, .check = check_on_error, .run = cmd_on_error,
	  .help = "does a runbook go on behind a command that fails?",
	  .more = "It stops, unless told to continue; then its exit code is the highest of all.\n"
		  "A `require` that is not met stops it in any case, and so does Ctrl-C. It holds\n"
		  "to the end of the runbook, not in those that it runs itself.\n",
	  .examples = { { "on-error continue", "from here on" } } },
	{ .name = "attach", .flags = CMD_NO_PROCESS | CMD_CONTROL, .usage = "NAME|PID", .min = 1, .max = 1,
	  .completes = COMPLETE_PROCESS, .run = cmd_attach,
	  .help = "the shell: go on with another process",
	  .more = "What heapmedic has in the process so far is ended first; where the other one\n"
		  "cannot be opened, it stays with the first. Settings stay, also --read-only and\n"
		  "--passive. It is there also when the process has exited.\n",
	  .examples = { { "attach redis-server", "by its name, if there is one such" },
			{ "attach 4712", "by its pid" } },
	  .exits = { { HM_GONE, "no such process" },
		     { HM_NOT_PERMITTED, "it may not be looked at: the cause is named" } } },
	{ .name = "set", .flags = CMD_NO_PROCESS | CMD_CONTROL, .usage = "[KEY VALUE]", .max = 2,
	  .completes = COMPLETE_SET, .check = check_set, .run = cmd_set,
	  .help = "change a setting for what follows; alone: list them",
	  .more = "passive, read-only and dry-run can be turned on, but not off again.\n",
	  .examples = { { "set timeout 5s", "for each call that follows" } } },
	{ .name = "echo", .flags = CMD_NO_PROCESS | CMD_CONTROL, .usage = "[WORD...]", .max = -1, .run = cmd_echo,
	  .help = "print the words",
	  .examples = { { "echo before the trim of $$", "$$ is the target's pid" } } },
	{ .name = "sleep", .flags = CMD_NO_PROCESS | CMD_CONTROL | CMD_STREAMS, .usage = "TIME", .min = 1, .max = 1, .check = check_sleep, .run = cmd_sleep,
	  .help = "wait; Ctrl-C ends it",
	  .more = "heapmedic's own thread in the target, kept for the next command, sleeps too.\n",
	  .examples = { { "sleep 10s", "ten seconds" } },
	  .exits = { { HM_CALL_FAILED, "Ctrl-C has ended it" } } },
	{ .name = "source", .flags = CMD_NO_PROCESS | CMD_CONTROL | CMD_STREAMS, .usage = "FILE [ARG...]", .min = 1, .max = -1,
	  .completes = COMPLETE_FILE, .run = cmd_source,
	  .help = "run the commands of a file (a runbook)",
	  .more = "One command a line, or several with ; between them; # begins a comment. Words\n"
		  "are quoted as in a shell. $1 to $9 and $@ are the ARGs, $$ is the target's pid.\n"
		  "All of it is checked before its first command is run. It stops at the first\n"
		  "error and fails with the same exit code. heapmedic -f FILE ARG... does the same.\n",
	  .examples = { { "source emergency.hm 100M", "with $1 as 100M" } },
	  .exits = { { HM_USAGE, "an error in the file, with its line; or what a command has failed with" } } },
	{ .name = "help", .flags = CMD_NO_PROCESS | CMD_CONTROL, .usage = "[COMMAND]", .max = 1,
	  .completes = COMPLETE_COMMAND, .run = cmd_help,
	  .help = "the commands; help on one with examples",
	  .examples = { { "help trim", "all about trim" } } },
	{ .name = "quit", .alias = "exit", .flags = CMD_NO_PROCESS | CMD_CONTROL, .usage = "", .run = cmd_quit,
	  .help = "leave; nothing of heapmedic stays in the target",
	  .more = "In a runbook: the commands behind it are not run.\n",
	  .examples = { { "quit", "as Ctrl-D does" } } },
};
/* clang-format on */

const struct command *command_table(size_t *n)
{
	*n = sizeof(rows) / sizeof(rows[0]);
	return rows;
}

const struct command *command_find(const char *name)
{
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		if (strcmp(rows[i].name, name) == 0 ||
		    (rows[i].alias && strcmp(rows[i].alias, name) == 0))
			return &rows[i];
	return NULL;
}

static const char *next_command(size_t i, const void *arg)
{
	(void)arg;
	return i < sizeof(rows) / sizeof(rows[0]) ? rows[i].name : NULL;
}

int command_unknown(const char *name, struct diag *d)
{
	const char *near = nearest(name, next_command, NULL);
	char hint[100] = "see `help`";

	if (strchr(name, ' '))
		snprintf(hint, sizeof(hint), "quote words, not the whole command, or use -e");
	else if (near)
		snprintf(hint, sizeof(hint), "did you mean `%s`? see `help`", near);
	return diag_fail(d, -EINVAL, HM_USAGE, "unknown-command", hint,
			 "no command is named '%.100s'", name);
}

int command_option(const struct command *row, const char *name, size_t len)
{
	for (int i = 0; i < COMMAND_OPTIONS; i++) {
		const char *own = row->options[i].name;

		if (own && strlen(own) == len && memcmp(own, name, len) == 0)
			return i;
	}
	return -1;
}

const char *command_letters(unsigned flags, char buf[6])
{
	static const char letters[] = "pscwx";
	size_t used = 0;

	for (size_t i = 0; letters[i]; i++)
		if (flags & (1u << i))
			buf[used++] = letters[i];
	buf[used] = '\0';
	return buf;
}
