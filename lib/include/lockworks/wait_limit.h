/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Wait limits: a deadline or a cancellation ends a wait for a lock early. lockworks.h has the
 * functions that take them.
 */
#ifndef LW_WAIT_LIMIT_H
#define LW_WAIT_LIMIT_H

#include <sys/types.h> /* clockid_t, which <time.h> has for POSIX only */
#include <time.h>

#include "world.h"

/* Cancels one wait. Its members are private; lw_cancel() sets them. LW_CANCEL_INIT at first. */
struct lw_cancel {
	lw_atomic(bool) cancelled;
	lw_atomic(uint32_t) slot; /* of the waiter while it is parked; 0 while it is not */
};

/* The limit of one wait, which ends at `deadline` or by `cancel`, whichever comes first. */
struct lw_wait_limit {
	const struct timespec *deadline; /* a time of `clock`; NULL: no deadline */
	struct lw_cancel *cancel;	 /* NULL: the wait cannot be cancelled */
	clockid_t clock;		 /* CLOCK_MONOTONIC or CLOCK_REALTIME */
};

#endif
