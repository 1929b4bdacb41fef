// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/* Signal handlers with locks and semaphores of their own interrupt threads that contend. */
#include "test.h"

#include <semaphore.h>
#include <signal.h>

#define THREADS 4
#define ROUNDS	20000

static pthread_mutex_t outer = PTHREAD_MUTEX_INITIALIZER, inner = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
static unsigned long counted, counted_inside; /* its mutex protects each */
static volatile sig_atomic_t interruptions;
static sem_t semaphore;

static void handle(int signal)
{
	int saved = errno;

	(void)signal;
	if (pthread_mutex_trylock(&inner) == 0) {
		counted_inside++;
		CHECK(pthread_mutex_unlock(&inner) == 0);
	}
	CHECK(sem_post(&semaphore) == 0);
	__atomic_fetch_add(&interruptions, 1, __ATOMIC_RELAXED);
	errno = saved;
}

static void *contend(void *arg)
{
	for (int i = 0; i < ROUNDS; i++) {
		struct timespec soon = from_now(CLOCK_MONOTONIC, 1);

		errno = 77;
		CHECK(pthread_mutex_lock(&outer) == 0);
		counted++;
		if (i % 512 == 0) {
			int error = pthread_cond_clockwait(&cond, &outer, CLOCK_MONOTONIC, &soon);

			CHECK(error == 0 || (error == ETIMEDOUT && is_past(CLOCK_MONOTONIC, soon)));
		}
		if (i % 16 == 0)
			CHECK(pthread_cond_signal(&cond) == 0);
		CHECK(pthread_mutex_unlock(&outer) == 0);
		CHECK(errno == 77);
	}
	return arg;
}

/* A signal does not end a wait for a mutex. */
static void *hold_for_long(void *arg)
{
	CHECK(pthread_mutex_lock(&outer) == 0);
	pthread_barrier_wait(arg);
	usleep(100000);
	counted = 1;
	CHECK(pthread_mutex_unlock(&outer) == 0);
	return NULL;
}

static void check_not_interrupted(void)
{
	pthread_barrier_t held;
	pthread_t thread;

	counted = 0;
	CHECK(pthread_barrier_init(&held, NULL, 2) == 0);
	thread = start(hold_for_long, &held);
	pthread_barrier_wait(&held);
	GIVES(0, pthread_mutex_lock(&outer));
	CHECK(counted == 1);
	CHECK(pthread_mutex_unlock(&outer) == 0);
	join(thread);
}

int main(void)
{
	struct sigaction action = {.sa_handler = handle, .sa_flags = SA_RESTART};
	struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGUSR1};
	struct itimerspec often = {{0, 300000}, {0, 300000}};
	pthread_t threads[THREADS];
	timer_t timer;

	begin();
	CHECK(sem_init(&semaphore, 0, 0) == 0);
	CHECK(sigaction(SIGUSR1, &action, NULL) == 0);
	CHECK(timer_create(CLOCK_MONOTONIC, &event, &timer) == 0);
	CHECK(timer_settime(timer, 0, &often, NULL) == 0);
	for (int i = 0; i < THREADS; i++)
		threads[i] = start(contend, NULL);
	/* The timer's signal may go to any thread, so signal each of these as well. */
	while (interruptions < 200) {
		for (int i = 0; i < THREADS; i++)
			pthread_kill(threads[i], SIGUSR1);
		usleep(200);
	}
	for (int i = 0; i < THREADS; i++)
		join(threads[i]);
	CHECK(counted == THREADS * ROUNDS);
	check_not_interrupted();
	CHECK(timer_delete(timer) == 0);
	CHECK(counted_inside > 0 && counted_inside <= (unsigned long)interruptions);
	return 0;
}
