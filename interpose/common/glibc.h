/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The functions of glibc that ours replace. Ours call them for everything that they do not serve.
 */
#ifndef LW_INTERPOSE_GLIBC_H
#define LW_INTERPOSE_GLIBC_H

#include <pthread.h>

#include "operations.h"

/* The list of these functions: LW_GLIBC(name) stands for pthread_<name>(). */
#define LW_GLIBC_FUNCTIONS(LW_GLIBC) \
	LW_GLIBC(create)             \
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
	LW_GLIBC(cond_broadcast)     \
	LW_GLIBC(rwlock_rdlock)      \
	LW_GLIBC(rwlock_tryrdlock)   \
	LW_GLIBC(rwlock_timedrdlock) \
	LW_GLIBC(rwlock_clockrdlock) \
	LW_GLIBC(rwlock_wrlock)      \
	LW_GLIBC(rwlock_trywrlock)   \
	LW_GLIBC(rwlock_timedwrlock) \
	LW_GLIBC(rwlock_clockwrlock) \
	LW_GLIBC(rwlock_unlock)      \
	LW_GLIBC(spin_lock)          \
	LW_GLIBC(spin_trylock)

struct lw_glibc {
#define LW_GLIBC(name) __typeof__(&pthread_##name) name;
	LW_GLIBC_FUNCTIONS(LW_GLIBC)
#undef LW_GLIBC
	lw_atomic(bool) found;
};

extern struct lw_glibc lw_glibc_functions __attribute__((visibility("hidden")));

/* Looks the functions up. Threads that call it at the same time find the same. */
void lw_glibc_find(void);

/*
 * Returns the functions of glibc. Works before constructors have run, but not while
 * lw_is_too_early().
 */
static inline const struct lw_glibc *lw_glibc(void)
{
	if (lw_unlikely(!lw_load(&lw_glibc_functions.found, acquire)))
		lw_glibc_find();
	return &lw_glibc_functions;
}

/* NULL until this library is relocated; then its own address. */
static const void *const volatile lw_relocated = (const void *)&lw_relocated;

/*
 * Returns whether the loader is still relocating this library. No other function can be called
 * then. There is only one thread, which needs no lock.
 */
static inline bool lw_is_too_early(void)
{
	return lw_unlikely(lw_relocated != (const void *)&lw_relocated);
}

/* Where the function that a program has called will return to. */
#define LW_CALLER __builtin_return_address(0)

#if __has_attribute(copy)
#define LW_ATTRIBUTES_OF(name) , copy(name)
#else
#define LW_ATTRIBUTES_OF(name)
#endif
/* Exports a function under its name inside glibc as well, which older programs use: __<name>. */
#define LW_OLD_NAME(name) \
	LW_EXPORT __typeof__(name) __##name __attribute__((alias(#name) LW_ATTRIBUTES_OF(name)))

#endif
