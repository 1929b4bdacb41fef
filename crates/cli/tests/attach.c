/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Threads that wait for locks as long as standard input is open. "ready" is printed when all of
 * them sleep.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static pthread_mutex_t hot = PTHREAD_MUTEX_INITIALIZER, cold = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t own = PTHREAD_MUTEX_INITIALIZER;
static pthread_rwlock_t table = PTHREAD_RWLOCK_INITIALIZER;
static pthread_cond_t never = PTHREAD_COND_INITIALIZER;
static pthread_barrier_t both;

static int threads;
static pid_t tids[8];

/* Called last before a wait, so that a thread that sleeps sleeps in it. */
static void begins_to_wait(void)
{
	tids[__atomic_fetch_add(&threads, 1, __ATOMIC_ACQ_REL)] = gettid();
}

__attribute__((noinline)) static void *at_hot(void *arg)
{
	begins_to_wait();
	pthread_mutex_lock(&hot); /* hot line */
	pthread_mutex_unlock(&hot);
	return arg;
}

__attribute__((noinline)) static void *at_cold(void *arg)
{
	begins_to_wait();
	pthread_mutex_lock(&cold);
	pthread_mutex_unlock(&cold);
	return arg;
}

__attribute__((noinline)) static void *at_table(void *arg)
{
	begins_to_wait();
	pthread_rwlock_rdlock(&table);
	pthread_rwlock_unlock(&table);
	return arg;
}

__attribute__((noinline)) static void *at_condition(void *arg)
{
	pthread_mutex_lock(&own);
	begins_to_wait();
	for (;;)
		pthread_cond_wait(&never, &own);
	return arg;
}

__attribute__((noinline)) static void *at_second(void *arg)
{
	pthread_mutex_t *first = arg ? &hot : &cold, *second = arg ? &cold : &hot;

	pthread_mutex_lock(first);
	pthread_barrier_wait(&both);
	begins_to_wait();
	pthread_mutex_lock(second);
	return arg;
}

__attribute__((noinline)) static void *at_again(void *arg)
{
	pthread_mutex_lock(&own);
	begins_to_wait();
	pthread_mutex_lock(&own);
	return arg;
}

static void start(void *(*run)(void *), int n)
{
	pthread_t thread;

	for (long i = 0; i < n; i++)
		pthread_create(&thread, NULL, run, (void *)i);
}

static void await_sleep(int n)
{
	while (__atomic_load_n(&threads, __ATOMIC_ACQUIRE) < n)
		usleep(1000);
	for (int i = 0; i < n; i++) {
		char path[64], state = 0;

		while (state != 'S') {
			FILE *file;

			usleep(1000);
			snprintf(path, sizeof(path), "/proc/self/task/%d/stat",
				 __atomic_load_n(&tids[i], __ATOMIC_RELAXED));
			file = fopen(path, "r");
			if (!file)
				continue;
			if (fscanf(file, "%*d (%*[^)]) %c", &state) != 1)
				state = 0;
			fclose(file);
		}
	}
}

__attribute__((noinline)) static void hold(void)
{
	char byte;

	puts("ready");
	fflush(stdout);
	while (read(0, &byte, 1) > 0)
		;
}

int main(int argc, char **argv)
{
	if (argc > 1 && !strcmp(argv[1], "deadlock")) {
		pthread_barrier_init(&both, NULL, 2);
		start(at_second, 2);
		await_sleep(2);
	} else if (argc > 1 && !strcmp(argv[1], "twice")) {
		start(at_again, 1);
		await_sleep(1);
	} else {
		pthread_mutex_lock(&hot);
		pthread_mutex_lock(&cold);
		pthread_rwlock_wrlock(&table);
		start(at_hot, 3);
		start(at_cold, 1);
		start(at_table, 1);
		start(at_condition, 1);
		await_sleep(6);
	}
	hold();
	_exit(0);
}
