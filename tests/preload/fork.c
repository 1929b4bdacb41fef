// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/* Forks in a threaded program whose locks are in use, with atfork handlers as programs have.
 */
#include "test.h"

#define THREADS 6
#define FORKS	60

static pthread_mutex_t mutexes[3] = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_MUTEX_INITIALIZER,
				     PTHREAD_MUTEX_INITIALIZER};
static unsigned long counts[3]; /* its mutex protects each */
static pthread_mutex_t renewed; /* recursive; another thread owns it in the child */
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
static volatile bool stop;

static void prepare(void)
{
	for (int i = 0; i < 3; i++)
		CHECK(pthread_mutex_lock(&mutexes[i]) == 0);
	CHECK(pthread_mutex_lock(&renewed) == 0);
}

static void parent(void)
{
	CHECK(pthread_mutex_unlock(&renewed) == 0);
	for (int i = 0; i < 3; i++)
		CHECK(pthread_mutex_unlock(&mutexes[i]) == 0);
}

/* Programs do either in the child: unlock the parent's locks, or initialise them again. */
static void child(void)
{
	CHECK(pthread_mutex_unlock(&mutexes[0]) == 0);
	CHECK(pthread_mutex_unlock(&mutexes[1]) == 0);
	CHECK(pthread_mutex_init(&mutexes[2], NULL) == 0);
	renewed = typed_mutex(PTHREAD_MUTEX_RECURSIVE);
}

static void *use(void *arg)
{
	unsigned int n = (unsigned int)(uintptr_t)arg;

	for (unsigned int i = n; !stop; i++) {
		CHECK(pthread_mutex_lock(&mutexes[i % 3]) == 0);
		counts[i % 3]++;
		if (i % 128 == 0)
			usleep(50);
		if (i % 64 == 1)
			CHECK(pthread_cond_signal(&cond) == 0);
		CHECK(pthread_mutex_unlock(&mutexes[i % 3]) == 0);
		if (i % 32 == 0) {
			CHECK(pthread_mutex_lock(&renewed) == 0);
			CHECK(pthread_mutex_unlock(&renewed) == 0);
		}
	}
	return NULL;
}

static void *wait_often(void *arg)
{
	(void)arg;
	while (!stop) {
		struct timespec soon = from_now(CLOCK_REALTIME, 1);

		CHECK(pthread_mutex_lock(&mutexes[0]) == 0);
		pthread_cond_timedwait(&cond, &mutexes[0], &soon);
		CHECK(pthread_mutex_unlock(&mutexes[0]) == 0);
	}
	return NULL;
}

/* As in the parent, with new threads. Their stacks are where those of the parent's threads were. */
static void be_a_child(void *arg)
{
	pthread_t threads[THREADS + 1];

	(void)arg;
	for (int i = 0; i < 3; i++) {
		CHECK(pthread_mutex_lock(&mutexes[i]) == 0);
		CHECK(pthread_mutex_unlock(&mutexes[i]) == 0);
		CHECK(is_free(&mutexes[i]));
	}
	CHECK(pthread_mutex_lock(&renewed) == 0);
	CHECK(pthread_mutex_unlock(&renewed) == 0);
	CHECK(pthread_cond_init(&cond, NULL) == 0);
	for (uintptr_t i = 0; i < THREADS; i++)
		threads[i] = start(use, (void *)i);
	threads[THREADS] = start(wait_often, NULL);
	usleep(2000);
	stop = true;
	for (int i = 0; i <= THREADS; i++)
		join(threads[i]);
}

/* Waiters that are not in the child: it must not find them, nor write to where their stacks were.
 */
static struct {
	pthread_mutex_t mutex;
	pthread_cond_t cond;
	unsigned int waiting;
	bool enough;
} left = {.mutex = PTHREAD_MUTEX_INITIALIZER, .cond = PTHREAD_COND_INITIALIZER};

static void *stay(void *arg)
{
	CHECK(pthread_mutex_lock(&left.mutex) == 0);
	left.waiting++;
	while (!left.enough)
		CHECK(pthread_cond_wait(&left.cond, &left.mutex) == 0);
	CHECK(pthread_mutex_unlock(&left.mutex) == 0);
	return arg;
}

/* Fills its stack, which must not change: another thread could take it for a waiter's stack. */
static void *keep_stack_clean(void *arg)
{
	volatile unsigned char stack[16384];

	for (size_t i = 0; i < sizeof(stack); i++)
		stack[i] = 0x5a;
	pthread_barrier_wait(arg);
	pthread_barrier_wait(arg);
	for (size_t i = 0; i < sizeof(stack); i++)
		CHECK(stack[i] == 0x5a);
	return NULL;
}

static void signal_nobody(void *arg)
{
	pthread_barrier_t all;
	pthread_t threads[THREADS];

	(void)arg;
	CHECK(pthread_barrier_init(&all, NULL, THREADS + 1) == 0);
	for (int i = 0; i < THREADS; i++)
		threads[i] = start(keep_stack_clean, &all);
	pthread_barrier_wait(&all);
	for (int i = 0; i < THREADS; i++)
		CHECK(pthread_cond_signal(&left.cond) == 0);
	CHECK(pthread_cond_broadcast(&left.cond) == 0);
	pthread_barrier_wait(&all);
	for (int i = 0; i < THREADS; i++)
		join(threads[i]);
}

static void check_waiters_left_behind(void)
{
	pthread_t threads[THREADS];

	for (int i = 0; i < THREADS; i++)
		threads[i] = start(stay, NULL);
	for (bool all = false; !all; usleep(200)) {
		CHECK(pthread_mutex_lock(&left.mutex) == 0);
		all = left.waiting == THREADS;
		CHECK(pthread_mutex_unlock(&left.mutex) == 0);
	}
	CHECK(pthread_mutex_lock(&left.mutex) == 0);
	CHECK(in_child(signal_nobody, NULL) == 0);
	left.enough = true;
	CHECK(pthread_cond_broadcast(&left.cond) == 0);
	CHECK(pthread_mutex_unlock(&left.mutex) == 0);
	for (int i = 0; i < THREADS; i++)
		join(threads[i]);
}

/* The child's thread is another one, which does not own what the parent's thread has locked. */
static void unlock_of_parent(void *mutex)
{
	GIVES(EPERM, pthread_mutex_unlock(mutex));
	GIVES(EBUSY, pthread_mutex_trylock(mutex));
}

static void check_owner(void)
{
	pthread_mutex_t checking = typed_mutex(PTHREAD_MUTEX_ERRORCHECK);

	CHECK(pthread_mutex_lock(&checking) == 0);
	CHECK(in_child(unlock_of_parent, &checking) == 0);
	GIVES(0, pthread_mutex_unlock(&checking));
}

/* Registers its handlers before the preload library does, whose constructor runs later. */
__attribute__((constructor(101))) static void register_early(void)
{
	if (getenv("EARLY_HANDLERS"))
		CHECK(pthread_atfork(prepare, parent, child) == 0);
}

static void check_forks(void)
{
	pthread_t threads[THREADS];

	for (uintptr_t i = 0; i < THREADS; i++)
		threads[i] = start(use, (void *)i);
	for (int i = 0; i < FORKS; i++)
		CHECK(in_child(be_a_child, NULL) == 0);
	stop = true;
	for (int i = 0; i < THREADS; i++)
		join(threads[i]);
}

int main(int argc, char **argv)
{
	begin();
	renewed = typed_mutex(PTHREAD_MUTEX_RECURSIVE);
	check_owner();
	check_waiters_left_behind();
	if (!getenv("EARLY_HANDLERS"))
		CHECK(pthread_atfork(prepare, parent, child) == 0);
	check_forks();
	/* Once more with the handlers in the other order. */
	if (argc == 1 && !getenv("EARLY_HANDLERS")) {
		CHECK(setenv("EARLY_HANDLERS", "1", 1) == 0);
		exec_program(argv[0], argv, environ);
	}
	return 0;
}
