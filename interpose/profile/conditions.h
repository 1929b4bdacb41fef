/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Waits for conditions, and their signals, added to the record. */
#ifndef LW_PROFILE_CONDITIONS_H
#define LW_PROFILE_CONDITIONS_H

#include <pthread.h>

#include "record.h"

/* The last wake-up of a thread. It is forgotten when the thread unlocks the mutex. */
struct lw_profile_woken {
	const pthread_cond_t *cond; /* NULL: none */
	const pthread_mutex_t *mutex;
};

extern __thread struct lw_profile_woken lw_profile_woken
	__attribute__((tls_model("initial-exec"), visibility("hidden")));

/*
 * Records that this thread begins to wait at `caller`. If it was woken for the same condition and
 * has not unlocked the mutex since, that was for nothing.
 */
void lw_profile_waits_for(const pthread_cond_t *cond, const pthread_mutex_t *mutex,
			  const void *caller);

/* Records the end of the wait, which took this time of the record and returned `error`. */
void lw_profile_waited_for(const pthread_cond_t *cond, const pthread_mutex_t *mutex,
			   const void *caller, uint64_t time, int error);

/* Records that this thread wakes a waiter, or all of them. */
void lw_profile_signals(const pthread_cond_t *cond, const void *caller, bool is_broadcast);

/* Records that this thread unlocks a mutex. */
static inline void lw_profile_forget_woken(const pthread_mutex_t *mutex)
{
	if (lw_profile_woken.mutex == mutex)
		lw_profile_woken = (struct lw_profile_woken){NULL, NULL};
}

#endif
