/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A program for `lockworks record`: threads wait for a condition, then acquire a mutex 1000 times
 * each. With an argument it kills itself at the end.
 */
#include <pthread.h>
#include <signal.h>
#include <time.h>

#define THREADS 3

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t again;
static pthread_rwlock_t rwlock = PTHREAD_RWLOCK_INITIALIZER;
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
static int go;

static void *run(void *arg)
{
	pthread_mutex_lock(&mutex);
	while (!go)
		pthread_cond_wait(&cond, &mutex);
	pthread_mutex_unlock(&mutex);
	for (int i = 0; i < 1000; i++) {
		pthread_mutex_lock(&mutex);
		pthread_mutex_unlock(&mutex);
	}
	return arg;
}

int main(int argc, char *argv[])
{
	const struct timespec pause = {0, 20000000};
	pthread_mutexattr_t recursive;
	pthread_t thread[THREADS];

	(void)argv;
	pthread_mutexattr_init(&recursive);
	pthread_mutexattr_settype(&recursive, PTHREAD_MUTEX_RECURSIVE);
	pthread_mutex_init(&again, &recursive);
	for (int i = 0; i < THREADS; i++)
		pthread_create(&thread[i], NULL, run, NULL);
	pthread_mutex_lock(&again);
	pthread_mutex_lock(&again);
	nanosleep(&pause, NULL);
	pthread_mutex_unlock(&again);
	pthread_mutex_unlock(&again);
	pthread_rwlock_rdlock(&rwlock);
	pthread_mutex_lock(&mutex);
	if (pthread_rwlock_trywrlock(&rwlock) == 0)
		return 1;
	go = 1;
	pthread_cond_broadcast(&cond);
	pthread_mutex_unlock(&mutex);
	pthread_rwlock_unlock(&rwlock);
	for (int i = 0; i < THREADS; i++)
		pthread_join(thread[i], NULL);
	if (argc > 1)
		raise(SIGKILL);
	return 0;
}
