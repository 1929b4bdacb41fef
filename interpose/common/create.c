// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * pthread_create() and thrd_create(): a thread runs its function within ours, so that we learn when
 * it begins and exits. A pthread key would do that too, but the program may use all of them.
 * Threads that glibc starts for itself do not come here.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <stdlib.h>
#include <threads.h>

#include "create.h"
#include "glibc.h"

struct lw_start {
	void *(*run)(void *);
	thrd_start_t run_c11; /* for thrd_create(); then `run` is NULL */
	void *arg;
	struct lw_start *next; /* returned by a thread before */
};

/*
 * What threads have returned. A thread does not free it, because malloc() gives a thread that calls
 * it an arena, with 64 MiB of addresses. Threads that do not allocate need none.
 */
static lw_atomic(struct lw_start *) lw_returned;

static struct lw_start *lw_start_take(void)
{
	struct lw_start *start = lw_xchg(&lw_returned, NULL, acquire), *other;

	if (!start)
		return malloc(sizeof(*start));
	while ((other = start->next)) {
		start->next = other->next;
		free(other);
	}
	return start;
}

static void lw_start_return(struct lw_start *start)
{
	start->next = lw_load(&lw_returned, relaxed);
	while (!lw_try_cmpxchg(&lw_returned, &start->next, start, release))
		;
}

static void lw_at_exit(void *arg)
{
	(void)arg;
	lw_thread_ends();
}

static void *lw_run(void *arg)
{
	struct lw_start start = *(struct lw_start *)arg;
	void *result;

	lw_start_return(arg);
	lw_thread_begins(start.run ? (void *)start.run : (void *)start.run_c11);
	pthread_cleanup_push(lw_at_exit, NULL);
	if (start.run)
		result = start.run(start.arg);
	else
		result = (void *)(intptr_t)start.run_c11(start.arg); /* as thrd_join() reads it */
	pthread_cleanup_pop(1);
	return result;
}

static int lw_create(pthread_t *thread, const pthread_attr_t *attr, struct lw_start start)
{
	struct lw_start *copy = lw_start_take();
	int error;

	if (!copy)
		return EAGAIN;
	*copy = start;
	lw_creates_thread();
	error = lw_glibc()->create(thread, attr, lw_run, copy);
	if (error)
		lw_start_return(copy);
	return error;
}

/* The functions that programs call */

LW_EXPORT int pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*run)(void *),
			     void *arg)
{
	const struct lw_start start = {.run = run, .arg = arg};

	return lw_create(thread, attr, start);
}

LW_EXPORT int thrd_create(thrd_t *thread, thrd_start_t run, void *arg)
{
	const struct lw_start start = {.run_c11 = run, .arg = arg};

	return lw_create(thread, NULL, start) ? thrd_error : thrd_success;
}
