// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * Uses locks as early as possible. First while the loader resolves an indirect function: libraries
 * before this one in its order, such as the preload library, are not relocated yet. Then in a
 * constructor, which runs before that of the preload library.
 */
#include "library.h"

static struct library used = {
	.mutexes = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP},
	.cond = PTHREAD_COND_INITIALIZER,
};

static inline __attribute__((always_inline)) void count(unsigned int *counter)
{
	for (int i = 0; i < 2; i++) {
		if (pthread_mutex_lock(&used.mutexes[i]))
			return;
	}
	if (pthread_mutex_trylock(&used.mutexes[1]) || pthread_mutex_unlock(&used.mutexes[1]))
		return;
	++*counter;
	for (int i = 0; i < 2; i++) {
		if (pthread_mutex_unlock(&used.mutexes[i]))
			*counter = 99;
	}
}

static struct library *get_library(void)
{
	return &used;
}

static struct library *(*resolve_get(void))(void)
{
	count(&used.resolved);
	return get_library;
}

/* Static, so that the loader resolves it with this library, not with the program that calls it. */
static struct library *get(void) __attribute__((ifunc("resolve_get")));

struct library *library(void)
{
	return get();
}

__attribute__((constructor)) static void construct(void)
{
	count(&used.constructed);
}
