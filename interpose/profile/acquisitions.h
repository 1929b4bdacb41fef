/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Acquisitions and releases of locks, added to the record. This allocates no memory, takes no lock,
 * and is no cancellation point. Most acquisitions make no system call, except the clock where that
 * is one. Four do: the first of a thread, which asks for its ID; one that first uses a page of the
 * record; one at a new place in a module that is not known yet, which reads /proc/self/maps under a
 * lock that is only tried; and a contended one, which looks at the holder (waits.h).
 */
#ifndef LW_PROFILE_ACQUISITIONS_H
#define LW_PROFILE_ACQUISITIONS_H

#include <errno.h>

#include "glibc.h"
#include "record.h"
#include "waits.h"

/* How a lock was acquired. */
enum lw_profile_how {
	LW_AT_ONCE,
	LW_CONTENDED,
	LW_TRIED,	    /* at once, by a trylock */
	LW_AFTER_CONDITION, /* a mutex, by the wait for a condition; it may be contended as well */
};

/*
 * Records that this thread has acquired a lock at `caller`; `begun` is the time at which it began
 * to wait for another thread, 0 if it did not. `kind` is the kind of a mutex as glibc stores it, or
 * LW_PROFILE_SHARED of an rwlock that processes share.
 */
void lw_profile_acquired(uint64_t key, uint32_t kind, const void *caller, enum lw_profile_how how,
			 uint64_t begun);

/* Records that this thread could not acquire a lock at `caller`, which others have. */
void lw_profile_failed(uint64_t key, const void *caller);

/* Records that this thread releases a lock that it holds alone. If it does not, does nothing. */
void lw_profile_releases(uint64_t key);

/* Records that this thread releases an rwlock, which it reads or holds alone. */
void lw_profile_releases_rwlock(const void *rwlock);

/* Forgets what this thread reads. */
void lw_profile_forget_reads(void);

/*
 * Returns the entry of a key; with `add`, makes one if there is none. Returns NULL if there is no
 * entry, or no room for one near its place.
 */
struct lw_profile_lock *lw_profile_find(struct lw_profile *profile, uint64_t key, bool add);

static inline bool lw_holds(int error)
{
	return error == 0 || error == EOWNERDEAD;
}

/*
 * Acquires a lock for a function of glibc, and returns the error. Evaluates `try` first, so every
 * acquisition that had to wait is counted. If another thread has the lock, waits for it until
 * `deadline` on `clock`; NULL: without a limit.
 */
#define LW_MEASURE(lock, mode, kind, try, clock, deadline)                                       \
	({                                                                                       \
		const void *lw_caller = __builtin_return_address(0);                             \
		int lw_error;                                                                    \
		if (lw_is_too_early())                                                           \
			return 0;                                                                \
		lw_error = (try);                                                                \
		if (lw_error == EBUSY) {                                                         \
			uint64_t lw_begun = lw_profile_now();                                    \
			lw_error = lw_profile_wait(lock, mode, (kind)&LW_PROFILE_SHARED,         \
						   lw_caller, lw_begun, clock, deadline);        \
			if (lw_holds(lw_error))                                                  \
				lw_profile_acquired(lw_profile_key(lock, mode), kind, lw_caller, \
						    LW_CONTENDED, lw_begun);                     \
			else                                                                     \
				lw_profile_failed(lw_profile_key(lock, mode), lw_caller);        \
		} else if (lw_holds(lw_error)) {                                                 \
			lw_profile_acquired(lw_profile_key(lock, mode), kind, lw_caller,         \
					    LW_AT_ONCE, 0);                                      \
		}                                                                                \
		lw_error;                                                                        \
	})

/* The same without a wait. */
#define LW_MEASURE_TRY(key, kind, try)                                                            \
	({                                                                                        \
		int lw_error;                                                                     \
		if (lw_is_too_early())                                                            \
			return 0;                                                                 \
		lw_error = (try);                                                                 \
		if (lw_holds(lw_error))                                                           \
			lw_profile_acquired(key, kind, __builtin_return_address(0), LW_TRIED, 0); \
		else if (lw_error == EBUSY)                                                       \
			lw_profile_failed(key, __builtin_return_address(0));                      \
		lw_error;                                                                         \
	})

#endif
