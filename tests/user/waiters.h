/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Shared by the tests of locks whose waiters park: the locks, and threads that contend. */
#ifndef LW_TEST_WAITERS_H
#define LW_TEST_WAITERS_H

#include "test.h"

#include <stdatomic.h>
#include <time.h>

/* The clock of all deadlines. */
static clockid_t test_clock = CLOCK_MONOTONIC;

/* A lock whose waiters park. */
struct subject {
	const char *name;
	union lw_word *word;
	void (*lock)(void);
	bool (*trylock)(void);
	void (*unlock)(void);
	uint32_t unlocked; /* bits that the unlocked word may have */
	/* NULL if its waits have no limit. */
	int (*lock_until)(const struct timespec *deadline, struct lw_cancel *cancel);
};

#define SUBJECT(id)                                     \
	static struct lw_##id id##_tested;              \
	static void id##_lock(void)                     \
	{                                               \
		lw_##id##_lock(&id##_tested);           \
	}                                               \
	static bool id##_trylock(void)                  \
	{                                               \
		return lw_##id##_trylock(&id##_tested); \
	}                                               \
	static void id##_unlock(void)                   \
	{                                               \
		lw_##id##_unlock(&id##_tested);         \
	}

#define SUBJECT_UNTIL(id)                                                                     \
	SUBJECT(id)                                                                           \
	static int id##_lock_until(const struct timespec *deadline, struct lw_cancel *cancel) \
	{                                                                                     \
		return lw_##id##_lock_until(&id##_tested, test_clock, deadline, cancel);      \
	}

SUBJECT_UNTIL(pv)
SUBJECT_UNTIL(unfair)
SUBJECT_UNTIL(mutex)
#ifdef LW_WITH_HISTORIC
#include "pv42.h"
SUBJECT(pv42)
#endif

#define SUBJECT_ROW(id)                                                                     \
	.name = #id, .word = &id##_tested.word, .lock = id##_lock, .trylock = id##_trylock, \
	.unlock = id##_unlock

static const struct subject subjects[] = {
	{SUBJECT_ROW(pv), .lock_until = pv_lock_until},
	{SUBJECT_ROW(unfair), .lock_until = unfair_lock_until},
	{SUBJECT_ROW(mutex), .unlocked = LW_MAY_STAY | (LW_LOCKED_MASK ^ LW_LOCKED),
	 .lock_until = mutex_lock_until},
#ifdef LW_WITH_HISTORIC
	{SUBJECT_ROW(pv42)},
#endif
};

#define SUBJECTS (sizeof(subjects) / sizeof(subjects[0]))
/* The first ones have lock_until: this many. */
#define UNTIL_SUBJECTS 3

/*
 * A lost wake-up makes a test hang. After this many seconds it ends and says where. No step takes
 * nearly as long, even on a machine that is busy with other work.
 */
#define HANG_SECONDS 600

static const char *watched;

static inline void on_watch(int signal)
{
	static const char text[] = ": hangs\n";

	(void)signal;
	(void)!write(STDERR_FILENO, watched, strlen(watched));
	(void)!write(STDERR_FILENO, text, sizeof(text) - 1);
	_exit(1);
}

static inline void watch(const char *what)
{
	struct sigaction action = {.sa_handler = on_watch};

	watched = what;
	CHECK(sigaction(SIGALRM, &action, NULL) == 0);
	alarm(HANG_SECONDS);
}

/*
 * Sends signals to the process at a high rate. Their handler does not restart system calls. Returns
 * the timer, whose deletion ends them.
 */
static inline timer_t interrupt_with(void (*handler)(int signal))
{
	struct sigaction action = {.sa_handler = handler};
	struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGUSR1};
	struct itimerspec every = {.it_interval.tv_nsec = 50000, .it_value.tv_nsec = 50000};
	timer_t timer;

	CHECK(sigaction(SIGUSR1, &action, NULL) == 0);
	CHECK(timer_create(CLOCK_MONOTONIC, &event, &timer) == 0);
	CHECK(timer_settime(timer, 0, &every, NULL) == 0);
	return timer;
}

/* Returns the time `ns` nanoseconds from now. */
static inline struct timespec from_now(long ns)
{
	struct timespec time;

	CHECK(clock_gettime(test_clock, &time) == 0);
	time.tv_nsec += ns % 1000000000;
	time.tv_sec += ns / 1000000000 + time.tv_nsec / 1000000000;
	time.tv_nsec %= 1000000000;
	return time;
}

static inline bool is_past(const struct timespec *time)
{
	struct timespec now = from_now(0);

	return now.tv_sec > time->tv_sec ||
	       (now.tv_sec == time->tv_sec && now.tv_nsec >= time->tv_nsec);
}

/* The lock under test protects these. */
static unsigned long acquired;
static bool inside;

/* The critical section: checks that no other thread is in it. */
static inline void hold(void)
{
	CHECK(!inside);
	inside = true;
	acquired++;
	/* Yield now and then, so that other threads wait. */
	if (acquired % 64 == 0)
		sched_yield();
	CHECK(inside);
	inside = false;
}

/* Acquires the lock `turns` times. Checks that errno stays as it was. */
static inline void contend_for(const struct subject *subject, unsigned int turns)
{
	for (unsigned int turn = 0; turn < turns; turn++) {
		errno = ENOTTY;
		subject->lock();
		CHECK(errno == ENOTTY);
		hold();
		subject->unlock();
		CHECK(errno == ENOTTY);
	}
}

/* Returns how often waiters have parked. */
static inline uint64_t halts(void)
{
	return counted(LW_EVENT_halts_at_head) + counted(LW_EVENT_halts_in_queue);
}

/*
 * Waits until waiters have parked `n` times since `before`. They count before they park, so give
 * them time to do it; no check depends on that time.
 */
static inline void await_halts(uint64_t before, unsigned int n)
{
	while (halts() < before + n)
		usleep(200);
	usleep(2000);
}

/* Checks that no thread holds the lock or waits for it, and that it can be acquired. */
static inline void check_free(const struct subject *subject)
{
	CHECK(!(lw_load(&subject->word->val, relaxed) & ~subject->unlocked));
	CHECK(subject->trylock());
	subject->unlock();
	CHECK(!(lw_load(&subject->word->val, relaxed) & ~subject->unlocked));
}

#endif
