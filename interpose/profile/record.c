// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * The file with the record of a process, in the directory LOCKWORKS_PROFILE. The child of a fork
 * has a file of its own.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include <lockworks/lockworks.h>

#include "acquisitions.h"
#include "holder.h"
#include "record.h"
#include "settings.h"
#include "steps.h"

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

/* Pages */

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif

/*
 * A bit for each page of the record that has been made, and for each that could not be made, which
 * is not tried again. And the binary logarithm of the size of a page.
 */
#define LW_LEAST_PAGE 12
#define LW_PAGE_WORDS ((sizeof(struct lw_profile) >> LW_LEAST_PAGE) / 64 + 1)
static lw_atomic(uint64_t) lw_pages[LW_PAGE_WORDS], lw_no_pages[LW_PAGE_WORDS];
static int lw_page_shift;

static bool lw_page_make(const struct lw_profile *profile, size_t page)
{
	char *at = (char *)(uintptr_t)profile + (page << lw_page_shift);
	int saved = errno, error;

	error = madvise(at, (size_t)1 << lw_page_shift, MADV_POPULATE_WRITE) ? errno : 0;
	errno = saved;
	return !error || error == EINVAL;
}

bool lw_profile_has(const struct lw_profile *profile, const void *at, size_t size)
{
	const size_t from = (uintptr_t)at - (uintptr_t)profile;
	const size_t last = (from + size - 1) >> lw_page_shift;

	for (size_t page = from >> lw_page_shift; page <= last; page++) {
		const uint64_t bit = UINT64_C(1) << page % 64;

		if (lw_unlikely(!(lw_load(&lw_pages[page / 64], relaxed) & bit))) {
			if (lw_load(&lw_no_pages[page / 64], relaxed) & bit)
				return false;
			if (!lw_page_make(profile, page)) {
				lw_fetch_or(&lw_no_pages[page / 64], bit, relaxed);
				return false;
			}
			lw_fetch_or(&lw_pages[page / 64], bit, relaxed);
		}
	}
	return true;
}

static void lw_pages_begin(void)
{
	memset(lw_pages, 0, sizeof(lw_pages));
	memset(lw_no_pages, 0, sizeof(lw_no_pages));
	lw_page_shift = __builtin_ctzl((unsigned long)sysconf(_SC_PAGESIZE));
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
	    rights[2] != 'x' || line[path] != '/' || lw_has_module_of(profile, start) ||
	    !lw_profile_has(profile, module, sizeof(*module)))
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
	int maps = lw_profile_open("/proc/self/maps", O_RDONLY);

	if (maps < 0)
		return;
	while ((got = lw_profile_read(maps, text + length, sizeof(text) - 1 - length)) > 0) {
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
	lw_profile_close(maps);
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

/* Returns whether a new file may get the size of a record. Else the attempt would end the process.
 */
static bool lw_may_make_record(void)
{
	struct rlimit limit;

	return getrlimit(RLIMIT_FSIZE, &limit) || limit.rlim_cur >= sizeof(struct lw_profile);
}

/* Makes the file of a record. Returns its descriptor, or -1 and the error in errno. */
static int lw_record_make(const char *path)
{
	int file = lw_profile_open(path, O_RDWR | O_CREAT | O_EXCL);

	if (file >= 0 && ftruncate(file, sizeof(struct lw_profile))) {
		int error = errno;

		lw_profile_close(file);
		unlink(path);
		errno = error;
		return -1;
	}
	return file;
}

/* The same, of an empty file that the command has made. */
static int lw_record_take(const char *directory, const char *path)
{
	char spare[4096];

	for (int n = 0; n < LW_PROFILE_SPARES; n++) {
		snprintf(spare, sizeof(spare), "%s/spare-%d", directory, n);
		if (renameat2(AT_FDCWD, spare, AT_FDCWD, path, RENAME_NOREPLACE) == 0)
			return lw_profile_open(path, O_RDWR);
		if (errno != ENOENT)
			return -1;
	}
	errno = EFBIG;
	return -1;
}

static int lw_record_open(const char *directory, char *path, size_t length)
{
	const bool may_make = lw_may_make_record();
	int file = -1;

	/* After exec the process has the same number, so the name may exist already. */
	for (int n = 0; n < 10000; n++) {
		snprintf(path, length, "%s/%d-%d", directory, (int)getpid(), n);
		file = may_make ? lw_record_make(path) : lw_record_take(directory, path);
		if (file >= 0 || errno != EEXIST)
			break;
	}
	return file;
}

/* Maps a new record, with its first page. NULL: it cannot, and the error is in errno. */
static struct lw_profile *lw_record_map(const char *directory, char *path, size_t length)
{
	const size_t size = sizeof(struct lw_profile);
	int file = lw_record_open(directory, path, length), error;
	struct lw_profile *profile;

	if (file < 0)
		return NULL;
	profile = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
	error = errno;
	lw_profile_close(file);
	if (profile == MAP_FAILED) {
		errno = error;
		return NULL;
	}
	lw_pages_begin();
	if (!lw_profile_has(profile, profile, offsetof(struct lw_profile, wait))) {
		munmap(profile, size);
		errno = ENOSPC;
		return NULL;
	}
	return profile;
}

/* Tells the command that this process has no record; if it cannot, tells the user. */
static void lw_record_missing(const char *directory, uint32_t error)
{
	struct sockaddr_un to = {.sun_family = AF_UNIX};
	const size_t length = strnlen(directory, sizeof(to.sun_path) - 1);
	int end = socket(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	char shown[256];
	ssize_t sent = -1;

	if (end >= 0) {
		/* An abstract address begins with a 0. */
		memcpy(to.sun_path + 1, directory, length);
		sent = syscall(SYS_sendto, end, &error, sizeof(error), MSG_NOSIGNAL, &to,
			       offsetof(struct sockaddr_un, sun_path) + 1 + length);
		lw_profile_close(end);
	}
	if (sent >= 0)
		return;
	lw_user_printable(shown, sizeof(shown), directory);
	lw_user_write_line("lockworks: process %d is not profiled: cannot write in %s\n",
			   (int)getpid(), shown);
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

/*
 * Notes one time by both clocks. Of several readings it is the one that took least: between the
 * two, the thread may have been preempted.
 */
static void lw_note_both_clocks(struct lw_profile *profile)
{
	uint64_t least = UINT64_MAX;

	for (int n = 0; n < 4; n++) {
		const uint64_t time = lw_profile_now();
		const uint64_t ns = lw_profile_clock_ns(CLOCK_MONOTONIC);
		const uint64_t took = lw_profile_now() - time;

		if (took < least) {
			least = took;
			profile->time = time;
			profile->at_ns = ns;
		}
	}
}

static void lw_record_begin(void)
{
	const char *directory = secure_getenv("LOCKWORKS_PROFILE");
	struct lw_profile *profile;
	char path[4096];
	int saved = errno;

	if (!directory)
		return;
	profile = lw_record_map(directory, path, sizeof(path));
	if (!profile) {
		lw_record_missing(directory, (uint32_t)errno);
		errno = saved;
		return;
	}
	lw_profile_own.has_tsc = lw_kernel_has_tsc();
	profile->has_tsc = lw_profile_own.has_tsc;
	lw_note_both_clocks(profile);
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
	lw_profile_steps_begin(path);
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
	lw_profile_steps_forget();
	memset(&lw_modules_lock, 0, sizeof(lw_modules_lock));
	lw_record_begin();
}

/* fork() of glibc calls the handlers of pthread_atfork(), and _Fork() does not. */
LW_EXPORT pid_t _Fork(void)
{
	pid_t (*of_glibc)(void) = (pid_t(*)(void))dlsym(RTLD_NEXT, "_Fork");
	pid_t pid = of_glibc ? of_glibc() : -1;

	if (!of_glibc)
		errno = ENOSYS;
	if (pid == 0)
		lw_record_fork_child();
	return pid;
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
