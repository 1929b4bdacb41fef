// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/* Locks used before the library's constructors, and by threads after its destructor. */
#include "test.h"

static struct lw_cna lock;
static unsigned int early_slot;
static bool early_queued;
static pthread_key_t early_key;

static void *queue_once(void *arg)
{
	(void)arg;
	lw_cna_lock(&lock);
	lw_cna_unlock(&lock);
	return NULL;
}

static void *free_when_queued(void *arg)
{
	uint32_t *tail = arg;

	*tail = await_tail(&lock.word, 0);
	end_busy(&lock.word);
	return NULL;
}

/* Acquires the lock through the queue. Returns the slot that was used. */
static uint32_t acquire_queued(void)
{
	pthread_t helper;
	uint32_t tail = 0;

	make_busy(&lock.word);
	thread_start(&helper, 0, free_when_queued, &tail);
	queue_once(NULL);
	CHECK(pthread_join(helper, NULL) == 0);
	return tail >> LW_TAIL_SLOT_SHIFT;
}

/*
 * Constructors of the program run before those of the library, which is linked after it. This one
 * takes the first key, which the library must not use as if it were its own.
 */
__attribute__((constructor(101))) static void before_constructors(void)
{
	CHECK(pthread_key_create(&early_key, NULL) == 0);
	early_slot = lw_thread_attach();
	early_queued = acquire_queued() != 0;
}

static pthread_key_t key;

static void destructor(void *arg)
{
	unsigned int *seen = arg;

	/* The library's destructor ran before this one and returned our slot. */
	*seen = lw_thread_attach() == 0 && acquire_queued() != 0;
}

static void *exit_through_destructor(void *arg)
{
	CHECK(lw_thread_attach() != 0);
	CHECK(pthread_setspecific(key, arg) == 0);
	return NULL;
}

int main(void)
{
	CHECK(early_slot == 0);
	CHECK(early_queued);
	CHECK(!pthread_getspecific(early_key));

	CHECK(pthread_key_create(&key, destructor) == 0);
	for (int i = 0; i < 300; i++) {
		unsigned int seen = 0;
		pthread_t thread;

		thread_start(&thread, 0, exit_through_destructor, &seen);
		CHECK(pthread_join(thread, NULL) == 0);
		CHECK(seen);
	}
	/* The borrowed slots have been returned. */
	check_slots_are_free(64, 66);
	return 0;
}
