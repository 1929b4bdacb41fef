/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Time slice extensions of Linux 7.0. A thread that holds a lock asks, by a byte in memory that it
 * shares with the kernel (rseq). If its time slice ends while it asks, the kernel may grant it some
 * microseconds more. The kernel then clears the request and sets a second byte, and the thread
 * gives its CPU back by a system call, as soon as it has released the lock.
 */
#ifndef LW_USER_SLICE_H
#define LW_USER_SLICE_H

#include "world.h"

/* Starts or stops the requests of all threads, which the tunable mutex_slice does. */
static inline void lw_user_set_slices(bool wanted)
{
	__atomic_store_n(&lw_slices_wanted, wanted, __ATOMIC_RELAXED);
}

/* Takes back from the kernel what this thread has shared with it. The thread exits. */
void lw_slice_thread_exit(void);

#endif
