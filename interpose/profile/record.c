// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * The file with the record of a process, in the directory LOCKWORKS_PROFILE. The child of a fork
 * has a file of its own.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include <lockworks/lockworks.h>

#include "acquisitions.h"
#include "holder.h"
#include "record.h"
#include "settings.h"

struct lw_profile_own lw_profile_own;
__thread uint32_t lw_profile_thread, lw_profile_tid;

uint32_t lw_profile_self(struct lw_profile *profile)
{
	if (lw_unlikely(!lw_profile_thread)) {
		lw_profile_tid = (uint32_t)gettid();
		lw_profile_thread = (uint32_t)lw_fetch_add(&profile->threads, 1, relaxed) + 1;
	}
	return lw_profile_thread;
}

/* Modules */

static struct lw_tas lw_modules_lock;

static bool lw_has_module_of(struct lw_profile *profile, uint64_t address)
{
	uint64_t modules = lw_load(&profile->modules, acquire);

	for (uint64_t i = 0; i < modules; i++) {
		if (address >= profile->module[i].start && address < profile->module[i].end)
			return true;
	}
	return false;
}

/* Adds the mapping that a line of /proc/self/maps describes, if it is code from a file and new. */
static void lw_module_add(struct lw_profile *profile, const char *line)
{
	uint64_t modules = lw_load(&profile->modules, relaxed);
	struct lw_profile_module *module = &profile->module[modules];
	unsigned long start, end, offset;
	char rights[5];
	int path;

	if (modules == LW_PROFILE_MODULES ||
	    sscanf(line, "%lx-%lx %4s %lx %*s %*s %n", &start, &end, rights, &offset, &path) < 4 ||
	    rights[2] != 'x' || line[path] != '/' || lw_has_module_of(profile, start))
		return;
	module->start = start;
	module->end = end;
	module->offset = offset;
	snprintf(module->path, sizeof(module->path), "%s", line + path);
	/* release: the module */
	lw_store(&profile->modules, modules + 1, release);
}

static void lw_modules_read(struct lw_profile *profile)
{
	static char text[16384];
	size_t length = 0;
	ssize_t got;
	int maps = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);

	if (maps < 0)
		return;
	while ((got = read(maps, text + length, sizeof(text) - 1 - length)) > 0) {
		char *line = text, *end;

		length += (size_t)got;
		text[length] = '\0';
		for (; (end = strchr(line, '\n')); line = end + 1) {
			*end = '\0';
			lw_module_add(profile, line);
		}
		length = strlen(line);
		memmove(text, line, length);
	}
	close(maps);
}

void lw_profile_add_module_of(struct lw_profile *profile, uint64_t address)
{
	int saved = errno;

	/*
	 * If the lock is held, another thread reads the modules, or the thread that our signal
	 * handler interrupts. A later call will find what is missing.
	 */
	if (!lw_has_module_of(profile, address) && lw_tas_trylock(&lw_modules_lock)) {
		lw_modules_read(profile);
		lw_tas_unlock(&lw_modules_lock);
	}
	errno = saved;
}

/* The file */

static int lw_record_create(const char *directory)
{
	char path[4096];
	int file = -1;

	/* After exec the process has the same number, so the name may exist already. */
	for (int n = 0; n < 10000; n++) {
		snprintf(path, sizeof(path), "%s/%d-%d", directory, (int)getpid(), n);
		file = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
		if (file >= 0 || errno != EEXIST)
			break;
	}
	return file;
}

static struct lw_profile *lw_record_map(int file)
{
	void *memory = MAP_FAILED;

	if (file >= 0 && ftruncate(file, sizeof(struct lw_profile)) == 0)
		memory = mmap(NULL, sizeof(struct lw_profile), PROT_READ | PROT_WRITE, MAP_SHARED,
			      file, 0);
	return memory == MAP_FAILED ? NULL : memory;
}

/* Returns the time from which a wait is slow, which the command has checked. */
static uint64_t lw_slow_ns(void)
{
	const char *text = secure_getenv("LOCKWORKS_PROFILE_SLOW_NS");
	uint64_t ns = text ? strtoull(text, NULL, 10) : 0;

	return ns ? ns : 100000;
}

/* Returns whether the kernel keeps time by the time stamp counter, which is the same on all CPUs.
 */
static bool lw_kernel_has_tsc(void)
{
	char text[8];

	return lw_profile_read_file(
		       "/sys/devices/system/clocksource/clocksource0/current_clocksource", text,
		       sizeof(text)) > 0 &&
	       !strcmp(text, "tsc\n");
}

static void lw_record_begin(void)
{
	const char *directory = secure_getenv("LOCKWORKS_PROFILE");
	struct lw_profile *profile;
	int saved = errno, file;

	if (!directory)
		return;
	file = lw_record_create(directory);
	profile = lw_record_map(file);
	if (file >= 0)
		close(file);
	if (!profile) {
		char shown[256];

		lw_user_printable(shown, sizeof(shown), directory);
		lw_user_write_line("lockworks: process %d is not profiled: cannot write in %s\n",
				   (int)getpid(), shown);
		errno = saved;
		return;
	}
	lw_profile_own.has_tsc = lw_kernel_has_tsc();
	profile->has_tsc = lw_profile_own.has_tsc;
	profile->time = lw_profile_now();
	profile->at_ns = lw_profile_clock_ns(CLOCK_MONOTONIC);
	profile->size = sizeof(*profile);
	profile->pid = (uint64_t)getpid();
	profile->nodes = lw_topology_nodes();
	lw_profile_own.has_events = secure_getenv("LOCKWORKS_PROFILE_EVENTS") != NULL;
	lw_profile_own.slow_ns = lw_slow_ns();
	lw_profile_find_quota();
	lw_modules_read(profile);
	profile->magic = LW_PROFILE_MAGIC;
	/* release: threads that see the record see all of it */
	lw_store(&lw_profile_own.record, profile, release);
	errno = saved;
}

/* The child begins a record of its own, so that its acquisitions are not counted as its parent's.
 */
static void lw_record_fork_child(void)
{
	struct lw_profile *of_parent = lw_load(&lw_profile_own.record, relaxed);

	if (!of_parent)
		return;
	lw_store(&lw_profile_own.record, NULL, relaxed);
	munmap(of_parent, sizeof(*of_parent));
	lw_profile_thread = 0;
	lw_profile_forget_reads();
	memset(&lw_modules_lock, 0, sizeof(lw_modules_lock));
	lw_record_begin();
}

__attribute__((destructor)) static void lw_record_end(void)
{
	struct lw_profile *profile = lw_load(&lw_profile_own.record, acquire);

	if (profile)
		lw_store(&profile->ended, lw_profile_now(), relaxed);
}

__attribute__((constructor(102))) static void lw_record_start(void)
{
	pthread_atfork(NULL, NULL, lw_record_fork_child);
	lw_record_begin();
}
