/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The kernel's view of a thread of this process: whether it runs, could run, or sleeps, and
 * where. These functions allocate no memory, take no lock, are no cancellation points and leave
 * errno as it is.
 */
#ifndef LW_PROFILE_HOLDER_H
#define LW_PROFILE_HOLDER_H

#include <fcntl.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>

#include "record.h"

/*
 * open(), read() and close(). The functions of glibc are cancellation points, which to lock a mutex
 * is not, so the system calls are made directly.
 */
static inline int lw_profile_open(const char *path, int flags)
{
	return (int)syscall(SYS_openat, AT_FDCWD, path, flags | O_CLOEXEC, 0600);
}

static inline ssize_t lw_profile_read(int file, char *to, size_t size)
{
	return syscall(SYS_read, file, to, size);
}

static inline void lw_profile_close(int file)
{
	syscall(SYS_close, file);
}

/*
 * Reads the beginning of a file into `text`, as a string. Returns its length, or the negative
 * error.
 */
ssize_t lw_profile_read_file(const char *path, char *text, size_t size);

/* The occupation of a thread, and the detail of it, as in the table of causes. */
struct lw_doing {
	enum lw_profile_what what; /* ran, preempted, slept, faulted or unseen */
	uint64_t detail;
};

/* Returns what the thread with this ID does. */
struct lw_doing lw_profile_look(uint32_t tid);

/* Returns the CPU time of the thread with this ID, in nanoseconds. 0: there is no such thread. */
uint64_t lw_profile_cpu_time(uint32_t tid);

/* Finds the control groups whose CPU quotas this process has, and how long they were throttled. */
void lw_profile_find_quota(void);

/*
 * Returns the time for which these groups were throttled so far, in nanoseconds, as the sum of all
 * CPUs. The kernel adds the time when it ends. `now` is the time of CLOCK_MONOTONIC.
 */
uint64_t lw_profile_throttled(uint64_t now);

/* The same, as a thread of this process has read it at most 10 ms ago. */
uint64_t lw_profile_throttled_recently(uint64_t now);

#endif
