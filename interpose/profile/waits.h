/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Waits for locks of glibc. A wait that takes long is cut into steps. After each, one of the
 * waiters looks what the holder of the lock does, and adds the time since the last look to that
 * cause.
 */
#ifndef LW_PROFILE_WAITS_H
#define LW_PROFILE_WAITS_H

#include <time.h>

#include "record.h"

/*
 * Waits for a lock until `deadline` on `clock`; NULL: without a limit. `begun` is the time of the
 * record at which the wait began. Returns the error of glibc.
 */
int lw_profile_wait(void *lock, enum lw_profile_mode mode, bool is_shared, const void *caller,
		    uint64_t begun, clockid_t clock, const struct timespec *deadline);

#endif
