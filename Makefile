# SPDX-License-Identifier: GPL-3.0-or-later
# One Makefile, no recursion. Everything that is built lies under $(BUILD), the program at ./heapmedic.
# Useful variables: V=1 shows commands, CC=clang, SAN=1 builds with ASan and UBSan (use another BUILD).

BUILD ?= build
PREFIX ?= /usr/local
DESTDIR ?=
PROG ?= heapmedic
VERSION := 0.1.0

CC ?= cc
PKG_CONFIG ?= pkg-config
OBJCOPY ?= objcopy
PKGS := libunwind-ptrace libelf jansson expat zlib
Q := $(if $(V),,@)

WARN := -Wall -Wextra -Wshadow -Wconversion -Wstrict-prototypes -Wmissing-prototypes -Wwrite-strings \
	-Wpointer-arith -Wformat=2 -Wundef -Werror
CFLAGS ?= -O2 -g
override CPPFLAGS += -D_GNU_SOURCE -DHM_VERSION='"$(VERSION)"' -I$(BUILD)/gen
override CFLAGS += -std=c11 $(WARN) -fstack-protector-strong -fno-common -pthread
ifdef SAN
override CFLAGS += -fsanitize=address,undefined -fno-sanitize-recover=undefined -fno-omit-frame-pointer
override LDFLAGS += -fsanitize=address,undefined
endif
# Looked up only where something is compiled: `make clean` and `make install-deps` work without the libraries.
LIB_CFLAGS = $(shell $(PKG_CONFIG) --cflags $(PKGS))
LIBS = $(shell $(PKG_CONFIG) --libs $(PKGS)) -lreadline

LIB_SRC := $(sort $(wildcard inject/*.c agent/*.c)) $(filter-out repl/main.c,$(sort $(wildcard repl/*.c)))
LIB_OBJ := $(LIB_SRC:%.c=$(BUILD)/%.o) $(BUILD)/inject/payload_blob.o
MAIN_OBJ := $(BUILD)/repl/main.o
UNIT_SRC := $(sort $(wildcard tests/unit/*.c))
LIVE_SRC := $(sort $(wildcard tests/live/*.c))

.PHONY: all clean
all: $(PROG)

$(PROG): $(MAIN_OBJ) $(BUILD)/libheapmedic.a
	@echo "  LD      $@"
	$(Q)$(CC) $(CFLAGS) $(LDFLAGS) -o $@ $^ $(LIBS)

$(BUILD)/libheapmedic.a: $(LIB_OBJ)
	@echo "  AR      $@"
	$(Q)rm -f $@ && $(AR) rcs $@ $^

$(BUILD)/%.o: %.c
	@echo "  CC      $@"
	@mkdir -p $(@D)
	$(Q)$(CC) $(CPPFLAGS) $(CFLAGS) $(LIB_CFLAGS) -MMD -MP -c -o $@ $<

# ---- the code that runs inside the target: position independent, no relocations, general registers only
PAYLOAD_SRC := inject/payload/payload.c inject/payload/entry.S
PAYLOAD_FLAGS := -std=gnu11 -O2 -Wall -Wextra -Werror -ffreestanding -fPIC -fno-stack-protector -fcf-protection=none \
	-fno-jump-tables -fno-asynchronous-unwind-tables -fno-builtin -mgeneral-regs-only -fvisibility=hidden \
	-nostdlib -static -Wl,-z,noexecstack -Wl,--build-id=none

$(BUILD)/payload.elf: $(PAYLOAD_SRC) inject/payload/payload.lds inject/payload/abi.h
	@echo "  PAYLOAD $@"
	@mkdir -p $(@D)
	$(Q)$(CC) $(PAYLOAD_FLAGS) -T inject/payload/payload.lds -o $@ $(PAYLOAD_SRC)
	$(Q)if readelf -rW $@ | grep -q R_X86_64; then echo "payload has relocations"; rm -f $@; exit 1; fi

$(BUILD)/payload.bin: $(BUILD)/payload.elf
	$(Q)$(OBJCOPY) -O binary $< $@

$(BUILD)/inject/payload_blob.o: inject/payload/blob.S $(BUILD)/payload.bin
	@mkdir -p $(@D)
	$(Q)$(CC) -DPAYLOAD_BIN='"$(BUILD)/payload.bin"' -c -o $@ $<

clean:
	rm -rf $(BUILD) $(PROG)

-include $(shell find $(BUILD) -name '*.d' 2>/dev/null)
