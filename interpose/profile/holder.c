// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#define _GNU_SOURCE
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "holder.h"

ssize_t lw_profile_read_file(const char *path, char *text, size_t size)
{
	int saved = errno, error = 0;
	int file = lw_profile_open(path, O_RDONLY);
	ssize_t got = 0;

	if (file < 0) {
		error = errno;
	} else {
		got = lw_profile_read(file, text, size - 1);
		error = got < 0 ? errno : 0;
		lw_profile_close(file);
	}
	errno = saved;
	text[error ? 0 : got] = '\0';
	return error ? -error : got;
}

uint64_t lw_profile_cpu_time(uint32_t tid)
{
	/* The kernel's number for the clock of a thread, as in pthread_getcpuclockid(). */
	const clockid_t clock = (clockid_t)(~tid << 3 | 6);
	struct timespec time = {0, 0};
	int saved = errno;

	clock_gettime(clock, &time);
	errno = saved;
	return (uint64_t)time.tv_sec * 1000000000 + (uint64_t)time.tv_nsec;
}

/*
 * proc_pid_syscall(5): "running"; or the number of a system call, its six arguments, the stack
 * pointer and the program counter; or -1 and the last two, if the thread sleeps elsewhere.
 */
struct lw_doing lw_profile_look(uint32_t tid)
{
	const uint64_t cpu_time = lw_profile_cpu_time(tid);
	char path[64], text[256], *end;
	ssize_t got;
	long number;

	snprintf(path, sizeof(path), "/proc/self/task/%u/syscall", tid);
	got = lw_profile_read_file(path, text, sizeof(text));
	if (got < 0)
		return (struct lw_doing){LW_PROFILE_UNSEEN, (uint64_t)-got};
	number = strtol(text, &end, 10);
	/* The CPU time of a thread that runs is exact, so it has grown meanwhile. */
	if (end == text)
		return (struct lw_doing){lw_profile_cpu_time(tid) != cpu_time
						 ? LW_PROFILE_RAN
						 : LW_PROFILE_PREEMPTED,
					 0};
	if (number >= 0)
		return (struct lw_doing){LW_PROFILE_SLEPT, (uint64_t)number};
	strtoull(end, &end, 16);
	return (struct lw_doing){LW_PROFILE_FAULTED, strtoull(end, NULL, 16)};
}

/* Quotas */

/*
 * The directory of the process' control group in the hierarchy with the CPU controller, and the
 * length of the part where the hierarchy is mounted. Quotas of the groups above count too.
 */
static struct {
	char directory[1024];
	size_t mount;
} lw_quota;

/* The time for which these groups had been throttled when they were last read, and that moment. */
static lw_atomic(uint64_t) lw_throttled;
static lw_atomic(uint64_t) lw_throttled_read;

/* A reading is recent for this time, in nanoseconds. */
#define LW_RECENT 10000000

/* Returns whether `names`, which commas separate, has `name`. */
static bool lw_has_name(const char *names, const char *name)
{
	const size_t length = strlen(name);

	for (; names; names = strchr(names, ',') ? strchr(names, ',') + 1 : NULL) {
		if (!strncmp(names, name, length) && (!names[length] || names[length] == ','))
			return true;
	}
	return false;
}

/*
 * cgroups(7): a line is NUMBER:CONTROLLERS:PATH. In version 2 there are no controllers. If a
 * hierarchy of version 1 has the CPU controller, version 2 does not.
 */
void lw_profile_find_quota(void)
{
	char text[4096], *next = text, *line;

	lw_quota.mount = 0;
	if (lw_profile_read_file("/proc/self/cgroup", text, sizeof(text)) < 0)
		return;
	while ((line = strsep(&next, "\n"))) {
		char *controllers = strchr(line, ':');
		char *path = controllers ? strchr(++controllers, ':') : NULL;
		const char *mount = "/sys/fs/cgroup";

		if (!path)
			continue;
		*path++ = '\0';
		if (lw_has_name(controllers, "cpu"))
			mount = "/sys/fs/cgroup/cpu";
		else if (*controllers || lw_quota.mount)
			continue;
		snprintf(lw_quota.directory, sizeof(lw_quota.directory), "%s%s", mount,
			 strcmp(path, "/") ? path : "");
		lw_quota.mount = strlen(mount);
	}
	lw_profile_throttled(lw_profile_clock_ns(CLOCK_MONOTONIC));
}

/* Returns what cpu.stat says: microseconds in version 2, nanoseconds in version 1. */
static uint64_t lw_throttled_ns(const char *text)
{
	const char *us = strstr(text, "throttled_usec "), *ns = strstr(text, "throttled_time ");

	return us   ? strtoull(us + strlen("throttled_usec "), NULL, 10) * 1000
	       : ns ? strtoull(ns + strlen("throttled_time "), NULL, 10)
		    : 0;
}

uint64_t lw_profile_throttled(uint64_t now)
{
	size_t length = lw_quota.mount ? strlen(lw_quota.directory) : 0;
	uint64_t throttled = 0, before = lw_load(&lw_throttled, relaxed);

	while (length && length >= lw_quota.mount) {
		char path[sizeof(lw_quota.directory) + 16], text[512];

		snprintf(path, sizeof(path), "%.*s/cpu.stat", (int)length, lw_quota.directory);
		if (lw_profile_read_file(path, text, sizeof(text)) > 0)
			throttled += lw_throttled_ns(text);
		do {
			length--;
		} while (length && lw_quota.directory[length] != '/');
	}
	lw_store(&lw_throttled_read, now, relaxed);
	/* It never falls, so a group could not be read. */
	if (throttled < before)
		return before;
	lw_store(&lw_throttled, throttled, relaxed);
	return throttled;
}

uint64_t lw_profile_throttled_recently(uint64_t now)
{
	return now - lw_load(&lw_throttled_read, relaxed) < LW_RECENT
		       ? lw_load(&lw_throttled, relaxed)
		       : lw_profile_throttled(now);
}
