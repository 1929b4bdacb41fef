/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Shared by the tests of the user world. A test is a program that exits with 0 if it passes. */
#ifndef LW_TEST_H
#define LW_TEST_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <lockworks/lockworks.h>
#include "queue_slot.h"

/*
 * Repetitions of a step: fewer under a sanitizer, which makes each one slow. At least 4, so that
 * a thread of the conformance client has a round of each kind.
 */
#ifdef LW_TEST_IS_WATCHED
#define REPETITIONS(n) ((n) / 50 > 4 ? (n) / 50 : 4)
#else
#define REPETITIONS(n) (n)
#endif

/* How a test ends when it fails. A fuzz target defines it before it includes this. */
#ifndef LW_TEST_FAIL
#define LW_TEST_FAIL() _exit(1)
#endif

#define CHECK(condition)                                                                        \
	do {                                                                                    \
		if (!(condition)) {                                                             \
			fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #condition); \
			LW_TEST_FAIL();                                                         \
		}                                                                               \
	} while (0)

/* A random number below `n`. The numbers are the same in every run. */
static inline uint32_t random_below(uint32_t n)
{
	static uint32_t state = 1;

	/* xorshift32, Marsaglia 2003 */
	state ^= state << 13;
	state ^= state >> 17;
	state ^= state << 5;
	return state % n;
}

static inline void thread_start(pthread_t *thread, size_t stack, void *(*run)(void *), void *arg)
{
	pthread_attr_t attr;

	CHECK(pthread_attr_init(&attr) == 0);
	if (stack)
		CHECK(pthread_attr_setstacksize(&attr, stack) == 0);
	CHECK(pthread_create(thread, &attr, run, arg) == 0);
	pthread_attr_destroy(&attr);
}

/* Runs `body` in a child process. Returns its exit status. */
static inline int in_child(void (*body)(void *arg), void *arg)
{
	int status;
	pid_t child = fork();

	CHECK(child >= 0);
	if (child == 0) {
		body(arg);
		_exit(0);
	}
	CHECK(waitpid(child, &status, 0) == child);
	CHECK(WIFEXITED(status));
	return WEXITSTATUS(status);
}

/* (0,0,0) -> (0,1,1): held, with the pending bit, so any thread that arrives now must queue. */
static inline void make_busy(union lw_word *word)
{
	lw_fetch_or(&word->val, LW_LOCKED | LW_PENDING, acquire);
}

/* (*,1,1) -> (*,0,0) */
static inline void end_busy(union lw_word *word)
{
	lw_fetch_and(&word->val, ~(LW_LOCKED | LW_PENDING), release);
}

/*
 * Waits until the tail of a busy lock is no longer `last` and the new queue node is linked to the
 * last one. Returns the new tail.
 */
static inline uint32_t await_tail(union lw_word *word, uint32_t last)
{
	uint32_t val;

	while (val = lw_load(&word->val, acquire),
	       !(val & LW_PENDING) || (val & LW_TAIL_MASK) == last)
		usleep(200);
	while (last && !lw_load(&lw_decode_tail(last)->next, acquire))
		usleep(200);
	return val & LW_TAIL_MASK;
}

/* Returns how often an event has been counted. */
static inline uint64_t counted(enum lw_event event)
{
	uint64_t counts[LW_EVENT_COUNT];

	lw_statistics(counts);
	return counts[event];
}

static uint64_t counted_before[LW_EVENT_COUNT];

/* Counts events anew, for since() and CHECK_COUNTED(). */
static inline void start_counting(void)
{
	lw_statistics(counted_before);
}

static inline uint64_t since(enum lw_event event)
{
	return counted(event) - counted_before[event];
}

#define CHECK_COUNTED(event, n) CHECK(since(LW_EVENT_##event) == (n))

/* Threads that attach to a slot and keep it until all of them have one. */
struct attached {
	pthread_barrier_t all;
	unsigned int slots[256];
};

struct attacher {
	struct attached *shared;
	unsigned int index;
};

static inline void *attach_and_wait(void *arg)
{
	struct attacher *self = arg;

	self->shared->slots[self->index] = lw_thread_attach();
	pthread_barrier_wait(&self->shared->all);
	return NULL;
}

/* Checks that `n` threads at the same time get different slots, from 1 to at most `highest`. */
static inline void check_slots_are_free(unsigned int n, unsigned int highest)
{
	static struct attached shared;
	static struct attacher attachers[256];
	static pthread_t threads[256];
	static bool seen[LW_MAX_SLOTS + 1];
	unsigned int own = lw_thread_attach();

	CHECK(n <= 256);
	memset(seen, 0, sizeof(seen));
	seen[own] = true;
	CHECK(pthread_barrier_init(&shared.all, NULL, n) == 0);
	for (unsigned int i = 0; i < n; i++) {
		attachers[i] = (struct attacher){&shared, i};
		thread_start(&threads[i], 0, attach_and_wait, &attachers[i]);
	}
	for (unsigned int i = 0; i < n; i++)
		CHECK(pthread_join(threads[i], NULL) == 0);
	pthread_barrier_destroy(&shared.all);
	for (unsigned int i = 0; i < n; i++) {
		CHECK(shared.slots[i] >= 1 && shared.slots[i] <= highest);
		CHECK(!seen[shared.slots[i]]);
		seen[shared.slots[i]] = true;
	}
}

#endif
