/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Shared by the tests of pthread behaviour. Each test is a program that exits with 0 if it passes:
 * under glibc alone, and under the preload library with each lock.
 */
#ifndef LW_PRELOAD_TEST_H
#define LW_PRELOAD_TEST_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "../runner.h"

#define CHECK(condition)                                                                        \
	do {                                                                                    \
		if (!(condition)) {                                                             \
			fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #condition); \
			_exit(1);                                                               \
		}                                                                               \
	} while (0)

/* Checks that the call returns `error`, 0 for none, and does not change errno. */
#define GIVES(error, call)                                                                    \
	do {                                                                                  \
		int given;                                                                    \
		errno = 77;                                                                   \
		given = (call);                                                               \
		if (given != (error) || errno != 77) {                                        \
			fprintf(stderr, "%s:%d: %s gives %d, errno %d\n", __FILE__, __LINE__, \
				#call, given, errno);                                         \
			_exit(1);                                                             \
		}                                                                             \
	} while (0)

/* What serves this process under a plan that leaves all to glibc. */
#define PLAN "plan"

/* Returns the name of the lock that must serve this process; NULL if glibc serves all. */
static inline const char *expected_lock(void)
{
	const char *name = getenv("EXPECTED_LOCK");

	return name && strcmp(name, PLAN) == 0 ? NULL : name;
}

/* A test that hangs ends after this many seconds; none takes nearly as long on a busy machine. */
#define HANG_SECONDS 600

/* Checks that the expected lock serves this process. Each test calls it first. */
static inline void begin(void)
{
	const char *(*name)(void), *expected = getenv("EXPECTED_LOCK");

	alarm(HANG_SECONDS);
	*(void **)&name = dlsym(RTLD_DEFAULT, "lw_preload_lock_name");
	if (expected)
		CHECK(name && strcmp(name(), expected) == 0);
	else
		CHECK(!name);
}

static inline struct timespec from_now(clockid_t clock, long milliseconds)
{
	struct timespec time;

	CHECK(clock_gettime(clock, &time) == 0);
	time.tv_sec += milliseconds / 1000;
	time.tv_nsec += milliseconds % 1000 * 1000000;
	if (time.tv_nsec < 0 || time.tv_nsec > 999999999) {
		long carry = time.tv_nsec < 0 ? -1 : 1;

		time.tv_sec += carry;
		time.tv_nsec -= carry * 1000000000;
	}
	return time;
}

static inline bool is_past(clockid_t clock, struct timespec time)
{
	struct timespec now = from_now(clock, 0);

	return now.tv_sec != time.tv_sec ? now.tv_sec > time.tv_sec : now.tv_nsec >= time.tv_nsec;
}

static inline pthread_t start(void *(*run)(void *), void *arg)
{
	pthread_t thread;

	CHECK(pthread_create(&thread, NULL, run, arg) == 0);
	return thread;
}

static inline void *join(pthread_t thread)
{
	void *result;

	CHECK(pthread_join(thread, &result) == 0);
	return result;
}

/* A call in a thread of its own, and what it returns there. */
struct elsewhere {
	int (*call)(pthread_mutex_t *);
	pthread_mutex_t *mutex;
	int result;
};

static inline void *run_elsewhere(void *arg)
{
	struct elsewhere *elsewhere = (struct elsewhere *)arg;

	elsewhere->result = elsewhere->call(elsewhere->mutex);
	return NULL;
}

static inline int elsewhere(int (*call)(pthread_mutex_t *), pthread_mutex_t *mutex)
{
	struct elsewhere elsewhere = {call, mutex, -1};

	join(start(run_elsewhere, &elsewhere));
	return elsewhere.result;
}

/* Acquires and releases the mutex. Returns an error if it is not free. */
static inline int try_and_free(pthread_mutex_t *mutex)
{
	int error = pthread_mutex_trylock(mutex);

	return error ? error : pthread_mutex_unlock(mutex);
}

static inline bool is_free(pthread_mutex_t *mutex)
{
	return elsewhere(try_and_free, mutex) == 0;
}

/* Runs `body` in a child process. Returns its status, as from waitpid(). */
static inline int in_child(void (*body)(void *), void *arg)
{
	int status;
	pid_t child = fork();

	CHECK(child >= 0);
	if (child == 0) {
		alarm(HANG_SECONDS);
		body(arg);
		_exit(0);
	}
	CHECK(waitpid(child, &status, 0) == child);
	return status;
}

static inline pthread_mutex_t typed_mutex(int type)
{
	pthread_mutex_t mutex;
	pthread_mutexattr_t attr;

	CHECK(pthread_mutexattr_init(&attr) == 0);
	CHECK(pthread_mutexattr_settype(&attr, type) == 0);
	CHECK(pthread_mutex_init(&mutex, &attr) == 0);
	CHECK(pthread_mutexattr_destroy(&attr) == 0);
	return mutex;
}

/* Returns memory that this process shares with its children. */
static inline void *shared_memory(size_t size)
{
	void *memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	CHECK(memory != MAP_FAILED);
	return memory;
}

#endif
