// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/* Parking: private futexes. */
#include <errno.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "operations.h"

/* Locks are used where errno must not change, as in signal handlers. */
static void lw_futex(const uint32_t *word, int op, uint32_t value)
{
	int saved = errno;

	syscall(SYS_futex, word, op | FUTEX_PRIVATE_FLAG, value, NULL, NULL, 0);
	errno = saved;
}

void lw_user_park(const uint32_t *word, uint32_t value, const struct lw_patience *patience)
{
	(void)patience;
	lw_futex(word, FUTEX_WAIT, value);
}

void lw_user_unpark(const uint32_t *word)
{
	lw_futex(word, FUTEX_WAKE, 1);
}
