// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * The report of a process at its exit, on what the chosen lock did not serve. With
 * LOCKWORKS_VERBOSE=1 each process reports. Without it, only the process that a command of
 * Lockworks starts reports, if it has threads and no mutex was served. LOCKWORKS_OTHER_LOCKS tells
 * that process which other locks its program uses.
 *
 * LOCKWORKS_SERVED_FILE names a file of one byte, by which the command knows whether a process that
 * has threads was served. It is mapped at the start, so that no system call is needed later. A
 * child by fork() counts as served if its parent was.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "choice.h"
#include "messages.h"
#include "mutex_parts.h"
#include "not_served.h"
#include "plan.h"
#include "settings.h"

struct lw_not_served lw_not_served;

/* The bits of a mutex's type, as glibc has them. */
#define LW_KIND_ROBUST 16
#define LW_KIND_SHARED 128

void lw_count_left(const pthread_mutex_t *mutex)
{
	int kind = lw_mutex_kind(mutex);
	enum lw_left left = LW_LEFT_PRIORITY;

	if (kind & LW_KIND_LEFT)
		return;
	if (kind & LW_KIND_SHARED)
		left = LW_LEFT_SHARED;
	else if (kind & LW_KIND_ROBUST)
		left = LW_LEFT_ROBUST;
	lw_fetch_add(&lw_not_served.left[left], 1, relaxed);
}

/* The notice of the command that has started this process; empty in all other processes. */
static char lw_other_locks[256];

/* The byte of the file; NULL without one. */
static lw_atomic(uint8_t) * lw_served_byte;

/* As LOCKWORKS_VERBOSE says. At the exit, the environment may be another. */
static bool lw_reports, lw_warns;

static void lw_not_served_fork_child(void)
{
	lw_other_locks[0] = '\0';
	memset(&lw_not_served, 0, sizeof(lw_not_served));
}

/* The first byte of a file, in memory that is shared with other processes; NULL if it cannot be. */
static void *lw_map_byte(const char *path)
{
	int file = path ? open(path, O_RDWR | O_CLOEXEC) : -1;
	void *byte = MAP_FAILED;

	if (file >= 0) {
		byte = mmap(NULL, 1, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
		close(file);
	}
	return byte == MAP_FAILED ? NULL : byte;
}

__attribute__((constructor(102))) static void lw_not_served_start(void)
{
	const char *text = secure_getenv("LOCKWORKS_OTHER_LOCKS");

	lw_reports = lw_verbose_is("1");
	lw_warns = !lw_verbose_is("0");
	if (text) {
		lw_user_printable(lw_other_locks, sizeof(lw_other_locks), text);
		/* The programs that this one starts are others. */
		unsetenv("LOCKWORKS_OTHER_LOCKS");
	}
	lw_served_byte = lw_map_byte(secure_getenv("LOCKWORKS_SERVED_FILE"));
	/* Libraries that start before this one may have threads and mutexes. */
	lw_tell_served();
	pthread_atfork(NULL, NULL, lw_not_served_fork_child);
}

void lw_tell_served(void)
{
	if (lw_served_byte && lw_load(&lw_choice.served, relaxed) &&
	    lw_load(&lw_not_served.has_threads, relaxed))
		lw_store(lw_served_byte, 1, relaxed);
}

static uint64_t lw_all_left(void)
{
	uint64_t all = 0;

	for (int i = 0; i < LW_LEFT_KINDS; i++)
		all += lw_load(&lw_not_served.left[i], relaxed);
	return all;
}

__attribute__((destructor)) static void lw_not_served_report(void)
{
	bool served = lw_load(&lw_choice.served, relaxed);
	bool warns = lw_warns && !served && lw_other_locks[0] &&
		     lw_load(&lw_not_served.has_threads, relaxed);
	uint64_t left = lw_all_left();

	if (!(lw_reports || warns) || !lw_has_stderr())
		return;
	if (lw_has_plan() && lw_reports)
		lw_plan_report();
	if (!served && lw_has_plan())
		lw_user_write_line(
			"lockworks: warning: the program locked no mutex that the plan has a lock "
			"for, so no lock of Lockworks served it\n");
	else if (!served && left)
		lw_user_write_line(
			"lockworks: warning: the program locked only mutexes that are left to "
			"glibc, so no lock of Lockworks served it\n");
	else if (!served)
		lw_user_write_line(
			"lockworks: warning: the program locked no pthread mutex, so no lock of "
			"Lockworks served it%s%s\n",
			lw_other_locks[0] ? "; " : "", lw_other_locks);
	if (left)
		lw_user_write_line("lockworks: left to glibc in process %d: mutexes locked %" PRIu64
				   " times (process-shared %" PRIu64 ", robust %" PRIu64
				   ", with priorities %" PRIu64 ")\n",
				   (int)getpid(), left,
				   lw_load(&lw_not_served.left[LW_LEFT_SHARED], relaxed),
				   lw_load(&lw_not_served.left[LW_LEFT_ROBUST], relaxed),
				   lw_load(&lw_not_served.left[LW_LEFT_PRIORITY], relaxed));
}
