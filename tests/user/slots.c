// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/* More threads than slots, and many more over time. */
#include "../runner.h"
#include "test.h"

#include <sys/resource.h>

#define CROWD	    16400
#define CHURN_BATCH 8
#ifdef __GLIBC__
#define CHURN REPETITIONS(1000000)
#else
#define CHURN REPETITIONS(100000) /* musl maps and unmaps each thread's stack, which takes time */
#endif
/* So small that glibc does not trim the stack when the thread exits, which would dominate. */
#define SMALL_STACK ((size_t)PTHREAD_STACK_MIN + 16 * 1024)

_Static_assert(CHURN > LW_MAX_SLOTS, "slots that are not returned must run out");

static struct lw_cna lock;
static struct lw_hq hq_lock = LW_HQ_INIT;
static unsigned int without_slot;
static unsigned long counter; /* the lock protects it */

static const struct lw_lock_type *crowd_type;
static union lw_word *crowd_lock;
static pthread_barrier_t crowd_attached, crowd_locked, crowd_leaves;

static void *crowd_member(void *arg)
{
	bool *taken = arg;
	unsigned int slot = lw_thread_attach();

	CHECK(slot <= LW_MAX_SLOTS);
	if (slot)
		CHECK(!__atomic_exchange_n(&taken[slot], true, __ATOMIC_RELAXED));
	else
		__atomic_fetch_add(&without_slot, 1, __ATOMIC_RELAXED);
	pthread_barrier_wait(&crowd_attached);
	/* main has made the lock busy: these threads use the slow path without a queue node. */
	if (!slot) {
		crowd_type->lock(crowd_lock, NULL);
		counter++;
		crowd_type->unlock(crowd_lock, NULL);
	}
	pthread_barrier_wait(&crowd_locked);
	pthread_barrier_wait(&crowd_leaves);
	/* A thread that found no free slot must still get one later, and return it. */
	while (!slot && !lw_thread_attach())
		usleep(1000);
	return NULL;
}

/* Returns the number of slots that a writer looks into. */
static unsigned int slots_seen(void)
{
	unsigned int seen = 0;

	for (uint32_t slot = 0; (slot = lw_next_slot(slot)) <= lw_slots();)
		seen++;
	return seen;
}

/* Only the forking thread has a slot: no other block is looked into. */
static void sees_its_own(void *arg)
{
	(void)arg;
	CHECK(slots_seen() < 2 * LW_BLOCK_SLOTS);
	check_slots_are_free(200, LW_MAX_SLOTS);
	CHECK(slots_seen() < 2 * LW_BLOCK_SLOTS);
}

static void check_crowd(const char *name, union lw_word *word)
{
	static pthread_t threads[CROWD];
	static bool taken[LW_MAX_SLOTS + 1];
	/* main has a slot too. */
	const unsigned int left_over = CROWD + 1 - LW_MAX_SLOTS;
	uint64_t nodeless = counted(LW_EVENT_nodeless_acquisitions);

	crowd_type = lw_lock_type_find(name);
	crowd_lock = word;
	CHECK(pthread_barrier_init(&crowd_attached, NULL, CROWD + 1) == 0);
	CHECK(pthread_barrier_init(&crowd_locked, NULL, CROWD + 1) == 0);
	CHECK(pthread_barrier_init(&crowd_leaves, NULL, CROWD + 1) == 0);
	counter = 0;
	without_slot = 0;
	memset(taken, 0, sizeof(taken));
	make_busy(word);
	for (unsigned int i = 0; i < CROWD; i++)
		thread_start(&threads[i], SMALL_STACK, crowd_member, taken);
	pthread_barrier_wait(&crowd_attached);
	while (counted(LW_EVENT_nodeless_acquisitions) < nodeless + left_over)
		usleep(1000);
	end_busy(word);
	pthread_barrier_wait(&crowd_locked);
	CHECK(without_slot == left_over);
	CHECK(counter == left_over);
	CHECK(lw_load(&word->val, relaxed) == crowd_type->unlocked);
	CHECK(slots_seen() == LW_MAX_SLOTS);
	CHECK(in_child(sees_its_own, NULL) == 0);
	pthread_barrier_wait(&crowd_leaves);
	for (unsigned int i = 0; i < CROWD; i++)
		CHECK(pthread_join(threads[i], NULL) == 0);
	CHECK(slots_seen() < 2 * LW_BLOCK_SLOTS);
}

static void *churn_member(void *arg)
{
	(void)arg;
	CHECK(lw_thread_attach() != 0);
	lw_cna_lock(&lock);
	counter++;
	lw_cna_unlock(&lock);
	return NULL;
}

static void check_churn(void)
{
	const unsigned int all =
		*test_runner() ? (LW_MAX_SLOTS / CHURN_BATCH + 9) * CHURN_BATCH : CHURN;

	counter = 0;
	for (unsigned int started = 0; started < all; started += CHURN_BATCH) {
		pthread_t threads[CHURN_BATCH];

		for (unsigned int i = 0; i < CHURN_BATCH; i++)
			thread_start(&threads[i], SMALL_STACK, churn_member, NULL);
		for (unsigned int i = 0; i < CHURN_BATCH; i++)
			CHECK(pthread_join(threads[i], NULL) == 0);
	}
	CHECK(counter == all);
}

/* A thread of a real-time class does not spin: the holder may need its CPU. */
static void *realtime_waiter(void *allowed)
{
	const struct sched_param param = {.sched_priority = 1};

	/* A declared priority is CNA's, and says nothing about the class. */
	CHECK(lw_thread_set_priority(LW_PRIORITY_ON) == 0);
	lw_thread_attach();
	CHECK(lw_user_spin_budget(1000) == 1000);
	*(bool *)allowed = pthread_setschedparam(pthread_self(), SCHED_FIFO, &param) == 0;
	if (*(bool *)allowed) {
		CHECK(lw_thread_set_priority(LW_PRIORITY_AUTO) == 0);
		CHECK(lw_user_spin_budget(1000) == 0);
	}
	return NULL;
}

static void check_realtime(void)
{
	bool allowed = false;
	pthread_t thread;

	thread_start(&thread, 0, realtime_waiter, &allowed);
	CHECK(pthread_join(thread, NULL) == 0);
	if (!allowed)
		printf("real-time threads not tested: may not make one\n");
}

static void nobody_else_pauses(void *arg)
{
	(void)arg;
	CHECK(lw_load(&lw_user_pausing.threads, relaxed) == 0);
}

/* Threads without a slot share the CPUs: the more there are, the longer each pauses. */
static void check_pauses(void)
{
	const int32_t others = 999;
	const uint64_t begin = lw_user_nanoseconds(CLOCK_MONOTONIC);

	lw_fetch_add(&lw_user_pausing.threads, others, relaxed);
	lw_pause_long();
	CHECK(lw_user_nanoseconds(CLOCK_MONOTONIC) - begin >= (others + 1) * UINT64_C(50000));
	CHECK(lw_load(&lw_user_pausing.threads, relaxed) == others);
	CHECK(in_child(nobody_else_pauses, NULL) == 0);
	lw_fetch_add(&lw_user_pausing.threads, -others, relaxed);
}

/* Without memory for a slot, none is free. There are more as soon as there is memory. */
static void needs_memory(void *arg)
{
	struct rlimit limit, before;
	uint32_t taken = 0;

	(void)arg;
	CHECK(getrlimit(RLIMIT_AS, &before) == 0);
	limit = before;
	limit.rlim_cur = 0;
	CHECK(setrlimit(RLIMIT_AS, &limit) == 0);
	lw_user_thread.depth++;
	do
		lw_user_thread.slot = 0;
	while (lw_user_slot_take() && ++taken < LW_MAX_SLOTS);
	CHECK(taken < LW_MAX_SLOTS);
	CHECK(setrlimit(RLIMIT_AS, &before) == 0);
	CHECK(lw_user_slot_take());
}

int main(void)
{
	check_realtime();
	check_pauses();
	/* QEMU ignores the limit. */
	if (!*test_runner())
		CHECK(in_child(needs_memory, NULL) == 0);
	check_slots_are_free(64, 65);
	check_churn();
	/* Slots were returned one by one: no more were used than threads were alive at a time. */
	check_slots_are_free(64, 65);
	/* QEMU maps so much for each thread that Linux' limit of mappings comes first. */
	if (*test_runner()) {
		printf("more threads than slots: not tested under %s\n", test_runner());
	} else {
		check_crowd("cna", &lock.word);
		/* Every slot has been returned: the same crowd finds as many as before. */
		check_crowd("hq", &hq_lock.word);
	}
	check_slots_are_free(200, LW_MAX_SLOTS);
	return 0;
}
