/* A mutex of its own for each function that locks through a wrapper. */
#include <pthread.h>

static pthread_mutex_t plain = PTHREAD_MUTEX_INITIALIZER, last = PTHREAD_MUTEX_INITIALIZER;
static volatile int number;

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

static __attribute__((noinline)) int caller(void)
{
	int error = unlocks_before_its_end();

	error += unlocks_at_its_end();
	return error + number;
}

int main(void)
{
	return caller();
}
