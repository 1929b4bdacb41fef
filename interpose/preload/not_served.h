/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The locks that were not served in this process. The process reports them when it exits. */
#ifndef LW_PRELOAD_NOT_SERVED_H
#define LW_PRELOAD_NOT_SERVED_H

#include <pthread.h>

#include "operations.h"

/* Why a mutex is left to glibc. */
enum lw_left { LW_LEFT_SHARED, LW_LEFT_ROBUST, LW_LEFT_PRIORITY, LW_LEFT_KINDS };

struct lw_not_served {
	lw_atomic(bool) has_threads;		 /* the process has created a thread */
	lw_atomic(uint64_t) left[LW_LEFT_KINDS]; /* calls that lock such mutexes */
};

extern struct lw_not_served lw_not_served __attribute__((visibility("hidden")));

/* Counts a call that locks a mutex which is left to glibc. */
void lw_count_left(const pthread_mutex_t *mutex);

/* Tells the command that has started the program, once this process has threads and is served. */
void lw_tell_served(void);

#endif
