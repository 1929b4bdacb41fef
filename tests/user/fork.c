// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/* The child of a process with many threads: it keeps its own locks and gets all other slots. */
#include "../runner.h"
#include "test.h"

#include "parking.h"

#define OTHERS 40

static struct lw_qspinlock held, fresh;
static unsigned int own_slot;
static bool stop;

static void child(void *highest)
{
	CHECK(lw_thread_attach() == own_slot);
	/* The forking thread still holds its lock in the child. */
	CHECK(!lw_qspinlock_trylock(&held));
	lw_qspinlock_unlock(&held);
	lw_qspinlock_lock(&held);
	lw_qspinlock_unlock(&held);
	check_slots_are_free(200, *(unsigned int *)highest);
}

static void *keep_slot(void *arg)
{
	struct attached *shared = arg;

	CHECK(lw_thread_attach() != 0);
	pthread_barrier_wait(&shared->all);
	pthread_barrier_wait(&shared->all);
	return NULL;
}

/* Slots of threads that are not in the child are free there. */
static void check_others_slots(void)
{
	static struct attached shared;
	unsigned int highest = 201;
	pthread_t threads[OTHERS];

	CHECK(pthread_barrier_init(&shared.all, NULL, OTHERS + 1) == 0);
	for (int i = 0; i < OTHERS; i++)
		thread_start(&threads[i], 0, keep_slot, &shared);
	pthread_barrier_wait(&shared.all);
	lw_qspinlock_lock(&held);
	CHECK(in_child(child, &highest) == 0);
	lw_qspinlock_unlock(&held);
	pthread_barrier_wait(&shared.all);
	for (int i = 0; i < OTHERS; i++)
		CHECK(pthread_join(threads[i], NULL) == 0);
}

static void *attach_and_exit(void *arg)
{
	(void)arg;
	lw_thread_attach();
	return NULL;
}

static void *churn(void *arg)
{
	(void)arg;
	while (!__atomic_load_n(&stop, __ATOMIC_RELAXED)) {
		pthread_t thread;

		thread_start(&thread, 0, attach_and_exit, NULL);
		CHECK(pthread_join(thread, NULL) == 0);
	}
	return NULL;
}

/* Forks while other threads take and return slots. */
static void check_while_slots_move(void)
{
	unsigned int highest = 201 + OTHERS;
	pthread_t threads[3];

	for (int i = 0; i < 3; i++)
		thread_start(&threads[i], 0, churn, NULL);
	for (int i = 0; i < 50; i++) {
		lw_qspinlock_lock(&held);
		CHECK(in_child(child, &highest) == 0);
		lw_qspinlock_unlock(&held);
	}
	__atomic_store_n(&stop, true, __ATOMIC_RELAXED);
	for (int i = 0; i < 3; i++)
		CHECK(pthread_join(threads[i], NULL) == 0);
}

static void *queue_on(void *lock)
{
	lw_qspinlock_lock(lock);
	lw_qspinlock_unlock(lock);
	return NULL;
}

/* Slots whose nodes were in a queue at the fork: lock words may name them, so no thread gets them.
 */
static uint32_t queued_slots[2];

static void check_retired(void)
{
	for (int i = 0; i < 2; i++) {
		struct lw_node *nodes = lw_slot_nodes(queued_slots[i]);

		CHECK(lw_load(&nodes->locked, relaxed) == LW_NODE_DEAD);
	}
}

static void grandchild(void *arg)
{
	(void)arg;
	check_retired();
	check_slots_are_free(200, 203);
	check_retired();
}

static void child_queues(void *arg)
{
	pthread_t threads[3];
	uint32_t tail = 0;

	(void)arg;
	check_retired();
	memset(&fresh, 0, sizeof(fresh));
	make_busy(&fresh.word);
	for (int i = 0; i < 3; i++) {
		thread_start(&threads[i], 0, queue_on, &fresh);
		tail = await_tail(&fresh.word, tail);
		CHECK((tail >> LW_TAIL_SHIFT & LW_TAIL_INDEX_MASK) == 0);
		for (int j = 0; j < 2; j++)
			CHECK(lw_tail_slot(tail) != queued_slots[j]);
	}
	end_busy(&fresh.word);
	for (int i = 0; i < 3; i++)
		CHECK(pthread_join(threads[i], NULL) == 0);
	check_retired();
	CHECK(in_child(grandchild, NULL) == 0);
}

static void check_queued_at_fork(void)
{
	pthread_t threads[2];
	uint32_t tail = 0;

	make_busy(&fresh.word);
	for (int i = 0; i < 2; i++) {
		thread_start(&threads[i], 0, queue_on, &fresh);
		tail = await_tail(&fresh.word, tail);
		queued_slots[i] = lw_tail_slot(tail);
	}
	CHECK(in_child(child_queues, NULL) == 0);
	end_busy(&fresh.word);
	for (int i = 0; i < 2; i++)
		CHECK(pthread_join(threads[i], NULL) == 0);
}

#define TURNS 20

/* A lock whose waiters spin. */
struct spinlock {
	union lw_word *word;
	void (*lock)(void);
	void (*unlock)(void);
};

#define SPINLOCK(id)                            \
	static struct lw_##id id##_tested;      \
	static void id##_lock(void)             \
	{                                       \
		lw_##id##_lock(&id##_tested);   \
	}                                       \
	static void id##_unlock(void)           \
	{                                       \
		lw_##id##_unlock(&id##_tested); \
	}
#define SPINLOCK_ROW(id)                                  \
	{                                                 \
		&id##_tested.word, id##_lock, id##_unlock \
	}

SPINLOCK(qspinlock)
SPINLOCK(cna)
SPINLOCK(hq)

static unsigned int turns;

static void *take_turns(void *spinlock)
{
	const struct spinlock *tested = spinlock;

	for (int turn = 0; turn < TURNS; turn++) {
		tested->lock();
		turns++;
		tested->unlock();
	}
	return NULL;
}

/* The forking thread holds the lock. The waiters, one with the pending bit, are not here. */
static void child_contends(void *spinlock)
{
	const struct spinlock *tested = spinlock;
	pthread_t threads[2];

	/* A lost waiter would make the child hang. */
	alarm(600);
	CHECK(lw_load(&tested->word->val, relaxed) & LW_PENDING);
	tested->unlock();
	tested->lock();
	turns = 0;
	for (int i = 0; i < 2; i++)
		thread_start(&threads[i], 0, take_turns, spinlock);
	tested->unlock();
	take_turns(spinlock);
	for (int i = 0; i < 2; i++)
		CHECK(pthread_join(threads[i], NULL) == 0);
	CHECK(turns == 3 * TURNS);
	CHECK(!(lw_load(&tested->word->val, relaxed) & ~LW_SERVICE_MASK));
}

/* Waiters of a lock that the child goes on using. */
static void check_waited_for_at_fork(void)
{
	static const struct spinlock spinlocks[] = {SPINLOCK_ROW(qspinlock), SPINLOCK_ROW(cna),
						    SPINLOCK_ROW(hq)};
	pthread_t threads[3];

	for (size_t i = 0; i < sizeof(spinlocks) / sizeof(*spinlocks); i++) {
		void *tested = (void *)&spinlocks[i];
		uint32_t tail = 0;

		spinlocks[i].lock();
		for (int j = 0; j < 3; j++) {
			thread_start(&threads[j], 0, take_turns, tested);
			if (j == 0)
				lw_await_ne(&spinlocks[i].word->val, LW_PENDING, 0, relaxed);
			else
				tail = await_tail(spinlocks[i].word, tail);
		}
		CHECK(in_child(child_contends, tested) == 0);
		spinlocks[i].unlock();
		for (int j = 0; j < 3; j++)
			CHECK(pthread_join(threads[j], NULL) == 0);
	}
}

int main(void)
{
	own_slot = lw_thread_attach();
	CHECK(own_slot != 0);
	/* This must be first, while no other slots are free. */
	check_queued_at_fork();
	check_waited_for_at_fork();
	check_others_slots();
	/* QEMU's own locks may be held by other threads at a fork, and stay held in the child. */
	if (*test_runner())
		printf("fork while threads start and exit: not tested under %s\n", test_runner());
	else
		check_while_slots_move();
	return 0;
}
