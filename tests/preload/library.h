/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Counts of what library.c did under locks. It is linked as libearly and loaded as libloaded. */
#ifndef LW_PRELOAD_LIBRARY_H
#define LW_PRELOAD_LIBRARY_H

#include "test.h"

struct library {
	pthread_mutex_t mutexes[2];
	pthread_cond_t cond;
	unsigned int resolved, constructed; /* counts, made with the mutexes held */
};

struct library *library(void);

static inline void check_library(struct library *library)
{
	struct timespec past = {1, 0};

	CHECK(library->resolved == 1 && library->constructed == 1);
	for (int i = 0; i < 2; i++) {
		CHECK(is_free(&library->mutexes[i]));
		GIVES(0, pthread_mutex_lock(&library->mutexes[i]));
		GIVES(ETIMEDOUT,
		      pthread_cond_timedwait(&library->cond, &library->mutexes[i], &past));
		GIVES(0, pthread_mutex_unlock(&library->mutexes[i]));
	}
}

#endif
