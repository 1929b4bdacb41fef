# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only

PREFIX ?= /usr/local
override PREFIX := $(or $(abspath $(PREFIX)),$(error PREFIX is empty))
# Where programs find the library. Only lockworks loads those of lib/lockworks, into programs.
LIBDIR ?= $(PREFIX)/lib
# The processor and system to build for, as its tools name it (aarch64-linux-gnu). Empty: this machine's.
HOST ?=
# The emulator, with its options, that runs a program of HOST here.
RUNNER ?=
ifneq ($(HOST),)
CC := $(HOST)-gcc
CXX := $(HOST)-g++
AR := $(HOST)-ar
endif
CC ?= cc
CXX ?= c++
ifneq ($(RUNNER),)
export RUNNER
endif
CARGO ?= cargo
TARGET := $(or $(CARGO_TARGET_DIR),target)
# How Cargo builds: release, as the command is installed, or dev, for work and tests, which compiles only
# what has changed.
PROFILE ?= release
COMMAND = $(TARGET)/$(PROFILE:dev=debug)/lockworks
INSTALL ?= install
CFLAGS ?= -O2 -g
DESTDIR ?=
# The tool that watches what is built: valgrind, thread, address or undefined. Empty: none.
ANNOTATE ?=

# Where the project is found; without it, files name no place.
URL := $(shell sed -n 's/^repository = "\(.*\)"/\1/p' Cargo.toml)
VERSION := $(shell sed -n 's/^\#define LW_VERSION "\(.*\)"/\1/p' lib/include/lockworks/lockworks.h)
INCLUDES := -Ilocks -Ilocks/contract -Ilocks/parts -Ilocks/registry -Iworlds/user -Ilib/include
WARNINGS := -Wall -Wextra
# A thread that is cancelled while it waits unwinds its stack, also where compilers write no tables for that.
LW_CFLAGS = -std=gnu17 $(WARNINGS) -fPIC -fvisibility=hidden -fasynchronous-unwind-tables -pthread \
	$(ANNOTATION) $(INCLUDES) $(if $(filter musl-gcc,$(CC)),$(AFTER_LIBC))
# Debian's musl comes without the headers of Linux.
AFTER_LIBC = -idirafter /usr/include -idirafter /usr/include/$(shell $(CC) -print-multiarch 2>/dev/null)
# 1: with the historic locks, which are not in the library, but which its tests know.
HISTORIC ?=
BUILD_DIR := build$(HOST:%=/%)
BUILD := $(BUILD_DIR)$(HISTORIC:1=/historic)$(ANNOTATE:%=/%)
# The options for each tool. Programs that use the library need them too, for data races:
# worlds/user/annotations.h says why.
ANNOTATION_valgrind := -DLW_VALGRIND
ANNOTATION_thread := -fsanitize=thread -Wno-tsan
ANNOTATION_address := -fsanitize=address
ANNOTATION_undefined := -fsanitize=undefined -fno-sanitize-recover=all
ANNOTATION := $(ANNOTATION_$(ANNOTATE))
ifneq ($(ANNOTATE),)
ifeq ($(ANNOTATION),)
$(error ANNOTATE=$(ANNOTATE): it must be valgrind, thread, address or undefined)
endif
endif

SOURCES := $(wildcard locks/*.c worlds/user/*.c lib/*.c)
ifneq ($(HISTORIC),)
INCLUDES += -DLW_WITH_HISTORIC -Ilocks/historic -Iworlds/user/historic
SOURCES += $(wildcard locks/historic/*.c worlds/user/historic/*.c)
endif
OBJECTS := $(SOURCES:%.c=$(BUILD)/%.o)
PRELOAD_OBJECTS := $(patsubst %.c,$(BUILD)/%.o,$(wildcard interpose/common/*.c interpose/preload/*.c))
PROFILE_OBJECTS := $(patsubst %.c,$(BUILD)/%.o,$(wildcard interpose/common/*.c interpose/profile/*.c))
# The tests of the user world. One does not fit AddressSanitizer, whose allocator stays locked in the child
# of a fork.
UNFIT_address := fork
TESTS := $(filter-out $(UNFIT_$(ANNOTATE)),$(patsubst tests/user/%.c,%,$(wildcard tests/user/*.c)))
# One needs robust mutexes and those that inherit priorities, which QEMU's emulation of Linux has not. Another
# measures the process, which is QEMU's.
PRELOAD_TESTS := $(filter-out library $(if $(RUNNER),shared limits),$(basename $(notdir $(wildcard tests/preload/*.c tests/preload/*.cc))))
# The locks that a program may hold while it forks.
PRELOAD_LOCKS := mutex pv unfair
# Queue nodes are those of threads, whatever the lock. So one lock shows that those of ended threads are used
# again; others have fewer threads.
FULL_ONCE := keys lifetime
# A lock whose trylock fails in a child while it has bits of waiters of the parent.
FURTHER_LOCKS_destroy := qspinlock
# The public headers and all that they include, which end up in one directory.
HEADERS = $(sort $(filter %.h,$(shell $(CC) -MM $(INCLUDES) -x c lib/include/lockworks/lockworks.h))) \
	lib/include/lockworks/lockworks.hpp lib/include/lockworks/thread_safety.h
INSTALLED_HEADERS = $(addprefix $(PREFIX)/include/lockworks/,$(notdir $(HEADERS)))
INSTALLED = $(INSTALLED_HEADERS) $(LIBDIR)/liblockworks.a $(LIBDIR)/liblockworks.so \
	$(LIBDIR)/liblockworks.so.0 $(PREFIX)/lib/lockworks/liblockworks-preload.so \
	$(PREFIX)/lib/lockworks/liblockworks-profile.so \
	$(LIBDIR)/pkgconfig/lockworks.pc $(LIBDIR)/cps/lockworks.cps \
	$(LIBDIR)/cmake/lockworks/lockworksConfig.cmake $(LIBDIR)/cmake/lockworks/lockworksConfigVersion.cmake \
	$(PREFIX)/bin/lockworks \
	$(PREFIX)/share/man/man1/lockworks.1 $(PREFIX)/share/man/man1/lockworks-*.1 \
	$(PREFIX)/share/bash-completion/completions/lockworks $(PREFIX)/share/zsh/site-functions/_lockworks \
	$(PREFIX)/share/fish/vendor_completions.d/lockworks.fish

.PHONY: all lib cargo dev programs quick setup setup-compiles setup-kernel setup-programs setup-cross setup-crate test test-all test-wide test-tutorials test-format test-c test-historic \
	test-preload stage docs tables test-docs test-installed test-headers test-install test-load test-examples test-ways test-recipes test-crate test-sanitizers \
	test-cross test-arm64 test-riscv64 test-musl test-clang test-refused \
	test-helgrind test-drd test-thread test-address test-undefined test-cargo test-clippy test-python test-python-package \
	test-python-pages test-kernel test-kernel-quick test-kernel-compiles test-kernel-configurations test-conformance fuzz fuzz-rust demo \
	bench archive dist-c wheel test-wheel deb static test-static test-deb rpm test-rpm test-container test-reproducible release install install-lib uninstall clean help force $(TESTS:%=test-c-%) $(PRELOAD_TESTS:%=test-preload-%)
.DELETE_ON_ERROR:

all: lib cargo

# The preload library and the profiler stand in for glibc's functions: other C libraries do without them.
TARGET_MACROS := $(shell printf '\043if __LP64__ && __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__\n\043include <features.h>\n\043endif' | \
	$(CC) $(CFLAGS) -dM -E - 2>/dev/null)
HAS_GLIBC := $(findstring __GLIBC__ ,$(TARGET_MACROS))
ifneq ($(TARGET_MACROS),)
ifeq ($(findstring __LP64__,$(TARGET_MACROS)),)
$(error $(CC): Lockworks needs a 64-bit processor, and this compiler builds for another)
endif
ifeq ($(findstring __BYTE_ORDER__ __ORDER_LITTLE_ENDIAN__,$(TARGET_MACROS)),)
$(error $(CC): Lockworks needs a little-endian processor, and this compiler builds for another)
endif
endif

lib: $(BUILD)/liblockworks.a $(BUILD)/liblockworks.so \
	$(if $(HAS_GLIBC),$(BUILD)/liblockworks-preload.so $(BUILD)/liblockworks-profile.so)

cargo:
	$(CARGO) build --profile $(PROFILE) $(if $(filter dev,$(PROFILE)),--workspace,-p lockworks-cli)

# After each change: the library, the preload library, and the command, target/debug/lockworks.
dev: PROFILE := dev
dev: lib cargo

setup:
	@scripts/setup.sh

setup-compiles: setup
	@scripts/setup.sh compiles

setup-kernel: setup
	@scripts/setup.sh kernel

setup-programs: setup
	@scripts/setup.sh programs

setup-cross: setup
	@scripts/setup.sh cross

setup-crate: setup
	@scripts/setup.sh crate $(MSRV)

# Drivers that put a load on libraries.
programs: build/programs/readrandom

build/programs/readrandom: tests/programs/readrandom.cc
	@mkdir -p $(@D)
	$(CXX) -std=gnu++17 $(WARNINGS) -pthread $(CFLAGS) $< $(LDFLAGS) -lleveldb -o $@

$(BUILD)/interpose/%.o: LW_CFLAGS += -Iinterpose/common
$(BUILD)/%.o: %.c
	@mkdir -p $(@D)
	$(CC) $(LW_CFLAGS) $(CFLAGS) -MMD -MP -c $< -o $@

# Appended (q), not replaced (r): files of different directories may have the same name.
$(BUILD)/liblockworks.a: $(OBJECTS)
	rm -f $@
	$(AR) qcs $@ $^

# Threads return their slots at exit through the library, so it must not be unloaded.
$(BUILD)/liblockworks.so.0: $(OBJECTS) lib/lockworks.map
	$(CC) -shared -pthread $(ANNOTATION) -Wl,-soname,$(@F) -Wl,-z,nodelete -Wl,-z,defs \
		-Wl,--version-script=lib/lockworks.map $(LDFLAGS) $(OBJECTS) -o $@

# `lockworks profile` loads this library into programs.
$(BUILD)/liblockworks-profile.so: $(PROFILE_OBJECTS) $(BUILD)/liblockworks.a interpose/profile/exports.map
	$(CC) -shared -pthread $(ANNOTATION) -Wl,-soname,$(@F) -Wl,-z,nodelete -Wl,-z,defs -Wl,-z,now \
		-Wl,-Bsymbolic-functions -Wl,--version-script=interpose/profile/exports.map $(LDFLAGS) \
		$(filter %.o %.a,$^) -o $@

$(BUILD)/liblockworks.so: $(BUILD)/liblockworks.so.0
	ln -sf $(<F) $@

# A library of its own, with all the locks in it, so that programs may have the other one as well.
# All symbols are bound at start: a lock operation must not wait for the loader. It has its own way to
# learn that a thread exits, so lib/threads.c is not in it.
$(BUILD)/liblockworks-preload.so: $(filter-out $(BUILD)/lib/threads.o,$(OBJECTS)) $(PRELOAD_OBJECTS) interpose/preload/exports.map
	$(CC) -shared -pthread $(ANNOTATION) -Wl,-soname,$(@F) -Wl,-z,nodelete -Wl,-z,defs -Wl,-z,now \
		-Wl,-Bsymbolic-functions -Wl,--version-script=interpose/preload/exports.map $(LDFLAGS) \
		$(filter %.o,$^) -o $@

# The tests know the library from inside, so they are linked with the static one.
$(BUILD)/tests/% $(BUILD)/sanitizers/%: LW_CFLAGS += -Iclients
$(BUILD)/tests/%: LW_CFLAGS += $(ANNOTATE:%=-DLW_TEST_IS_WATCHED)
$(BUILD)/tests/%: tests/user/%.c $(BUILD)/liblockworks.a
	@mkdir -p $(@D)
	$(CC) $(LW_CFLAGS) $(CFLAGS) -MMD -MP $< $(filter %.o %.a,$^) $(LDFLAGS) -o $@

$(BUILD)/sanitizers/%: tests/sanitizers/%.c $(BUILD)/clients/conformance.o $(BUILD)/liblockworks.a
	@mkdir -p $(@D)
	$(CC) $(LW_CFLAGS) $(CFLAGS) -MMD -MP $^ $(LDFLAGS) -o $@

# Not all functions of a lockref that a macro defines are used, of which clang warns.
$(BUILD)/clients/lockref_mutants.o $(BUILD)/tests/lockref: WARNINGS += -Wno-unused-function
$(BUILD)/tests/conformance: $(BUILD)/clients/conformance.o
$(BUILD)/tests/lockref: $(BUILD)/clients/lockref_mutants.o

# Each stage ends before the next begins; its targets are made two or more at a time.
STAGES := setup setup-programs setup-compiles test-format test-c test-historic test-preload test-installed test-sanitizers \
	test-cargo test-clippy test-python test-docs test-kernel-compiles
MINUTES := 20
# Those that repeat the promises of STAGES wider, with the minutes that they take on two CPUs: all mutants, other
# processors, all kernels, and documents that build a copy of the repository.
WIDE := test-cross:8 test-crate:3 test-recipes:1 test-wide:30 test-tutorials:6 test-static:8 test-wheel:8 test-reproducible:45 test-kernel:60 test-kernel-configurations:10
test:
	@MAKE='$(MAKE)' scripts/stages.sh $(STAGES)

# Stages that have passed with the same files are not tested again.
test-all:
	@MAKE='$(MAKE)' scripts/stages.sh --resume $(STAGES:test-cargo=test-cargo:$(MINUTES)) $(WIDE)

# Test whether a change is sound: that of the working tree, or of LOCK.
quick:
	@scripts/quick.sh $(LOCK)

# Formats, spelling, types, links and the version: the hooks of .pre-commit-config.yaml.
test-format: build/tools/complete
	@build/tools/bin/pre-commit run --all-files

BINARY := --only-binary :all:
build/tools/complete: scripts/requirements.txt
build/python/complete: python/requirements.txt
build/mkdocs/complete: scripts/docs/requirements.txt
build/conan/complete: packaging/conan/requirements.txt
build/conan/complete: BINARY := # Conan comes as source only
build/tools/complete build/python/complete build/mkdocs/complete build/conan/complete:
	/usr/bin/python3 -m venv --clear $(@D)
	$(@D)/bin/pip install --quiet --disable-pip-version-check --no-deps $(BINARY) --requirement $<
	@touch $@

# Runs a test without the settings of Lockworks that the environment of make may have.
UNSET := env $(foreach variable,$(filter LOCKWORKS_%,$(.VARIABLES)),-u $(variable))

test-c: $(TESTS:%=test-c-%)

# It has half of all the threads that a system allows, so it never runs beside itself.
ALONE_slots := flock tests/user/slots.c
$(TESTS:%=test-c-%): test-c-%: $(BUILD)/tests/%
	@echo "test $*$(ANNOTATE:%= under the sanitizer %)"
	@$(ALONE_$*) $(UNSET) $(RUNNER) $<

# The historic locks keep the promises of all locks, and those that other tests have of them.
test-historic:
	@$(MAKE) --no-print-directory HISTORIC=1 test-c TESTS='conformance cna halting tunables'

# Programs without Lockworks in them: under glibc, under the profiler, and under the preload library. Under
# glibc, and under a plan that leaves all to it, fewer repetitions show that a test is right.
$(BUILD)/tests/preload/%: tests/preload/%.c
	@mkdir -p $(@D)
	$(CC) -std=gnu17 $(WARNINGS) -pthread $(CFLAGS) -MMD -MP $< $(LDFLAGS) -o $@ $(LIBRARIES)

$(BUILD)/tests/preload/%: tests/preload/%.cc
	@mkdir -p $(@D)
	$(CXX) -std=gnu++17 $(WARNINGS) -pthread $(CFLAGS) -MMD -MP $< $(LDFLAGS) -o $@

# One is linked with the program, the other loaded by it when it runs. Without lazy binding, which
# would not be ready when indirect functions are resolved.
$(BUILD)/tests/preload/libearly.so $(BUILD)/tests/preload/libloaded.so: tests/preload/library.c
	@mkdir -p $(@D)
	$(CC) -std=gnu17 $(WARNINGS) -pthread -fPIC -fno-plt -shared $(CFLAGS) -MMD -MP $< $(LDFLAGS) -o $@

$(BUILD)/tests/preload/lifetime: LIBRARIES := -L$(BUILD)/tests/preload -learly -Wl,-rpath,'$$ORIGIN'
$(BUILD)/tests/preload/lifetime: | $(BUILD)/tests/preload/libearly.so $(BUILD)/tests/preload/libloaded.so

test-preload: $(PRELOAD_TESTS:%=test-preload-%)

$(PRELOAD_TESTS:%=test-preload-%): test-preload-%: $(BUILD)/tests/preload/% $(BUILD)/liblockworks-preload.so \
		$(BUILD)/liblockworks-profile.so
	@echo "test preload $*: glibc, glibc by plan, glibc profiled, $(strip $(PRELOAD_LOCKS) $(FURTHER_LOCKS_$*))"
	@FEWER=1 $(UNSET) $(RUNNER) $<
	@FEWER=1 $(UNSET) LD_PRELOAD=$(CURDIR)/$(BUILD)/liblockworks-preload.so LOCKWORKS_PLAN=tests/preload/glibc.plan \
		LOCKWORKS_VERBOSE=0 EXPECTED_LOCK=plan $(RUNNER) $< || { echo "test preload $* FAILED under a plan"; exit 1; }
	@records=$$(mktemp -d) && trap 'rm -rf "$$records"' EXIT && \
		$(UNSET) LD_PRELOAD=$(CURDIR)/$(BUILD)/liblockworks-profile.so LOCKWORKS_PROFILE=$$records $(RUNNER) $<
	@for lock in $(PRELOAD_LOCKS) $(FURTHER_LOCKS_$*); do \
		$(UNSET) $$fewer LD_PRELOAD=$(CURDIR)/$(BUILD)/liblockworks-preload.so LOCKWORKS_LOCK=$$lock \
			LOCKWORKS_VERBOSE=0 EXPECTED_LOCK=$$lock $(RUNNER) $< || { echo "test preload $* FAILED under $$lock"; exit 1; }; \
		$(if $(filter $*,$(FULL_ONCE)),fewer=FEWER=1;) \
	done

# Other processors, under an emulator; another C library; another compiler. What cannot work is refused.
EMULATED := test-c test-preload test-headers PRELOAD_LOCKS=mutex
test-cross: test-arm64 test-riscv64 test-musl test-clang test-refused

test-arm64 test-riscv64 test-musl test-clang test-refused: setup-cross
test-arm64:
	@$(MAKE) --no-print-directory HOST=aarch64-linux-gnu \
		RUNNER='qemu-aarch64-static -L /usr/aarch64-linux-gnu' $(EMULATED)

test-riscv64:
	@$(MAKE) --no-print-directory HOST=riscv64-linux-gnu \
		RUNNER='qemu-riscv64-static -L /usr/riscv64-linux-gnu' $(EMULATED)

test-musl:
	@$(MAKE) --no-print-directory BUILD_DIR=build/musl CC=musl-gcc lib test-c

# The programs that the preload library serves are built by cc: clang and ld lose an indirect function.
test-clang:
	@$(MAKE) --no-print-directory BUILD_DIR=build/clang CC=clang CXX=clang++ lib test-c
	@$(MAKE) --no-print-directory BUILD_DIR=build/clang test-preload PRELOAD_LOCKS=mutex

test-refused:
	@for option in -mabi=ilp32 -mbig-endian; do \
		echo "test that $$option is refused" && \
		$(MAKE) --no-print-directory CC="aarch64-linux-gnu-gcc $$option" lib 2>&1 >/dev/null | \
			grep -q 'Lockworks needs a .* processor' || exit 1; \
	done

# The tables of documents that are made from lists in locks/.
tables:
	/usr/bin/python3 scripts/docs/documents.py --write

# Scripts that the theme would otherwise fetch from the network whenever a page is read.
SITE_SCRIPTS := build/site-scripts/mermaid.js build/site-scripts/iframe-worker.js
build/site-scripts/mermaid.js: FROM := mermaid/-/mermaid-11.17.2.tgz package/dist/mermaid.min.js
build/site-scripts/mermaid.js: SHA256 := 581ed7d74bd9048d0e3a91363927d72ef22942d7722546b27f7cc29e35390eb8
build/site-scripts/iframe-worker.js: FROM := iframe-worker/-/iframe-worker-1.0.4.tgz package/shim/index.js
build/site-scripts/iframe-worker.js: SHA256 := e8e412dbcfea9b7e31b5ffa288d7b6035915e714c542f4176a0cdbe262fc9609
$(SITE_SCRIPTS):
	@mkdir -p $(@D)
	curl -sSfL https://registry.npmjs.org/$(word 1,$(FROM)) | tar -xzO $(word 2,$(FROM)) > $@
	@echo '$(SHA256)  $@' | sha256sum --check --quiet

# The documentation as a site. It contains references that are made from the help of the command, from
# the headers, from the crate and from the Python package.
docs: cargo build/mkdocs/complete $(SITE_SCRIPTS)
	LOCKWORKS=$(COMMAND) NO_MKDOCS_2_WARNING=1 build/mkdocs/bin/mkdocs build --strict
	@mkdir -p build/site/api
	@# Functions and types without a comment are mistakes.
	! doxygen scripts/docs/Doxyfile 2>&1 | grep -v '(variable)\|(macro definition)'
	$(CARGO) doc --quiet --profile $(PROFILE) --no-deps -p lockworks
	cp -R $(TARGET)/doc build/site/api/rust
	@echo 'build/site/index.html'

# The site, and the commands and programs of the documents, and their links; DOCUMENTS=docs/guides for a part.
# But for the tutorials.
test-docs: PROFILE := dev
test-docs: stage cargo docs
	@LOCKWORKS=$(COMMAND) STAGE=$(STAGE) \
		/usr/bin/python3 scripts/docs/documents.py $(DOCUMENTS)

# Those that build a copy of the repository.
test-tutorials: PROFILE := dev
test-tutorials: stage cargo
	@LOCKWORKS=$(COMMAND) STAGE=$(STAGE) /usr/bin/python3 scripts/docs/documents.py --tutorials $(DOCUMENTS)

# The installed headers as users get them: by pkg-config, in each language, without a warning.
STAGE := $(CURDIR)/$(BUILD)/stage
PKG_CONFIG := PKG_CONFIG_PATH=$(STAGE)/lib/pkgconfig pkg-config
INSTALLED_TESTS := tests/user/installed
stage: lib
	rm -rf $(STAGE)
	@mkdir -p $(BUILD)/tests
	@$(MAKE) --no-print-directory install-lib PREFIX=$(STAGE) DESTDIR=

test-installed: test-headers test-install test-load test-examples test-ways

# The headers in each standard, alone and used. Where clang++ is, its thread-safety analysis must accept the C++ example,
# and must refuse it with a lock class that it does not know.
test-headers: stage
	@for use in c:c11 c:c17 c:c2x c++:c++11 c++:c++14 c++:c++17 c++:c++20 c++:c++23; do \
		standard=$${use#*:}; compiler='$(CC)'; header=lockworks.h; \
		[ $$standard = $${standard#c++} ] || { compiler='$(CXX)'; header=lockworks.hpp; }; \
		echo "test installed $$header as $$standard, with and without -pthread" && \
		for threads in "" -pthread; do \
			echo "#include <lockworks/$$header>" | $$compiler -x $${use%:*} -std=$$standard -Wall -Wextra \
				-Wpedantic -Werror $$threads -I$(STAGE)/include -fsyntax-only - || exit 1; \
		done; \
		[ $$header = lockworks.h ] || { \
			$$compiler -std=$$standard -Wall -Wextra -Wpedantic -Werror -pthread $$($(PKG_CONFIG) --cflags lockworks) \
				$(INSTALLED_TESTS)/timed.cpp $$($(PKG_CONFIG) --libs lockworks) -o $(BUILD)/tests/timed && \
			LD_LIBRARY_PATH=$(STAGE)/lib $(RUNNER) $(BUILD)/tests/timed; } || exit 1; \
	done
	@! command -v clang++ >/dev/null || { \
		echo 'test the C++ example under clang++ -Wthread-safety' && \
		check='clang++ -std=c++17 -Wthread-safety -Werror -fsyntax-only -I$(STAGE)/include' && \
		$$check examples/cpp/queue.cpp && \
		! sed 's/lockworks::unique_lock lock(lock_);/std::unique_lock lock(lock_);/' examples/cpp/queue.cpp | \
			$$check -x c++ - 2>/dev/null; }
	@for use in c:c11:c c:c17:c c++:c++17:c c++:c++17:cpp; do \
		standard=$${use%:*}; language=$${use%%:*}; standard=$${standard#*:}; \
		for options in "" "-static"; do \
			compiler='$(CC)'; [ $$language = c ] || compiler='$(CXX)'; \
			echo "test installed headers as $$standard, use.$${use##*:} $$options" && \
			$$compiler -x $$language -std=$$standard -Wall -Wextra -Wpedantic \
				-Werror -Wl,--fatal-warnings -pthread $$($(PKG_CONFIG) --cflags lockworks) \
				$(INSTALLED_TESTS)/use.$${use##*:} -x none $$options \
				$$($(PKG_CONFIG) $${options:+-$$options} --libs lockworks) -o $(BUILD)/tests/use && \
			LD_LIBRARY_PATH=$(STAGE)/lib $(RUNNER) $(BUILD)/tests/use || exit 1; \
		done; \
	done

test-install: export PROFILE := dev
test-install: stage
	$(INSTALLED_TESTS)/exports.sh $(STAGE)/lib/liblockworks.so lib/lockworks.map \
		"$$($(PKG_CONFIG) --cflags lockworks)"
	@echo 'test that no memory of a library is both writable and executable'
	@for library in $(STAGE)/lib/*.so $(STAGE)/lib/lockworks/*.so; do \
		readelf --segments --wide $$library | grep -q 'GNU_STACK.* RW ' && \
		! readelf --segments --wide $$library | grep RWE || { echo "$$library: it has such memory"; exit 1; }; \
	done
	@echo 'test install and uninstall'
	@MAKE='$(MAKE)' $(INSTALLED_TESTS)/uninstall.sh $(CURDIR)/build/uninstall

# Hosts that open and close what contains the library: plugins in C and in Rust, and Python. Many plugins,
# each with a copy of its own, find room in what the C library has for thread-local storage that comes late.
PLUGIN := $(BUILD)/tests/plugin
test-load: STRICT := -std=c17 -Wall -Wextra -Wpedantic -Werror -pthread
test-load: stage
	@$(CC) $(STRICT) $(INSTALLED_TESTS)/load.c -o $(BUILD)/tests/load
	@for of in static:$(STAGE)/lib/liblockworks.a "shared:$$($(PKG_CONFIG) --libs lockworks)"; do \
		$(CC) $(STRICT) -fPIC -shared $$($(PKG_CONFIG) --cflags lockworks) $(INSTALLED_TESTS)/plugin.c $${of#*:} \
			-o $(PLUGIN)-$${of%%:*}.so || exit 1; \
	done
	@for copy in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16; do cp $(PLUGIN)-static.so $(PLUGIN)-copy$$copy.so; done
	@$(CARGO) build --quiet -p lockworks --example plugin
	@for libraries in "lw_thread_attach $(STAGE)/lib/liblockworks.so.0" "plugin_use $(PLUGIN)-shared.so" \
			"plugin_use $(PLUGIN)-static.so" "plugin_use $$(echo $(PLUGIN)-copy*.so)" \
			"plugin_use $(TARGET)/debug/examples/libplugin.so"; do \
		echo "test load $$libraries" && \
		LD_LIBRARY_PATH=$(STAGE)/lib $(UNSET) $(BUILD)/tests/load $$libraries || exit 1; \
	done
	@echo 'test that Python loads the library'
	@/usr/bin/python3 -c 'import ctypes; ctypes.CDLL("$(STAGE)/lib/liblockworks.so.0").lw_thread_attach()'

test-examples: stage
	@for example in c/latencies cpp/queue; do \
		echo "test examples/$$example" && \
		PKG_CONFIG_PATH=$(STAGE)/lib/pkgconfig $(MAKE) -B -s -C examples/$${example%/*} && \
		LD_LIBRARY_PATH=$(STAGE)/lib examples/$$example || exit 1; \
	done
	@echo 'test examples/rust/hits'
	@$(CARGO) run --quiet --example hits

# Each way in which build tools find the library builds the examples.
test-ways: stage dist-c
	@STAGE=$(STAGE) $(INSTALLED_TESTS)/ways.sh pkg-config cmake cps archive archive-cmake archive-meson

# The recipes for vcpkg, Conan and Bazel, which build from the archive.
test-recipes: dist-c build/conan/complete
	@scripts/setup.sh recipes
	@$(INSTALLED_TESTS)/ways.sh vcpkg conan bazel

# The crate for others, as it is published, which is without the historic locks: with the oldest Rust that it
# promises, with and without std. Where there is no operating system, there is no std that it could use by mistake.
MSRV = $(shell sed -n 's/^rust-version = "\(.*\)"/\1/p' crates/lockworks/Cargo.toml)
PUBLISHED := $(TARGET)/package/lockworks-$(VERSION)
OLDEST = rustup run $(MSRV) cargo
OF_CRATE := --quiet --release --locked --manifest-path $(PUBLISHED)/Cargo.toml --target-dir $(TARGET)/msrv
test-crate: setup-crate
	@echo 'test that the crate can be published: by itself, with its C sources, without locks of tools'
	@$(CARGO) package --quiet --allow-dirty -p lockworks
	@! find $(PUBLISHED) -path '*historic*' | grep .
	@echo 'test the crate with Rust $(MSRV): all features, none, and without an operating system'
	@$(OLDEST) test $(OF_CRATE) --all-features
	@$(OLDEST) test $(OF_CRATE) --no-default-features
	@$(OLDEST) build $(OF_CRATE) --no-default-features --target x86_64-unknown-none
	@echo 'test a crate whose C code uses its headers'
	@rm -rf $(TARGET)/with-c && cp -r $(INSTALLED_TESTS)/crate $(TARGET)/with-c
	@ln -s $(abspath $(PUBLISHED)) $(TARGET)/with-c/lockworks && cp $(PUBLISHED)/Cargo.lock $(TARGET)/with-c
	@$(OLDEST) run --quiet --manifest-path $(TARGET)/with-c/Cargo.toml --target-dir $(TARGET)/msrv

# Race detectors must report nothing about the locks that exclude, and must report the lock that does
# not. The C tests must run without a finding of the other sanitizers.
test-sanitizers: test-helgrind test-drd test-thread test-address test-undefined

WATCHED := --fair-sched=yes --error-exitcode=9
test-helgrind test-drd: test-%: $(BUILD_DIR)/historic/valgrind/sanitizers/torture
	@$(call torture_watched,valgrind -q $(WATCHED) --tool=$* $<)

test-thread: $(BUILD_DIR)/historic/thread/sanitizers/torture
	@$(call torture_watched,$<)

torture_watched = echo 'test $1'; $(UNSET) $1 && ! $(UNSET) $1 busted 2>/dev/null || \
	{ echo '$1: FAILED, or it does not report a lock that does not exclude'; exit 1; }

test-address test-undefined: test-%: $(BUILD_DIR)/historic/%/sanitizers/torture
	@$(MAKE) --no-print-directory HISTORIC=1 ANNOTATE=$* test-c
	@echo 'test $<'
	@$(UNSET) $<

ifeq ($(ANNOTATE),)
$(BUILD_DIR)/historic/%/sanitizers/torture: force
	@$(MAKE) --no-print-directory HISTORIC=1 ANNOTATE=$* $@
endif

force:

# Runs LTP's tests of POSIX threads, whose sources lie in LTP, with and without Lockworks.
test-conformance: lib
	@scripts/conformance.sh '$(LTP)'

# Feeds random texts to the parsers until one fails: to those in Rust, then to that in C. Not a part of
# `make test`, which feeds the same texts in every run.
FUZZ_SECONDS ?= 60
fuzz-rust:
	@CARGO='$(CARGO)' scripts/fuzz.sh $(FUZZ_SECONDS)

fuzz: fuzz-rust
	@command -v clang >/dev/null || \
		{ echo 'make fuzz needs clang: apt-get install clang libclang-rt-dev'; exit 1; }
	@mkdir -p build/fuzz/corpus/topology
	clang -std=gnu17 -g -O1 -fsanitize=fuzzer,address,undefined -pthread $(INCLUDES) -Itests/user \
		fuzz/topology.c $(SOURCES) -o build/fuzz/topology
	build/fuzz/topology -max_total_time=$(FUZZ_SECONDS) build/fuzz/corpus/topology

test-cargo: lib programs
	$(CARGO) test --workspace

# The tests that repeat others wider, but those of kernels.
test-wide: lib programs
	$(CARGO) test --workspace --lib --bins --test '[!k]*' -- --ignored

test-clippy:
	$(CARGO) clippy --workspace --all-targets -- -D warnings

# The Python package: its wheel, installed in an environment of its own, and its tests. Then the pages of
# `lockworks report`, in a browser that Python drives. Each runs on one core.
test-python: test-python-package test-python-pages
test-python-package test-python-pages: PROFILE := dev
test-python-package: cargo wheel
	build/python/bin/pip install --quiet --no-deps --force-reinstall build/dist/*.whl
	$(UNSET) build/python/bin/python -m pytest --quiet --override-ini pythonpath= python/tests

test-python-pages: cargo build/python/complete
	$(UNSET) build/python/bin/python -m pytest --quiet tests/report

# Kernels built and booted, two guests at a time; the sources and builds are kept in the cache.
KERNEL_TEST := $(CARGO) test -p lockworks-lab -p lockworks-cli --test kernel -- --ignored --test-threads 2

test-kernel-quick: setup-kernel
	$(KERNEL_TEST) quick

# ONLY=arm64 for those whose names have that in them. What has passed is not run again.
test-kernel: setup-kernel
	@ONLY='$(ONLY)' scripts/kernel-tests.sh $(KERNEL_TEST) --nocapture

# The changed directories of the newest kernel, with paravirt spinlocks, by gcc and by clang; then in eighteen
# configurations.
COMPILE_KERNEL := $(CARGO) test -q -p lockworks-lab --lib -- --ignored --nocapture
test-kernel-compiles: setup-compiles
	$(COMPILE_KERNEL) two_configurations_compile

test-kernel-configurations: setup-compiles
	$(COMPILE_KERNEL) every_configuration_compiles

demo: setup all
	@mkdir -p demo
	$(COMMAND) report --quick -o demo/report.html --data demo

bench: setup-programs all programs
	$(CARGO) run --profile $(PROFILE) -p lockworks-maintain -- bench

install: install-lib cargo
	$(INSTALL) -D $(COMMAND) $(DESTDIR)$(PREFIX)/bin/lockworks
	$(COMMAND) share $(DESTDIR)$(PREFIX)/share
	@[ -n "$(DESTDIR)" ] || ldconfig 2>/dev/null || true # so that the loader finds the library

# The files by which pkg-config, CMake and tools that read the Common Package Specification find the library.
LIB_OF_PREFIX = $(patsubst $(PREFIX)/%,%,$(LIBDIR))
UP = $(subst $() ,,$(foreach directory,$(subst /, ,$(LIB_OF_PREFIX)),../))
FILL = sed -e 's|@version@|$(VERSION)|; s|@compatible@|$(basename $(VERSION)).0|; s|@url@|$(URL)|' \
	-e 's|@lib_of_config@|../..|; s|@include_of_lib@|$(UP)include|; s|@lib_of_prefix@|$(LIB_OF_PREFIX)|' \
	-e 's|@annotation@|$(ANNOTATION)|; s|@sanitizer@|$(filter -fsanitize=%,$(ANNOTATION))|'
install-lib: lib
	$(if $(filter /%,$(LIB_OF_PREFIX)),$(error LIBDIR=$(LIBDIR): it must be below PREFIX=$(PREFIX)))
	$(INSTALL) -d $(DESTDIR)$(PREFIX)/include/lockworks $(DESTDIR)$(PREFIX)/lib/lockworks \
		$(DESTDIR)$(LIBDIR)/pkgconfig $(DESTDIR)$(LIBDIR)/cmake/lockworks
	$(INSTALL) -m 644 $(HEADERS) $(DESTDIR)$(PREFIX)/include/lockworks
	$(INSTALL) -m 644 $(BUILD)/liblockworks.a $(BUILD)/liblockworks.so.0 $(DESTDIR)$(LIBDIR)
	$(if $(HAS_GLIBC),$(INSTALL) -m 644 $(BUILD)/liblockworks-preload.so $(BUILD)/liblockworks-profile.so \
		$(DESTDIR)$(PREFIX)/lib/lockworks)
	ln -sf liblockworks.so.0 $(DESTDIR)$(LIBDIR)/liblockworks.so
	$(FILL) -e 's|@prefix@|$(PREFIX)|; s|@libdir@|$(LIBDIR)|; /^URL: $$/d' \
		lib/lockworks.pc.in > $(DESTDIR)$(LIBDIR)/pkgconfig/lockworks.pc
	for file in lockworksConfig lockworksConfigVersion; do \
		$(FILL) lib/$$file.cmake.in > $(DESTDIR)$(LIBDIR)/cmake/lockworks/$$file.cmake || exit 1; \
	done
	@# Without the options of a tool, which programs would need.
	$(if $(ANNOTATE),,$(INSTALL) -d $(DESTDIR)$(LIBDIR)/cps && \
		$(FILL) lib/lockworks.cps.in > $(DESTDIR)$(LIBDIR)/cps/lockworks.cps)

uninstall:
	@rm -f $(INSTALLED:%=$(DESTDIR)%)
	@for directory in $(PREFIX)/include $(PREFIX)/lib $(LIBDIR)/cmake; do \
		[ ! -d $(DESTDIR)$$directory/lockworks ] || \
			rmdir --ignore-fail-on-non-empty $(DESTDIR)$$directory/lockworks; \
	done
	@for directory in cps cmake pkgconfig; do \
		[ ! -d $(DESTDIR)$(LIBDIR)/$$directory ] || rmdir --ignore-fail-on-non-empty $(DESTDIR)$(LIBDIR)/$$directory; \
	done

# How the command is built for other machines: nothing in it names a path of this one, so that it is the same
# wherever it is built.
CARGO_HOME ?= $(HOME)/.cargo
ELSEWHERE = LOCKWORKS_CHECKOUT= CARGO_TARGET_DIR=$(abspath $(TARGET))/elsewhere \
	CARGO_PROFILE_RELEASE_DEBUG=false CARGO_PROFILE_RELEASE_STRIP=true SOURCE_DATE_EPOCH=$(COMMITTED) \
	CFLAGS='-ffile-prefix-map=$(CURDIR)=.' \
	RUSTFLAGS='--remap-path-prefix=$(CURDIR)=. --remap-path-prefix=$(CARGO_HOME)=/cargo $(AS_ONE_FILE)'
COMMITTED = $(or $(SOURCE_DATE_EPOCH),$(shell git log -1 --format=%ct))

# The Python package in build/dist, for machines with a glibc as old as the command's symbols. It has the command.
wheel: build/python/complete
	rm -rf build/dist
	cd python && $(if $(filter release,$(PROFILE)),$(ELSEWHERE)) ../build/python/bin/maturin build --quiet \
		--profile $(PROFILE) --locked --out ../build/dist

# In a new Debian that has no compiler.
test-wheel: wheel
	@scripts/setup.sh roots
	@scripts/wheel-test.sh

# The command as one file that needs nothing of the system that it runs on, in an archive with the libraries that it
# loads into programs. It is linked with glibc: the checker changes stacks by functions that musl does not have.
STATIC_TARGET := $(shell uname -m)-unknown-linux-gnu
STATIC_NAME := lockworks-$(VERSION)-linux-$(shell uname -m)
static: AS_ONE_FILE := -C target-feature=+crt-static
static:
	@$(MAKE) --no-print-directory BUILD_DIR=build/static/lib CFLAGS=-O2 lib
	$(ELSEWHERE) $(CARGO) build --release --locked --target $(STATIC_TARGET) -p lockworks-cli
	rm -rf build/static/$(STATIC_NAME)
	$(INSTALL) -D -t build/static/$(STATIC_NAME)/bin $(TARGET)/elsewhere/$(STATIC_TARGET)/release/lockworks
	$(INSTALL) -D -m 644 --strip -t build/static/$(STATIC_NAME)/lib/lockworks \
		build/static/lib/liblockworks-preload.so build/static/lib/liblockworks-profile.so
	build/static/$(STATIC_NAME)/bin/lockworks share build/static/$(STATIC_NAME)/share
	cp -R LICENSE LICENSES README.md build/static/$(STATIC_NAME)
	tar --create --sort=name --mtime=@$(COMMITTED) --owner=0 --group=0 --numeric-owner --mode=go=rX,u+rw \
		--directory build/static $(STATIC_NAME) | gzip --no-name --best > build/static/$(STATIC_NAME).tar.gz

# The command in a root that has nothing, and its libraries in a new Debian.
test-static: static
	@scripts/setup.sh roots
	@scripts/static-test.sh build/static/$(STATIC_NAME)

# Debian packages in build/deb; test-deb judges them, and installs, uses and removes them in a new Debian.
deb: setup
	@scripts/setup.sh deb
	scripts/deb.sh

test-deb: deb
	scripts/deb-test.sh

# RPM packages in build/rpm; test-rpm installs, uses and removes them in a new Debian.
rpm: setup
	@scripts/setup.sh rpm
	scripts/rpm.sh

test-rpm: rpm
	scripts/rpm-test.sh

# The image of packaging/Containerfile, built without a registry of images, and used.
test-container: setup
	@scripts/setup.sh container
	scripts/container-test.sh

# The C library alone, in one C file, as an archive in build/dist-c with its bill of materials.
dist-c:
	@rm -rf build/dist-c
	@scripts/dist-c.py build/dist-c $(VERSION) '$(URL)' $(filter -I%,$(INCLUDES)) $(SOURCES)

# The source of the newest commit, which is the same to the byte wherever it is made.
archive:
	@mkdir -p build/archive
	git archive --prefix=lockworks-$(VERSION)/ HEAD | gzip --no-name --best > build/archive/lockworks-$(VERSION).tar.gz

# What a release has, built twice in different directories: the same to the byte. PARTS='archive crate': a part.
test-reproducible: build/python/complete setup
	@MAKE='$(MAKE)' scripts/reproducible-test.sh $(PARTS)

# Archives, packages, checksums and bills of materials of a release in build/release, and what to do with them.
release: setup
	@MAKE='$(MAKE)' scripts/release.sh

clean:
	rm -rf build
	$(CARGO) clean

help:
	@echo 'make                 build the C library (build/) and the command (target/release/)'
	@echo 'make lib             build the C library only (build/); HOST=aarch64-linux-gnu: for that processor,'
	@echo '                     CC=clang BUILD_DIR=DIR: with that compiler. RUNNER=EMULATOR: what runs its tests'
	@echo 'make dev             library and command for work, in half a minute after a change (target/debug/)'
	@echo 'make demo            which lock should I use? a report with measurements and predictions'
	@echo 'make setup           test whether the tools are installed; as root, install those missing'
	@echo 'make setup-programs  the same, with the programs that tests and benchmarks run'
	@echo 'make quick           test what has changed, in minutes; LOCK=NAME: test this lock'
	@echo 'make test            run a test of each promise; it prints how long each stage took'
	@echo 'make test-all        run all tests; it says how long that takes, and goes on where it was'
	@echo 'make test-c          run the tests of the C library; ANNOTATE=address|undefined: under a sanitizer'
	@echo 'make test-historic   run those that concern the historic locks, in a build with them'
	@echo 'make test-preload    run the tests of programs under the preload library and the profiler'
	@echo 'make test-sanitizers run the C code under valgrind and the sanitizers'
	@echo 'make test-cross      run the C tests for arm64 and riscv64 under an emulator, and with musl and clang'
	@echo 'make test-format     test format, spelling, Python, language, links and the version, in seconds'
	@echo 'make test-crate      test the crate for others with the oldest Rust that it promises, with and without std'
	@echo 'make test-ways       build the examples by pkg-config, CMake and Meson, installed and from the archive'
	@echo 'make test-recipes    build them by the recipes for vcpkg, Conan and Bazel'
	@echo 'make test-python     test the Python package, installed in build/python, and pages in a browser'
	@echo 'make docs            write the documentation as a site, build/site/index.html'
	@echo 'make tables          write the tables of documents that are made from lists in locks/'
	@echo 'make test-docs       run the commands and programs of the documents; DOCUMENTS=PATH: a part'
	@echo 'make test-tutorials  the same of documents that build a copy of the repository'
	@echo 'make test-wide       run the Rust tests that repeat others wider: all mutants, more threads'
	@echo 'make test-kernel     run all tests of kernels, an hour; ONLY=NAME: a part'
	@echo 'make test-kernel-compiles  compile the series in the newest kernel, by gcc and by clang'
	@echo 'make test-kernel-configurations  compile the series in eighteen configurations of the newest kernel'
	@echo 'make test-conformance  with LTP=DIR, run LTP'\''s tests of POSIX threads, with and without Lockworks'
	@echo 'make fuzz            feed random texts to all parsers; FUZZ_SECONDS=60 for each language. Needs clang'
	@echo 'make fuzz-rust       the same for those in Rust, without clang'
	@echo 'make bench           measure the locks beside their peers on this machine'
	@echo 'make programs        build the drivers of libraries that tests and benchmarks load'
	@echo 'make install         PREFIX=/usr/local [DESTDIR=]: library, headers, pkg-config file, command'
	@echo '                     ANNOTATE=valgrind|thread: for programs that these tools watch'
	@echo 'make install-lib     the same without the command, which is the only part in Rust'
	@echo 'make dist-c          write the C library alone, in one C file, as an archive into build/dist-c'
	@echo 'make deb             build Debian packages in build/deb; make test-deb tests them in a chroot'
	@echo 'make rpm             build RPM packages in build/rpm; make test-rpm tests them in a chroot'
	@echo 'make wheel           build the Python package in build/dist, which make test-python installs and tests'
	@echo 'make static          build the command as one file without dependencies, and an archive of it in build/static;'
	@echo '                     make test-static runs it in a root that has nothing else'
	@echo 'make test-reproducible  build archive, crate, wheel, Debian packages and command twice, and compare the bytes'
	@echo 'make test-container  build the image of packaging/Containerfile, and use it'
	@echo 'make release         write the files of a release with checksums and a bill of materials into build/release'
	@echo 'make uninstall       remove what make install has installed'
	@echo 'make clean           remove what was built'

-include $(OBJECTS:.o=.d) $(PRELOAD_OBJECTS:.o=.d) $(PROFILE_OBJECTS:.o=.d) $(TESTS:%=$(BUILD)/tests/%.d) \
	$(BUILD)/clients/conformance.d $(BUILD)/clients/lockref_mutants.d \
	$(PRELOAD_TESTS:%=$(BUILD)/tests/preload/%.d)
