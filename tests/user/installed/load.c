// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * load FUNCTION LIBRARY...: a host that opens and closes libraries which contain Lockworks, again
 * and again. FUNCTION has a thread take a slot, and returns it. The threads that use the libraries
 * exist before dlopen(), and end after dlclose().
 */
#define _POSIX_C_SOURCE 200809L
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#define ROUNDS	10
#define THREADS 4
#define MOST	32

static int count;
static struct library {
	void *handle;
	unsigned int (*use)(void);
} libraries[MOST];
static pthread_barrier_t step;

static void fail(const char *reason)
{
	fprintf(stderr, "load: %s\n", reason);
	exit(1);
}

static void *open_libraries(void *argv)
{
	char **words = argv;

	for (int i = 0; i < count; i++) {
		libraries[i].handle = dlopen(words[2 + i], RTLD_NOW | RTLD_LOCAL);
		if (!libraries[i].handle)
			fail(dlerror());
		*(void **)&libraries[i].use = dlsym(libraries[i].handle, words[1]);
		if (!libraries[i].use)
			fail(dlerror());
	}
	return NULL;
}

static void *use_libraries(void *arg)
{
	pthread_barrier_wait(&step);
	for (int i = 0; i < count; i++)
		if (!libraries[i].use())
			fail("no slot");
	pthread_barrier_wait(&step);
	pthread_barrier_wait(&step);
	return arg;
}

static pthread_t run(void *(*function)(void *), void *arg)
{
	pthread_t thread;

	if (pthread_create(&thread, NULL, function, arg) != 0)
		fail("no thread");
	return thread;
}

int main(int argc, char **argv)
{
	count = argc - 2;
	if (count < 1 || count > MOST)
		fail("usage: load FUNCTION LIBRARY...");
	pthread_barrier_init(&step, NULL, THREADS + 1);
	for (int round = 0; round < ROUNDS; round++) {
		pthread_t users[THREADS];

		for (int i = 0; i < THREADS; i++)
			users[i] = run(use_libraries, NULL);
		/* The thread that opens the libraries ends at once. */
		pthread_join(run(open_libraries, argv), NULL);
		pthread_barrier_wait(&step); /* opened */
		pthread_barrier_wait(&step); /* used */
		for (int i = 0; i < count; i++)
			if (dlclose(libraries[i].handle) != 0)
				fail(dlerror());
		pthread_barrier_wait(&step); /* closed */
		for (int i = 0; i < THREADS; i++)
			pthread_join(users[i], NULL);
	}
	return 0;
}
