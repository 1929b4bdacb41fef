/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The functions of glibc that ours stand before, for what we do not serve. */
#ifndef LW_PRELOAD_GLIBC_H
#define LW_PRELOAD_GLIBC_H

#include <pthread.h>

#include "operations.h"

/* LW_GLIBC(name): pthread_<name>() */
#define LW_GLIBC_FUNCTIONS(LW_GLIBC) \
	LW_GLIBC(mutex_init)         \
	LW_GLIBC(mutex_destroy)      \
	LW_GLIBC(mutex_lock)         \
	LW_GLIBC(mutex_trylock)      \
	LW_GLIBC(mutex_timedlock)    \
	LW_GLIBC(mutex_clocklock)    \
	LW_GLIBC(mutex_unlock)       \
	LW_GLIBC(cond_init)          \
	LW_GLIBC(cond_destroy)       \
	LW_GLIBC(cond_wait)          \
	LW_GLIBC(cond_timedwait)     \
	LW_GLIBC(cond_clockwait)     \
	LW_GLIBC(cond_signal)        \
	LW_GLIBC(cond_broadcast)

struct lw_glibc {
#define LW_GLIBC(name) __typeof__(&pthread_##name) name;
	LW_GLIBC_FUNCTIONS(LW_GLIBC)
#undef LW_GLIBC
	lw_atomic(bool) found;
};

extern struct lw_glibc lw_glibc_functions __attribute__((visibility("hidden")));

void lw_glibc_find(void);

/* Also before constructors, but not before we are relocated. */
static inline const struct lw_glibc *lw_glibc(void)
{
	if (lw_unlikely(!lw_load(&lw_glibc_functions.found, acquire)))
		lw_glibc_find();
	return &lw_glibc_functions;
}

/* Null until we are relocated, when it is its own address. */
static const void *const volatile lw_relocated = (const void *)&lw_relocated;

/* While the loader relocates there is one thread, which needs no lock, and nothing can be called.
 */
static inline bool lw_is_too_early(void)
{
	return lw_unlikely(lw_relocated != (const void *)&lw_relocated);
}

/* Older programs may know a function by its name inside of glibc, too. */
#define LW_OLD_NAME(name) \
	LW_EXPORT __typeof__(name) __##name __attribute__((alias(#name), copy(name)))

#endif
