// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * Locks at the beginning and end of lifetimes: before constructors, in libraries that are loaded
 * late, in destructors of thread-specific values and of the process. And more threads in one
 * process than any table can hold.
 */
#include "test.h"

#include "library.h"

/* Constructors of this program and of its library; see library.c too. */

static pthread_mutex_t early = PTHREAD_MUTEX_INITIALIZER;
static unsigned int counted; /* the mutex protects it */

static void *count_early(void *arg)
{
	for (int i = 0; i < 1000; i++) {
		CHECK(pthread_mutex_lock(&early) == 0);
		counted++;
		CHECK(pthread_mutex_unlock(&early) == 0);
	}
	return arg;
}

/* Before constructors, while the loader relocates the program. There is no environment yet. */
static int answer(void)
{
	return pthread_mutex_trylock(&early) == 0 ? pthread_mutex_unlock(&early) : -1;
}

static int (*resolve_ask(void))(void)
{
	return answer() == 0 ? answer : NULL;
}

static int ask(void) __attribute__((ifunc("resolve_ask")));

/* A constructor that may run before those of libraries, and a destructor that runs after theirs. */
__attribute__((constructor(101), destructor(101))) static void use_early(void)
{
	pthread_t threads[4];

	for (int i = 0; i < 4; i++)
		threads[i] = start(count_early, NULL);
	for (int i = 0; i < 4; i++)
		join(threads[i]);
	CHECK(counted % 4000 == 0);
}

/* Libraries that are loaded late and unloaded */

static void check_dlopen(void)
{
	for (int i = 0; i < 20; i++) {
		struct library *(*get)(void);
		struct library *library;
		void *handle = dlopen("libloaded.so", i % 2 ? RTLD_NOW : RTLD_LAZY);

		CHECK(handle);
		*(void **)&get = dlsym(handle, "library");
		CHECK(get);
		library = get();
		check_library(library);
		CHECK(dlclose(handle) == 0);
	}
}

/* Destructors of thread-specific values */

static struct {
	pthread_mutex_t mutex;
	pthread_cond_t cond;
	unsigned long ended; /* protected by mutex */
	pthread_key_t keys[40];
} ends = {.mutex = PTHREAD_MUTEX_INITIALIZER, .cond = PTHREAD_COND_INITIALIZER};

/* In one destructor after the other, the last of them after the library's own. */
static void at_end(void *key)
{
	struct timespec past = {1, 0};

	CHECK(pthread_mutex_lock(&ends.mutex) == 0);
	ends.ended++;
	/* or another thread signalled first */
	if (pthread_cond_timedwait(&ends.cond, &ends.mutex, &past))
		CHECK(pthread_mutex_trylock(&ends.mutex) == EBUSY);
	if (ends.ended % 256 == 0)
		usleep(100); /* so that other threads wait */
	CHECK(pthread_cond_signal(&ends.cond) == 0);
	CHECK(pthread_mutex_unlock(&ends.mutex) == 0);
	/* Once more, in the second round of destructors. */
	if (key == &ends.keys[0])
		CHECK(pthread_setspecific(ends.keys[0], &ends.keys[1]) == 0);
}

static void *end(void *arg)
{
	for (int i = 0; i < 40; i += 13)
		CHECK(pthread_setspecific(ends.keys[i], &ends.keys[i]) == 0);
	return arg;
}

#define AT_A_TIME 32
#define LIVES	  20

static void check_key_destructors(void)
{
	for (int i = 0; i < 40; i++)
		CHECK(pthread_key_create(&ends.keys[i], at_end) == 0);
	for (int i = 0; i < LIVES; i++) {
		pthread_t threads[AT_A_TIME];

		for (int j = 0; j < AT_A_TIME; j++)
			threads[j] = start(end, NULL);
		for (int j = 0; j < AT_A_TIME; j++)
			join(threads[j]);
	}
	CHECK(ends.ended == 5ul * AT_A_TIME * LIVES);
	CHECK(is_free(&ends.mutex));
	for (int i = 0; i < 40; i++)
		CHECK(pthread_key_delete(ends.keys[i]) == 0);
}

/* 100,000 threads */

#define BATCH	20
#define BATCHES repetitions(5000)

static struct {
	pthread_mutex_t mutex;
	pthread_cond_t cond;
	unsigned long count, in_batch; /* protected by mutex */
} many = {.mutex = PTHREAD_MUTEX_INITIALIZER, .cond = PTHREAD_COND_INITIALIZER};

/* Each thread must wait for the lock and for its batch, because all arrive at one time. */
static void *live_shortly(void *arg)
{
	CHECK(pthread_mutex_lock(&many.mutex) == 0);
	many.count++;
	if (++many.in_batch == BATCH)
		CHECK(pthread_cond_broadcast(&many.cond) == 0);
	while (many.in_batch < BATCH)
		CHECK(pthread_cond_wait(&many.cond, &many.mutex) == 0);
	CHECK(pthread_mutex_unlock(&many.mutex) == 0);
	return arg;
}

static void check_many_threads(void)
{
	for (unsigned int i = 0; i < BATCHES; i++) {
		pthread_t threads[BATCH];

		many.in_batch = 0;
		for (int j = 0; j < BATCH; j++)
			threads[j] = start(live_shortly, NULL);
		for (int j = 0; j < BATCH; j++)
			join(threads[j]);
	}
	CHECK(many.count == (unsigned long)BATCH * BATCHES);
}

int main(void)
{
	begin();
	CHECK(ask() == 0);
	check_library(library());
	check_dlopen();
	check_key_destructors();
	check_many_threads();
	return 0;
}
