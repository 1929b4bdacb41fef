# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only

PREFIX ?= /usr/local
CC ?= cc
CXX ?= c++
CARGO ?= cargo
INSTALL ?= install
CFLAGS ?= -O2 -g
DESTDIR ?=

VERSION := $(shell sed -n 's/^\#define LW_VERSION "\(.*\)"/\1/p' lib/include/lockworks/lockworks.h)
INCLUDES := -Ilocks -Iworlds/user -Ilib/include
WARNINGS := -Wall -Wextra
LW_CFLAGS := -std=gnu17 $(WARNINGS) -fPIC -fvisibility=hidden -pthread $(INCLUDES)

SOURCES := $(wildcard locks/*.c worlds/user/*.c lib/*.c)
OBJECTS := $(SOURCES:%.c=build/%.o)
PRELOAD_OBJECTS := $(patsubst %.c,build/%.o,$(wildcard preload/*.c))
TESTS := $(patsubst tests/user/%.c,%,$(wildcard tests/user/*.c))
PRELOAD_TESTS := $(filter-out library,$(basename $(notdir $(wildcard tests/preload/*.c tests/preload/*.cc))))
# Those that a program may fork with held: the locks whose waiters sleep, but one.
PRELOAD_LOCKS := mutex pv unfair pv42
C_FILES = $(shell find locks worlds lib preload tests crates kernel -name '*.[ch]' -o -name '*.cc')
# The public header and all that it includes, which end up in one directory.
HEADERS = $(sort $(filter %.h,$(shell $(CC) -MM $(INCLUDES) -x c lib/include/lockworks/lockworks.h)))
INSTALLED = $(PREFIX)/include/lockworks $(PREFIX)/lib/liblockworks.a $(PREFIX)/lib/liblockworks.so \
	$(PREFIX)/lib/liblockworks.so.0 $(PREFIX)/lib/liblockworks-preload.so \
	$(PREFIX)/lib/pkgconfig/lockworks.pc $(PREFIX)/bin/lockworks

.PHONY: all lib cargo programs setup setup-kernel setup-programs test test-format test-c test-preload test-headers test-cargo \
	test-kernel test-kernel-quick demo bench install install-lib uninstall clean help
.DELETE_ON_ERROR:

all: lib cargo

lib: build/liblockworks.a build/liblockworks.so build/liblockworks-preload.so

cargo:
	$(CARGO) build --release --workspace

setup:
	@scripts/setup.sh

setup-kernel: setup
	@scripts/setup.sh kernel

setup-programs: setup
	@scripts/setup.sh programs

# Loads for libraries, which know nothing of us.
programs: build/programs/readrandom

build/programs/readrandom: tests/programs/readrandom.cc
	@mkdir -p $(@D)
	$(CXX) -std=gnu++17 $(WARNINGS) -pthread $(CFLAGS) $< $(LDFLAGS) -lleveldb -o $@

build/%.o: %.c
	@mkdir -p $(@D)
	$(CC) $(LW_CFLAGS) $(CFLAGS) -MMD -MP -c $< -o $@

build/liblockworks.a: $(OBJECTS)
	rm -f $@
	$(AR) rcs $@ $^

# Threads return their slots at exit through the library, so it must not be unloaded.
build/liblockworks.so.0: $(OBJECTS)
	$(CC) -shared -pthread -Wl,-soname,$(@F) -Wl,-z,nodelete -Wl,-z,defs $(LDFLAGS) $^ -o $@

build/liblockworks.so: build/liblockworks.so.0
	ln -sf $(<F) $@

# A library of its own, with all the locks in it, so that programs may have the other one as well.
# Everything is bound at start: a lock is no place to look symbols up.
build/liblockworks-preload.so: $(OBJECTS) $(PRELOAD_OBJECTS) preload/exports.map
	$(CC) -shared -pthread -Wl,-soname,$(@F) -Wl,-z,nodelete -Wl,-z,defs -Wl,-z,now \
		-Wl,-Bsymbolic-functions 		-Wl,--version-script=preload/exports.map $(LDFLAGS) $(filter %.o,$^) -o $@

# The tests know the library from inside, so they are linked with the static one.
build/tests/%: tests/user/%.c build/liblockworks.a
	@mkdir -p $(@D)
	$(CC) $(LW_CFLAGS) $(CFLAGS) -MMD -MP $< $(filter %.o %.a,$^) $(LDFLAGS) -o $@

build/tests/conformance: build/tests/shared/client.o
build/tests/lockref: build/tests/shared/lockref_planted.o

test: setup setup-programs test-format test-c test-preload test-headers test-cargo test-kernel-quick

test-format:
	clang-format --dry-run -Werror $(C_FILES)
	$(CARGO) fmt --all --check

test-c: $(TESTS:%=build/tests/%)
	@for test in $(TESTS); do \
		echo "test $$test"; \
		build/tests/$$test || { echo "test $$test FAILED"; exit 1; }; \
	done

# Programs that know nothing of us, under glibc alone and under the preload library.
build/tests/preload/%: tests/preload/%.c
	@mkdir -p $(@D)
	$(CC) -std=gnu17 $(WARNINGS) -pthread $(CFLAGS) -MMD -MP $< $(LDFLAGS) -o $@ $(LIBRARIES)

build/tests/preload/%: tests/preload/%.cc
	@mkdir -p $(@D)
	$(CXX) -std=gnu++17 $(WARNINGS) -pthread $(CFLAGS) -MMD -MP $< $(LDFLAGS) -o $@

# One is linked with the program, the other loaded by it when it runs. Without lazy binding, which
# would not be ready when indirect functions are resolved.
build/tests/preload/libearly.so build/tests/preload/libloaded.so: tests/preload/library.c
	@mkdir -p $(@D)
	$(CC) -std=gnu17 $(WARNINGS) -pthread -fPIC -fno-plt -shared $(CFLAGS) -MMD -MP $< $(LDFLAGS) -o $@

build/tests/preload/lifetime: LIBRARIES := -Lbuild/tests/preload -learly -Wl,-rpath,'$$ORIGIN'
build/tests/preload/lifetime: | build/tests/preload/libearly.so build/tests/preload/libloaded.so

test-preload: build/liblockworks-preload.so $(PRELOAD_TESTS:%=build/tests/preload/%)
	@for test in $(PRELOAD_TESTS); do \
		echo "test preload $$test: glibc $(PRELOAD_LOCKS)"; \
		build/tests/preload/$$test || { echo "test $$test FAILED under glibc"; exit 1; }; \
		for lock in $(PRELOAD_LOCKS); do \
			LD_PRELOAD=$(CURDIR)/build/liblockworks-preload.so LOCKWORKS_LOCK=$$lock \
				EXPECTED_LOCK=$$lock build/tests/preload/$$test || \
				{ echo "test $$test FAILED under $$lock"; exit 1; }; \
		done; \
	done

# What users get: the installed headers by way of pkg-config, in each language, with no warning.
STAGE := $(CURDIR)/build/stage
PKG_CONFIG := PKG_CONFIG_PATH=$(STAGE)/lib/pkgconfig pkg-config
test-headers: lib
	rm -rf $(STAGE)
	@mkdir -p build/tests
	@$(MAKE) --no-print-directory install-lib PREFIX=$(STAGE) DESTDIR=
	@for language in c:c11 c:c17 c++:c++17; do \
		for options in "" "-static"; do \
			compiler='$(CC)'; [ $${language%:*} = c ] || compiler='$(CXX)'; \
			echo "test installed headers as $${language#*:} $$options" && \
			$$compiler -x $${language%:*} -std=$${language#*:} -Wall -Wextra -Wpedantic \
				-Werror -pthread $$($(PKG_CONFIG) --cflags lockworks) tests/user/installed/use.c \
				-x none $$options $$($(PKG_CONFIG) --libs lockworks) -o build/tests/use && \
			LD_LIBRARY_PATH=$(STAGE)/lib build/tests/use || exit 1; \
		done; \
	done
	@test -z "$$(nm -D --defined-only build/liblockworks.so | grep -v ' lw_')"

test-cargo: lib programs
	$(CARGO) test --release --workspace
	$(CARGO) clippy --release --workspace --all-targets -- -D warnings

# Kernels built and booted, one at a time; the sources and builds are kept in the cache.
KERNEL_TEST := $(CARGO) test --release -p lockworks-cli --test kernel -- --ignored --test-threads 1

test-kernel-quick: setup-kernel
	$(KERNEL_TEST) quick

test-kernel: setup-kernel
	$(KERNEL_TEST) --nocapture

demo: setup all
	target/release/lockworks demo

bench: setup-programs all programs
	target/release/lockworks-bench

install: install-lib cargo
	$(INSTALL) -D target/release/lockworks $(DESTDIR)$(PREFIX)/bin/lockworks
	@[ -n "$(DESTDIR)" ] || ldconfig 2>/dev/null || true # so that the loader finds the library

install-lib: lib
	$(INSTALL) -d $(DESTDIR)$(PREFIX)/include/lockworks $(DESTDIR)$(PREFIX)/lib/pkgconfig
	$(INSTALL) -m 644 $(HEADERS) $(DESTDIR)$(PREFIX)/include/lockworks
	$(INSTALL) -m 644 build/liblockworks.a $(DESTDIR)$(PREFIX)/lib
	$(INSTALL) -m 755 build/liblockworks.so.0 build/liblockworks-preload.so \
		$(DESTDIR)$(PREFIX)/lib
	ln -sf liblockworks.so.0 $(DESTDIR)$(PREFIX)/lib/liblockworks.so
	sed 's|@prefix@|$(PREFIX)|; s|@version@|$(VERSION)|' lib/lockworks.pc.in \
		> $(DESTDIR)$(PREFIX)/lib/pkgconfig/lockworks.pc

uninstall:
	rm -rf $(INSTALLED:%=$(DESTDIR)%)

clean:
	rm -rf build
	$(CARGO) clean

help:
	@echo 'make             build the C library (build/) and the programs (target/release/)'
	@echo 'make test        check everything'
	@echo 'make test-kernel all that can be checked of kernels; an hour. make test has some of it'
	@echo 'make programs    drivers of libraries that the tests and benchmarks load (build/programs/)'
	@echo 'make demo        see what it does'
	@echo 'make bench       measure the locks side by side on this machine'
	@echo 'make install     PREFIX=/usr/local [DESTDIR=]: library, headers, pkg-config file, command'
	@echo 'make uninstall   take that away again'
	@echo 'make setup       look for the tools needed; as root, install those missing'
	@echo 'make clean       remove what was built'

-include $(OBJECTS:.o=.d) $(PRELOAD_OBJECTS:.o=.d) $(TESTS:%=build/tests/%.d) build/tests/shared/client.d \
	build/tests/shared/lockref_planted.d $(PRELOAD_TESTS:%=build/tests/preload/%.d)
