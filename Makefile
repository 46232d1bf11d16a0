# SPDX-License-Identifier: GPL-3.0-or-later
# One Makefile, no recursion. Everything that is built lies under $(BUILD), the program at ./heapmedic.
#
#   make            the program                      make test     install what is missing, build, run every test
#   make demo       see it work in a minute          make lint     format check and static analysis
#   make unit live  only the one kind of test        make static   ./heapmedic-static, for distroless images
#   make test-glibcs  tests on processes of Debian 11, 12, 13 and sid (glibc 2.31, 2.36, 2.41, 2.43), in roots made by debootstrap
#   make torture    some twenty minutes (two CPUs) of everything that could harm a target; stops at the first harm
#   make bench      how fast large processes are read, and what that costs: a table, and build/bench.json (some minutes)
#   make bench-check  fails if `prof top` is not 20 times as fast as jeprof (part of no other target)
#   make deb        a Debian package, in build/deb
#   make docs       the manual and completions, into build/docs: man -l build/docs/heapmedic.1
#   make fuzz       damaged and hostile input for every parser, SECONDS=60 in all (needs clang)
#
# V=1 shows the commands, CC=clang uses clang, SAN=1 builds with ASan and UBSan (into build-san, so that nothing is mixed).

ifdef SAN
BUILD ?= build-san
endif
BUILD ?= build
PREFIX ?= /usr/local
DESTDIR ?=
# Debian's packages have /usr/share/zsh/vendor-completions.
ZSH_COMPLETIONS ?= $(PREFIX)/share/zsh/site-functions
PROG ?= $(if $(filter build,$(BUILD)),heapmedic,$(BUILD)/heapmedic)
VERSION := 0.1.0
RELEASED := 2026-12-01

CC ?= cc
PKG_CONFIG ?= pkg-config
OBJCOPY ?= objcopy
PKGS := libunwind-ptrace libdw libelf liblzma jansson expat zlib
Q := $(if $(V),,@)

WARN := -Wall -Wextra -Wshadow -Wconversion -Wstrict-prototypes -Wmissing-prototypes -Wwrite-strings \
	-Wpointer-arith -Wformat=2 -Wundef -Werror
CFLAGS ?= -O2 -g
override CPPFLAGS += -D_GNU_SOURCE -DHM_VERSION='"$(VERSION)"' -I$(BUILD)/gen
override CFLAGS += -std=c11 $(WARN) -fstack-protector-strong -fno-common -pthread
# Symbols are bound at the start, not one by one while a thread is held.
override LDFLAGS += -Wl,-z,relro,-z,now
ifdef SAN
override CFLAGS += -fsanitize=address,undefined -fno-sanitize-recover=undefined -fno-omit-frame-pointer
override LDFLAGS += -fsanitize=address,undefined
endif
# Asked once, and only where something is compiled: `make clean` and `make install-deps` work without the libraries.
LIB_CFLAGS = $(eval LIB_CFLAGS := $(shell $(PKG_CONFIG) --cflags $(PKGS)))$(LIB_CFLAGS)
# The HTTP server comes as an archive, always: as a library it loads GnuTLS, and each start of the program would take 40 ms longer.
# What its objects name of GnuTLS, which nobody calls, is one function of ours.
HTTP_A = $(shell $(PKG_CONFIG) --variable=libdir libmicrohttpd)/libmicrohttpd.a
HTTP_LIBS = $(eval HTTP_LIBS := -Wl,-u,http_no_tls $(HTTP_A) $(shell nm -u $(HTTP_A) 2>/dev/null | sed -n 's/.* \(gnutls_[a-z0-9_]*\)$$/-Wl,--defsym=\1=http_no_tls/p' | sort -u))$(HTTP_LIBS)
LIBS = $(eval LIBS := $(shell $(PKG_CONFIG) --libs $(PKGS)) $(HTTP_LIBS) -liberty -lreadline -lm)$(LIBS)
STATIC_LIBS = $(shell $(PKG_CONFIG) --static --libs $(PKGS)) $(HTTP_LIBS) -liberty -lreadline -ltinfo -llzma -lm

LIB_SRC := $(sort $(wildcard inject/*.c agent/*.c)) $(filter-out repl/main.c repl/generate.c,$(sort $(wildcard repl/*.c)))
LIB_OBJ := $(LIB_SRC:%.c=$(BUILD)/%.o) $(BUILD)/inject/payload_blob.o
MAIN_OBJ := $(BUILD)/repl/main.o
UNIT_SRC := $(sort $(wildcard tests/unit/test_*.c))
UNIT_BIN := $(UNIT_SRC:%.c=$(BUILD)/%)
LIVE_SRC := $(sort $(wildcard tests/live/test_*.c))
LIVE_BIN := $(LIVE_SRC:%.c=$(BUILD)/%)
LIVE_OBJ := $(patsubst %.c,$(BUILD)/%.o,$(filter-out $(LIVE_SRC),$(sort $(wildcard tests/live/*.c))))
TORTURE_SRC := $(sort $(wildcard tests/torture/test_*.c))
TORTURE_BIN := $(TORTURE_SRC:%.c=$(BUILD)/%)
TORTURE_OBJ := $(LIVE_OBJ) $(patsubst %.c,$(BUILD)/%.o,$(filter-out $(TORTURE_SRC),$(sort $(wildcard tests/torture/*.c))))
BENCH := $(BUILD)/tests/bench/bench $(BUILD)/tests/bench/bench_profile
# A fuzz target is one file; beside libFuzzer's program each makes one that replays its seeds as a test.
FUZZ_SRC := $(sort $(wildcard tests/fuzz/fuzz_*.c))
FUZZ_NAMES := $(FUZZ_SRC:tests/fuzz/fuzz_%.c=%)
FUZZ_BIN := $(FUZZ_NAMES:%=$(BUILD)/tests/fuzz/test_%)
FUZZ_OBJ := $(patsubst %,$(BUILD)/tests/fuzz/%.o,support memory library)
UNIT_OBJ := $(patsubst %.c,$(BUILD)/%.o,$(filter-out $(UNIT_SRC),$(sort $(wildcard tests/unit/*.c))))

# Headers that are generated, so that the first build makes them before anything includes them.
GEN_HDR := $(BUILD)/gen/mallctl_table.inc $(BUILD)/gen/flame_js.inc

.PHONY: all test test-glibcs test-roots tests unit live torture bench bench-check victims demo lint format static docs deb install install-deps deps clean FORCE fuzz fuzz-seeds
.SECONDARY:
all: $(PROG)

# `make test` and `make demo` promise to work on a fresh machine: there the packages come before the first compilation.
DEPS := $(if $(filter test demo torture bench bench-check fuzz test-glibcs test-roots,$(MAKECMDGOALS)),deps)
deps:
	@scripts/install-deps.sh build $(if $(filter test torture bench bench-check test-glibcs test-roots,$(MAKECMDGOALS)),test) \
		$(filter fuzz,$(MAKECMDGOALS)) $(if $(filter test-glibcs test-roots,$(MAKECMDGOALS)),roots)
install-deps:
	scripts/install-deps.sh build test lint fuzz

# Other flags or another compiler than last time: compile again.
$(BUILD)/flags: FORCE
	@mkdir -p $(@D)
	@echo '$(CC) $(subst ','\'',$(CPPFLAGS) $(CFLAGS) $(LDFLAGS))' | cmp -s - $@ || \
		echo '$(CC) $(subst ','\'',$(CPPFLAGS) $(CFLAGS) $(LDFLAGS))' >$@

$(PROG): $(MAIN_OBJ) $(BUILD)/libheapmedic.a
	@echo "  LD      $@"
	$(Q)$(CC) $(CFLAGS) $(LDFLAGS) -o $@ $^ $(LIBS)

$(BUILD)/libheapmedic.a: $(LIB_OBJ)
	@echo "  AR      $@"
	$(Q)rm -f $@ && $(AR) rcs $@ $^

$(BUILD)/%.o: %.c $(BUILD)/flags | $(DEPS) $(GEN_HDR)
	@echo "  CC      $@"
	@mkdir -p $(@D)
	$(Q)$(CC) $(CPPFLAGS) $(CFLAGS) $(LIB_CFLAGS) -MMD -MP -c -o $@ $<

# ---- the table of jemalloc's mallctl names, from the list that people edit
$(BUILD)/gen/mallctl_table.inc: agent/mallctl.tsv scripts/mallctl-table.awk
	@echo "  GEN     $@"
	@mkdir -p $(@D)
	$(Q)awk -f scripts/mallctl-table.awk agent/mallctl.tsv > $@.tmp && mv $@.tmp $@

$(BUILD)/agent/mallctl.o: $(BUILD)/gen/mallctl_table.inc

# ---- the script of flame graphs, as a string
$(BUILD)/gen/flame_js.inc: agent/flame.js
	@echo "  GEN     $@"
	@mkdir -p $(@D)
	$(Q){ echo 'static const char script[] =' && sed 's/[\\"]/\\&/g; s/.*/"&\\n"/' $< && echo ';'; } > $@.tmp && mv $@.tmp $@

$(BUILD)/agent/flame.o: $(BUILD)/gen/flame_js.inc

# ---- the manual and completions, made of the program's own tables
DOCS := $(BUILD)/docs
DOC_FILES := $(addprefix $(DOCS)/,heapmedic.1 heapmedic-json.5 heapmedic.bash _heapmedic json-keys)
$(DOCS)/heapmedic.1: WHAT := manual
$(DOCS)/heapmedic-json.5: WHAT := json
$(DOCS)/heapmedic.bash: WHAT := bash
$(DOCS)/_heapmedic: WHAT := zsh
$(DOCS)/json-keys: WHAT := keys
docs: $(DOC_FILES)
$(BUILD)/generate: $(BUILD)/repl/generate.o $(BUILD)/libheapmedic.a
	@echo "  LD      $@"
	$(Q)$(CC) $(CFLAGS) $(LDFLAGS) -o $@ $^ $(LIBS)
$(DOC_FILES): $(BUILD)/generate Makefile
	@echo "  DOC     $@"
	@mkdir -p $(@D)
	$(Q)$(BUILD)/generate $(WHAT) $(RELEASED) > $@.tmp && mv $@.tmp $@

# ---- the code that runs inside the target: position independent, general registers only
PAYLOAD_SRC := inject/payload/payload.c inject/payload/arena.c inject/payload/entry.S
PAYLOAD_FLAGS := -std=gnu11 -O2 -Wall -Wextra -Werror -ffreestanding -fPIC -fno-stack-protector -fcf-protection=none \
	-fno-jump-tables -fno-asynchronous-unwind-tables -fno-builtin -mgeneral-regs-only -fvisibility=hidden \
	-nostdlib -static -Wl,-z,noexecstack -Wl,--build-id=none

$(BUILD)/payload-%.elf: $(PAYLOAD_SRC) inject/payload/payload.lds $(wildcard inject/payload/*.h) | $(DEPS)
	@echo "  PAYLOAD $@"
	@mkdir -p $(@D)
	$(Q)$(CC) $(PAYLOAD_FLAGS) -Wl,--defsym=BASE=$* -T inject/payload/payload.lds -o $@ $(PAYLOAD_SRC)

$(BUILD)/payload-%.bin: $(BUILD)/payload-%.elf
	$(Q)$(OBJCOPY) -O binary $< $@

# Linked for two addresses it must be the same bytes: else an address has been filled in somewhere.
$(BUILD)/payload.bin: $(BUILD)/payload-0.bin $(BUILD)/payload-0x12340000.bin
	$(Q)cmp $^ || { echo "the payload is not position independent"; exit 1; }
	$(Q)cp $< $@

$(BUILD)/inject/payload_blob.o: inject/payload/blob.S $(BUILD)/payload.bin
	@mkdir -p $(@D)
	$(Q)$(CC) -DPAYLOAD_BIN='"$(BUILD)/payload.bin"' -c -o $@ $<

# ---- tests: one program per file, so that one that does not build or crashes says so by its name
$(BUILD)/tests/unit/test_%: $(BUILD)/tests/unit/test_%.o $(UNIT_OBJ) $(BUILD)/libheapmedic.a
	@echo "  LD      $@"
	$(Q)$(CC) $(CFLAGS) $(LDFLAGS) -o $@ $^ $(LIBS) -lcriterion

# Live tests know only the program, its output and the victim: nothing of ours is linked into them.
$(BUILD)/tests/live/test_%: $(BUILD)/tests/live/test_%.o $(LIVE_OBJ)
	@echo "  LD      $@"
	$(Q)$(CC) $(CFLAGS) $(LDFLAGS) -o $@ $^ $(shell $(PKG_CONFIG) --libs jansson) -lcriterion

$(BUILD)/tests/torture/test_%: $(BUILD)/tests/torture/test_%.o $(TORTURE_OBJ)
	@echo "  LD      $@"
	$(Q)$(CC) $(CFLAGS) $(LDFLAGS) -o $@ $^ $(shell $(PKG_CONFIG) --libs jansson) -lcriterion

# Without libFuzzer. The target comes before the library: what it defines, it replaces there (the target's memory).
$(BUILD)/tests/fuzz/test_%: $(BUILD)/tests/fuzz/fuzz_%.o $(BUILD)/tests/fuzz/replay.o $(FUZZ_OBJ) $(BUILD)/libheapmedic.a
	@echo "  LD      $@"
	$(Q)$(CC) $(CFLAGS) $(LDFLAGS) -o $@ $^ $(LIBS) -lcriterion

# A program with sanitizers cannot be static.
STATIC := $(if $(SAN),,heapmedic-static)
RUN = $(if $(STATIC),HEAPMEDIC_STATIC=$(abspath $(STATIC))) DOCS=$(abspath $(DOCS)) FUZZ_SEEDS=$(FUZZ_SEEDS) HEAPMEDIC=$(abspath $(PROG)) HEAPMEDIC_FAULT=$(abspath $(BUILD)/heapmedic-fault) VICTIMS=$(abspath $(VICTIMS)) $(if $(SAN),SAN=1) scripts/run-tests.sh $(BUILD)
tests: $(UNIT_BIN) $(FUZZ_BIN) $(LIVE_BIN) $(TORTURE_BIN) $(BENCH)
# A program with sanitizers takes half a second to start: torture is left out there, `make SAN=1 torture` runs it.
test: $(PROG) $(BUILD)/heapmedic-fault tests victims fuzz-seeds docs $(STATIC)
	@$(RUN) $(UNIT_BIN) $(FUZZ_BIN) $(LIVE_BIN) $(if $(SAN),,$(TORTURE_BIN))
unit: $(UNIT_BIN) $(FUZZ_BIN) fuzz-seeds
	@$(RUN) $(UNIT_BIN) $(FUZZ_BIN)
live: $(PROG) $(BUILD)/heapmedic-fault $(LIVE_BIN) victims docs $(STATIC)
	@$(RUN) $(LIVE_BIN)
torture: $(PROG) $(BUILD)/heapmedic-fault $(TORTURE_BIN) victims
	@TORTURE=full $(RUN) $(TORTURE_BIN)

# The same on processes of other releases, other versions of glibc and jemalloc; what these need of their own is built there.
# ROOTS="bullseye sid" takes only these, ROOT_TESTS="live/test_agree" only this program.
ROOT_TESTS := $(addprefix live/test_,agree arenas broken diagnose find_jemalloc jemalloc look maps predict prof snapshot survive watch) torture/test_kill
test-roots test-glibcs: $(PROG) $(BUILD)/heapmedic-fault $(ROOT_TESTS:%=$(BUILD)/tests/%)
	@HEAPMEDIC=$(abspath $(PROG)) HEAPMEDIC_FAULT=$(abspath $(BUILD)/heapmedic-fault) scripts/test-roots.sh $(BUILD) $(ROOT_TESTS:%=$(BUILD)/tests/%)

# ---- seeds that are built: ELF files, and memory with such files in it
FUZZ_SEEDS := $(BUILD)/fuzz-seeds
FUZZ_ELF := $(patsubst tests/fuzz/seeds/%.c,$(FUZZ_SEEDS)/elf/%,$(sort $(wildcard tests/fuzz/seeds/*.c)))
SEED_FLAGS := -Os -w -nostdlib -Wl,-z,noseparate-code -Wl,-z,max-page-size=4096
fuzz-seeds: $(FUZZ_SEEDS)/made
$(FUZZ_SEEDS)/elf/%: tests/fuzz/seeds/%.c | $(DEPS)
	@echo "  SEED    $@"
	@mkdir -p $(@D)
	$(Q)$(VICTIM_CC) $(SEED_FLAGS) $(shell sed -n 's,^// flags: ,,p' $<) -o $@ $<
$(FUZZ_SEEDS)/made: $(BUILD)/tests/fuzz/make_seeds $(FUZZ_ELF)
	$(Q)$< $(FUZZ_SEEDS) $(FUZZ_ELF)
	$(Q)for n in mallocinfo procfs maps symbols; do mkdir -p $(FUZZ_SEEDS)/$$n || exit 1; done
	$(Q)cp $(FUZZ_ELF) $(FUZZ_SEEDS)/symbols
	$(Q)cp tests/fixtures/malloc_info/*.txt $(FUZZ_SEEDS)/mallocinfo
	$(Q)cp tests/fixtures/proc/[!m]* $(FUZZ_SEEDS)/procfs && cp tests/fixtures/proc/maps-* $(FUZZ_SEEDS)/maps && touch $@
# Never with sanitizers: one seed is its own heap, which must be glibc's.
$(BUILD)/tests/fuzz/make_seeds: tests/fuzz/make_seeds.c inject/payload/abi.h | $(DEPS)
	@mkdir -p $(@D)
	$(Q)$(VICTIM_CC) $(VICTIM_FLAGS) -o $@ $<

# ---- make fuzz: everything compiled once more, with clang, its sanitizers and libFuzzer's counters
FUZZ_BUILD := build-fuzz
FUZZ_CC := clang
SECONDS ?= 60
FUZZ_SAN := -fsanitize=address,undefined -fno-sanitize-recover=undefined -fno-omit-frame-pointer
FUZZ_FLAGS := $(filter-out $(FUZZ_SAN),$(CFLAGS)) $(FUZZ_SAN)
FUZZ_LIB := $(LIB_SRC:%.c=$(FUZZ_BUILD)/%.o) $(BUILD)/inject/payload_blob.o
$(FUZZ_BUILD)/flags: FORCE
	@mkdir -p $(@D)
	@echo '$(subst ','\'',$(CPPFLAGS) $(FUZZ_FLAGS))' | cmp -s - $@ || echo '$(subst ','\'',$(CPPFLAGS) $(FUZZ_FLAGS))' >$@
$(FUZZ_BUILD)/%.o: %.c $(FUZZ_BUILD)/flags | $(DEPS) $(GEN_HDR)
	@echo "  CC      $@"
	@mkdir -p $(@D)
	$(Q)$(FUZZ_CC) $(CPPFLAGS) $(FUZZ_FLAGS) -fsanitize=fuzzer-no-link $(LIB_CFLAGS) -MMD -MP -c -o $@ $<
$(FUZZ_BUILD)/agent/mallctl.o: $(BUILD)/gen/mallctl_table.inc
$(FUZZ_BUILD)/agent/flame.o: $(BUILD)/gen/flame_js.inc
$(FUZZ_BUILD)/libheapmedic.a: $(FUZZ_LIB)
	@echo "  AR      $@"
	$(Q)rm -f $@ && $(AR) rcs $@ $^
$(FUZZ_BUILD)/fuzz_%: $(FUZZ_BUILD)/tests/fuzz/fuzz_%.o $(FUZZ_OBJ:$(BUILD)/%=$(FUZZ_BUILD)/%) $(FUZZ_BUILD)/libheapmedic.a
	@echo "  LD      $@"
	$(Q)$(FUZZ_CC) $(FUZZ_FLAGS) -fsanitize=fuzzer -o $@ $^ $(LIBS)
# FUZZ="elf maps" runs only these.
FUZZ ?= $(FUZZ_NAMES)
fuzz: $(FUZZ:%=$(FUZZ_BUILD)/fuzz_%) fuzz-seeds
	@scripts/fuzz.sh $(FUZZ_BUILD) $(FUZZ_SEEDS) $(SECONDS) $(FUZZ)

# ---- victims: the programs that the live tests attach to. Never with sanitizers, whatever the rest is built with.
VICTIMS ?= $(BUILD)/victims
VICTIM_CC ?= gcc
VICTIM_FLAGS := -std=gnu11 -O2 -g -Wall -Wextra -Werror -D_GNU_SOURCE -pthread
# VICTIM_LIBS_NAME are the libraries of one that needs some.
VICTIM_LIBS_sampled := -ljemalloc
VICTIM_LIBS_profiled := -ljemalloc
VICTIM_C := $(patsubst tests/victims/%.c,%,$(sort $(wildcard tests/victims/*.c)))
VICTIM_JEM := static nopie whole hidden rust stripped bare
VICTIM_PLUGINS := hidden exported stripped symbolic functions plain liar
VICTIM_TCM := linked static whole cxx bare
VICTIM_ALL := $(VICTIM_C) $(VICTIM_JEM:%=jem-%) jem-host $(VICTIM_PLUGINS:%=jem-%.so) $(VICTIM_TCM:%=tcm-%) tcm-busy tcm-plugin.so mi-plugin.so muslretained wrapper.so ownmalloc.so stackstls stackshuge jemlinked m32 musl static cachedstatic shapesstatic threadstatic nolibc slowld slowstart gocgo goload gopure Jvm.class JvmLoad.class py.py pyload.py nodeload.js

victims: $(VICTIM_ALL:%=$(VICTIMS)/%)

$(VICTIM_C:%=$(VICTIMS)/%): $(VICTIMS)/%: tests/victims/%.c $(wildcard tests/victims/*.h) | $(DEPS)
	@echo "  VICTIM  $@"
	@mkdir -p $(@D)
	$(Q)$(VICTIM_CC) $(VICTIM_FLAGS) -o $@ $< $(VICTIM_LIBS_$*)
comma := ,
$(VICTIMS)/stackstls: VARIANT := -DWITH_TLS
$(VICTIMS)/stackshuge: VARIANT := -DWITH_TLS -DHUGE_TLS
$(VICTIMS)/stackstls $(VICTIMS)/stackshuge: tests/victims/stacks.c tests/victims/victim.h | $(DEPS)
	@echo "  VICTIM  $@"
	@mkdir -p $(@D)
	$(Q)$(VICTIM_CC) $(VICTIM_FLAGS) $(VARIANT) -o $@ $<
$(VICTIMS)/jemlinked: tests/victims/retained.c tests/victims/victim.h | $(DEPS)
	@echo "  VICTIM  $@"
	@mkdir -p $(@D)
	$(Q)$(VICTIM_CC) $(VICTIM_FLAGS) -o $@ $< -ljemalloc
# jemalloc in every way that it can be in a program: Debian's archive, and the same with the names that Rust's crates give it.
JEMALLOC_A = $(shell $(PKG_CONFIG) --variable=libdir jemalloc)/libjemalloc_pic.a
JEM_LIBS := -lm -ldl
$(VICTIMS)/librjem.a: | $(DEPS)
	@echo "  VICTIM  $@"
	@mkdir -p $(@D)
	$(Q)nm -g --defined-only $(JEMALLOC_A) 2>/dev/null | awk 'NF == 3 && $$3 !~ /^(je_|_Z)/ { print $$3, "_rjem_" $$3 }' | sort -u >$@.names
	$(Q)objcopy --redefine-syms=$@.names $(JEMALLOC_A) $@
$(VICTIMS)/jem-rust $(VICTIMS)/jem-stripped $(VICTIM_PLUGINS:%=$(VICTIMS)/jem-%.so): $(VICTIMS)/librjem.a
JEM_DEPS := $(wildcard tests/victims/jemalloc/* tests/victims/*.h)
RJEM := -DPREFIX=_rjem_
$(VICTIMS)/jem-static: VARIANT = -pie -fPIE
$(VICTIMS)/jem-nopie: VARIANT = -no-pie -fno-pie -Wl,--gc-sections
$(VICTIMS)/jem-whole: VARIANT = -static
$(VICTIMS)/jem-hidden: VARIANT = -Wl,--exclude-libs,ALL
$(VICTIMS)/jem-rust $(VICTIMS)/jem-stripped: VARIANT = $(RJEM)
$(VICTIMS)/jem-bare: VARIANT = -s
$(VICTIMS)/jem-rust $(VICTIMS)/jem-stripped: JEM_A = $(VICTIMS)/librjem.a
$(VICTIM_JEM:%=$(VICTIMS)/jem-%): JEM_A ?= $(JEMALLOC_A)
$(VICTIM_JEM:%=$(VICTIMS)/jem-%): $(JEM_DEPS) | $(DEPS)
	@echo "  VICTIM  $@"
	@mkdir -p $(@D)
	$(Q)$(VICTIM_CC) $(VICTIM_FLAGS) $(VARIANT) -o $@ tests/victims/jemalloc/program.c $(JEM_A) $(JEM_LIBS)
# With its symbols in a file of their own, beside it: a test puts that where debug files are looked for.
	$(Q)[ $(@F) != jem-stripped ] || { objcopy --only-keep-debug $@ $@.debug && strip $@; }
$(VICTIMS)/jem-hidden.so: VARIANT = $(RJEM) -Wl,--exclude-libs,ALL
$(VICTIMS)/jem-exported.so: VARIANT = $(RJEM)
$(VICTIMS)/jem-stripped.so: VARIANT = $(RJEM) -Wl,--exclude-libs,ALL -s
$(VICTIMS)/jem-symbolic.so: VARIANT = -Wl,-Bsymbolic
$(VICTIMS)/jem-functions.so: VARIANT = -Wl,-Bsymbolic-functions
$(VICTIMS)/jem-plain.so: VARIANT =
$(VICTIMS)/jem-symbolic.so $(VICTIMS)/jem-functions.so $(VICTIMS)/jem-plain.so: JEM_A = $(JEMALLOC_A)
$(filter-out %/jem-liar.so,$(VICTIM_PLUGINS:%=$(VICTIMS)/jem-%.so)): JEM_A ?= $(VICTIMS)/librjem.a
$(filter-out %/jem-liar.so,$(VICTIM_PLUGINS:%=$(VICTIMS)/jem-%.so)): $(JEM_DEPS) | $(DEPS)
	@echo "  VICTIM  $@"
	$(Q)$(VICTIM_CC) $(VICTIM_FLAGS) -fPIC -shared $(VARIANT) -Wl,-soname,$(@F) -o $@ tests/victims/jemalloc/plugin.c $(JEM_A) $(JEM_LIBS)
$(VICTIMS)/jem-liar.so: $(JEM_DEPS) | $(DEPS)
	@echo "  VICTIM  $@"
	$(Q)$(VICTIM_CC) -shared -nostdlib -o $@ tests/victims/jemalloc/liar.S
# tcmalloc in every way, too: Debian's library, its archive, and the same without the names of its C functions, or without any.
TCM_A = $(shell $(CC) -print-file-name=libtcmalloc_minimal.a) -lstdc++ -lm
$(VICTIMS)/tcm-static $(VICTIMS)/tcm-cxx $(VICTIMS)/tcm-bare: VARIANT = $(TCM_A)
$(VICTIMS)/tcm-linked: VARIANT = -ltcmalloc_minimal
$(VICTIMS)/tcm-whole: VARIANT = -static $(TCM_A)
$(VICTIM_TCM:%=$(VICTIMS)/tcm-%): tests/victims/retained.c tests/victims/victim.h | $(DEPS)
	@echo "  VICTIM  $@"
	@mkdir -p $(@D)
	$(Q)$(VICTIM_CC) $(VICTIM_FLAGS) -o $@ $< $(VARIANT)
	$(Q)[ $(@F) != tcm-cxx ] || objcopy --wildcard --strip-symbol='MallocExtension_*' $@
	$(Q)[ $(@F) != tcm-bare ] || strip $@
$(VICTIMS)/tcm-busy: tests/victims/single.c tests/victims/victim.h | $(DEPS)
	@echo "  VICTIM  $@"
	@mkdir -p $(@D)
	$(Q)$(VICTIM_CC) $(VICTIM_FLAGS) -o $@ $< $(TCM_A)
# Plugins that call an allocator by its own names.
$(VICTIMS)/tcm-plugin.so: VARIANT = -DPREFIX=tc_ -DNOT_JEMALLOC -ltcmalloc_minimal
$(VICTIMS)/mi-plugin.so: VARIANT = -DPREFIX=mi_ -DNOT_JEMALLOC -lmimalloc
$(VICTIMS)/tcm-plugin.so $(VICTIMS)/mi-plugin.so: $(JEM_DEPS) | $(DEPS)
	@echo "  VICTIM  $@"
	@mkdir -p $(@D)
	$(Q)$(VICTIM_CC) $(VICTIM_FLAGS) -fPIC -shared -o $@ tests/victims/jemalloc/plugin.c $(VARIANT)
# A malloc that is nobody's: one that hands on to glibc's, and one with memory of its own.
$(VICTIMS)/ownmalloc.so: VARIANT = -DOWN
$(VICTIMS)/wrapper.so $(VICTIMS)/ownmalloc.so: tests/victims/allocators/wrapper.c | $(DEPS)
	@echo "  VICTIM  $@"
	@mkdir -p $(@D)
	$(Q)$(VICTIM_CC) $(VICTIM_FLAGS) -fno-builtin -fPIC -shared $(VARIANT) -o $@ $<
$(VICTIMS)/muslretained: tests/victims/retained.c tests/victims/victim.h | $(DEPS)
	@echo "  VICTIM  $@"
	@mkdir -p $(@D)
	$(Q)musl-gcc $(VICTIM_FLAGS) -o $@ $<
$(VICTIMS)/jem-host: $(JEM_DEPS) | $(DEPS)
	@echo "  VICTIM  $@"
	@mkdir -p $(@D)
	$(Q)$(VICTIM_CC) $(VICTIM_FLAGS) -o $@ tests/victims/jemalloc/host.c -ldl
$(VICTIMS)/m32: tests/victims/single.c tests/victims/victim.h | $(DEPS)
	@echo "  VICTIM  $@"
	@mkdir -p $(@D)
	$(Q)$(VICTIM_CC) $(VICTIM_FLAGS) -m32 -o $@ $<
$(VICTIMS)/musl: tests/victims/single.c tests/victims/victim.h | $(DEPS)
	@echo "  VICTIM  $@"
	@mkdir -p $(@D)
	$(Q)musl-gcc $(VICTIM_FLAGS) -o $@ $<
$(VICTIMS)/static: tests/victims/eight.c
$(VICTIMS)/cachedstatic: tests/victims/cached.c
$(VICTIMS)/shapesstatic: tests/victims/shapes.c
# All of libc that a thread of ours and its calls take is in it.
$(VICTIMS)/threadstatic: tests/victims/shapes.c
$(VICTIMS)/threadstatic: VARIANT := $(addprefix -Wl$(comma)-u$(comma),$(addprefix pthread_attr_,init setstack setdetachstate destroy) malloc_stats malloc_info malloc_trim)
$(VICTIMS)/static $(VICTIMS)/cachedstatic $(VICTIMS)/shapesstatic $(VICTIMS)/threadstatic: $(wildcard tests/victims/*.h) | $(DEPS)
	@echo "  VICTIM  $@"
	@mkdir -p $(@D)
	$(Q)$(VICTIM_CC) $(VICTIM_FLAGS) $(VARIANT) -static -o $@ $(filter %.c,$^)
$(VICTIMS)/nolibc: tests/victims/nolibc.S | $(DEPS)
	@echo "  VICTIM  $@"
	@mkdir -p $(@D)
	$(Q)$(VICTIM_CC) -nostdlib -static -Wl,-z,noexecstack -o $@ $<
# The kernel maps it beside the program, wherever there is room.
$(VICTIMS)/slowld: tests/victims/slowld.S | $(DEPS)
	@echo "  VICTIM  $@"
	@mkdir -p $(@D)
	$(Q)$(VICTIM_CC) -nostdlib -static-pie -Wl,-z,noexecstack -o $@ $<
$(VICTIMS)/slowstart: tests/victims/single.c tests/victims/victim.h $(VICTIMS)/slowld | $(DEPS)
	@echo "  VICTIM  $@"
	$(Q)$(VICTIM_CC) $(VICTIM_FLAGS) -Wl,--dynamic-linker=$(abspath $(VICTIMS))/slowld -o $@ $<
# Nothing is fetched: the program uses the standard library only. The caches stay under $(BUILD).
$(VICTIMS)/gocgo $(VICTIMS)/goload: CGO := 1
$(VICTIMS)/gopure: CGO := 0
$(VICTIMS)/gopure: GO_FLAGS := -ldflags '-s -w'
$(VICTIMS)/gocgo $(VICTIMS)/goload $(VICTIMS)/gopure: $(VICTIMS)/%: tests/victims/%/main.go | $(DEPS)
	@echo "  VICTIM  $@"
	@mkdir -p $(@D)
	$(Q)cd $(<D) && GOFLAGS=-mod=mod GOPROXY=off GO111MODULE=auto CGO_ENABLED=$(CGO) GOCACHE=$(abspath $(BUILD))/go-cache \
		GOPATH=$(abspath $(BUILD))/go-path go build $(GO_FLAGS) -o $(abspath $@) $(<F)
$(VICTIMS)/%.class: tests/victims/%.java | $(DEPS)
	@echo "  VICTIM  $@"
	@mkdir -p $(@D)
	$(Q)javac -d $(@D) $<
$(VICTIMS)/py.py $(VICTIMS)/pyload.py $(VICTIMS)/nodeload.js: $(VICTIMS)/%: tests/victims/% | $(DEPS)
	@mkdir -p $(@D)
	$(Q)cp $< $@

demo: $(PROG) $(VICTIMS)/retained $(VICTIMS)/growing
	@scripts/demo.sh ./$(PROG) $(VICTIMS)/retained $(VICTIMS)/growing

# ---- how fast it is
# Nothing here fails for being slow: it is measured, and the table says where a figure is not reached. SHAPES="ordered live" runs only these.
$(BENCH): $(BUILD)/tests/bench/%: $(BUILD)/tests/bench/%.o
	@echo "  LD      $@"
	$(Q)$(CC) $(CFLAGS) $(LDFLAGS) -o $@ $^ $(shell $(PKG_CONFIG) --libs jansson)
bench: $(PROG) $(BENCH) $(VICTIMS)/vast
	@$(BUILD)/tests/bench/bench $(abspath $(PROG)) $(abspath $(VICTIMS)) $(BUILD)/bench.json $(SHAPES)
	@$(BUILD)/tests/bench/bench_profile $(abspath $(PROG)) $(abspath $(BUILD))/bench-profile $(BUILD)/bench-profile.json $(SHAPES)

bench-check: $(PROG) $(BUILD)/tests/bench/bench_profile
	@$(BUILD)/tests/bench/bench_profile $(abspath $(PROG)) $(abspath $(BUILD))/bench-profile $(BUILD)/bench-profile.json profile check

# ---- the rest
lint: $(GEN_HDR)
	@scripts/lint.sh
format:
	git ls-files '*.c' '*.h' | xargs clang-format -i

static: heapmedic-static
heapmedic-static: $(MAIN_OBJ) $(BUILD)/libheapmedic.a
	@echo "  LD      $@"
	$(Q)$(CC) $(CFLAGS) -static -o $@ $^ -Wl,--start-group $(STATIC_LIBS) -Wl,--end-group

install: $(PROG) $(DOC_FILES)
	install -D -m 755 $(PROG) $(DESTDIR)$(PREFIX)/bin/heapmedic
	install -D -m 644 $(DOCS)/heapmedic.1 $(DESTDIR)$(PREFIX)/share/man/man1/heapmedic.1
	install -D -m 644 $(DOCS)/heapmedic-json.5 $(DESTDIR)$(PREFIX)/share/man/man5/heapmedic-json.5
	install -D -m 644 $(DOCS)/heapmedic.bash $(DESTDIR)$(PREFIX)/share/bash-completion/completions/heapmedic
	install -D -m 644 $(DOCS)/_heapmedic $(DESTDIR)$(ZSH_COMPLETIONS)/_heapmedic
	for f in scripts/*.hm; do [ ! -e "$$f" ] || install -D -m 644 -t $(DESTDIR)$(PREFIX)/share/heapmedic "$$f" || exit 1; done
	for d in prometheus grafana kubernetes ansible; do \
		install -D -m 644 -t $(DESTDIR)$(PREFIX)/share/heapmedic/$$d scripts/$$d/* || exit 1; done
	install -D -m 644 -t $(DESTDIR)$(PREFIX)/share/heapmedic/systemd scripts/systemd/*.conf
	install -d $(DESTDIR)$(PREFIX)/lib/systemd/system
	for f in scripts/systemd/*@.*; do to=$(DESTDIR)$(PREFIX)/lib/systemd/system/$${f##*/}; \
		sed 's,/usr/local/bin/,$(PREFIX)/bin/,' "$$f" >"$$to" && chmod 644 "$$to" || exit 1; done

# A Debian package, in build/deb.
deb: $(PROG) $(DOC_FILES)
	scripts/deb.sh $(BUILD) $(VERSION) $(RELEASED)

# ---- the same program with places to be killed at, for the live tests only
FAULT_OBJ := $(patsubst %.c,$(BUILD)/fault/%.o,inject/tracer.c inject/mem.c inject/proxy.c inject/fault_point.c)
$(BUILD)/fault/%.o: %.c $(BUILD)/flags | $(DEPS) $(GEN_HDR)
	@echo "  CC      $@"
	@mkdir -p $(@D)
	$(Q)$(CC) $(CPPFLAGS) $(CFLAGS) $(LIB_CFLAGS) -DHM_FAULT_POINTS -MMD -MP -c -o $@ $<

$(BUILD)/heapmedic-fault: $(MAIN_OBJ) $(FAULT_OBJ) $(BUILD)/libheapmedic.a
	@echo "  LD      $@"
	$(Q)$(CC) $(CFLAGS) $(LDFLAGS) -o $@ $^ $(LIBS)

clean:
	rm -rf $(BUILD) build-san build-clang $(FUZZ_BUILD) heapmedic heapmedic-static

-include $(shell find $(BUILD) $(FUZZ_BUILD) -path $(BUILD)/roots -prune -o -name '*.d' -type f -print 2>/dev/null)
