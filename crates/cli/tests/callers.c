/* A mutex of its own for each function that locks through a wrapper. With an argument, one waits
 * for it. With two, two functions lock the same mutex instead, the first of them once. */
#include <pthread.h>
#include <unistd.h>

static pthread_mutex_t plain = PTHREAD_MUTEX_INITIALIZER, last = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t slow = PTHREAD_MUTEX_INITIALIZER;
static volatile int number;
static int has_slow[2];

static __attribute__((noinline)) int wrapper_lock(pthread_mutex_t *mutex)
{
	int error = pthread_mutex_lock(mutex);

	number++;
	return error;
}

static __attribute__((noinline)) int wrapper_unlock(pthread_mutex_t *mutex)
{
	number--;
	return pthread_mutex_unlock(mutex);
}

static __attribute__((noinline)) int unlocks_before_its_end(void)
{
	int error = wrapper_lock(&plain);

	error += wrapper_unlock(&plain);
	return error + number;
}

/* With -O2, the call of the unlock is a jump, so this function is not on the stack then. */
static __attribute__((noinline)) int unlocks_at_its_end(void)
{
	number += wrapper_lock(&last);
	return wrapper_unlock(&last);
}

static void *holds(void *arg)
{
	pthread_mutex_lock(&slow);
	write(has_slow[1], "", 1);
	usleep(20000);
	pthread_mutex_unlock(&slow);
	return arg;
}

static __attribute__((noinline)) int waits(void)
{
	int error = wrapper_lock(&slow);

	error += wrapper_unlock(&slow);
	return error + number;
}

static __attribute__((noinline)) int caller(int is_slow)
{
	int error = is_slow ? waits() : 0;

	error += unlocks_before_its_end();
	error += unlocks_at_its_end();
	return error + number;
}

static __attribute__((noinline)) int locks_once(void)
{
	int error = wrapper_lock(&plain);

	error += wrapper_unlock(&plain);
	return error + number;
}

int main(int count, char **arguments)
{
	pthread_t thread;
	char byte;

	(void)arguments;
	if (count > 2) {
		int error = locks_once();

		for (int i = 0; i < 1000; i++)
			error += unlocks_before_its_end();
		return error;
	}
	if (count > 1) {
		pipe(has_slow);
		pthread_create(&thread, NULL, holds, NULL);
		read(has_slow[0], &byte, 1);
	}
	return caller(count > 1);
}
