// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * CNA's reordering of a queue, step by step, also in its historic form. Waiters of two nodes queue
 * while the lock is busy. Then the test releases the lock, and checks the order in which they
 * acquire it and the event counts.
 */
#include "test.h"

#include "topology.h"

#define MAX_WAITERS 8
/* A waiter may get no CPU for 100 ms, which is not the lock's fault. Such a run is repeated. */
#define ATTEMPTS 50

/* The form of CNA that is tested. */
static const struct lw_lock_type *form;
static union {
	struct lw_cna cna; /* both forms are a lock word */
	union lw_word word;
} lock;
static int cpu_of_node[2];

struct waiter {
	int node;
	bool priority;
	unsigned int hold_ms;
	int number;
};

static int order[MAX_WAITERS]; /* numbers in order of acquisition; the lock protects it */
static int served;

static void *wait_for_lock(void *arg)
{
	struct waiter *self = arg;
	cpu_set_t cpu;

	CPU_ZERO(&cpu);
	CPU_SET(cpu_of_node[self->node], &cpu);
	CHECK(pthread_setaffinity_np(pthread_self(), sizeof(cpu), &cpu) == 0);
	if (self->priority)
		CHECK(lw_thread_set_priority(LW_PRIORITY_ON) == 0);
	form->lock(&lock, NULL);
	order[served++] = self->number;
	if (self->hold_ms)
		usleep(self->hold_ms * 1000);
	form->unlock(&lock, NULL);
	return NULL;
}

/* Lets the waiters queue in this order and serves them. Counts what happens meanwhile. */
static void run_queue(struct waiter *waiters, int n)
{
	pthread_t threads[MAX_WAITERS];
	uint32_t tail = 0;

	start_counting();
	served = 0;
	make_busy(&lock.word);
	for (int i = 0; i < n; i++) {
		waiters[i].number = i;
		thread_start(&threads[i], 0, wait_for_lock, &waiters[i]);
		tail = await_tail(&lock.word, tail);
	}
	end_busy(&lock.word);
	for (int i = 0; i < n; i++)
		CHECK(pthread_join(threads[i], NULL) == 0);
	CHECK(served == n);
	CHECK(lw_load(&lock.word.val, relaxed) == 0);
	CHECK_COUNTED(queued_acquisitions, (uint64_t)n);
}

static void check_order(int n, const char *expected)
{
	for (int i = 0; i < n; i++) {
		if (order[i] != expected[i] - '0')
			fprintf(stderr, "place %d of %s: %d\n", i, expected, order[i]);
		CHECK(order[i] == expected[i] - '0');
	}
}

/* Repeats run_queue() until no waiter was kept from a CPU for longer than the threshold. */
static void run_undisturbed(struct waiter *waiters, int n)
{
	for (int attempt = 0; attempt < ATTEMPTS; attempt++) {
		run_queue(waiters, n);
		if (since(LW_EVENT_threshold_flushes) == 0)
			return;
	}
	CHECK(!"served without delay");
}

static void check_preference(void)
{
	struct waiter waiters[] = {{.node = 0}, {.node = 1}, {.node = 0}, {.node = 1}, {.node = 0}};

	/* Waiters of node 1 are passed over; then the secondary queue becomes the main queue. */
	lw_set_shuffle_reduction(false);
	run_undisturbed(waiters, 5);
	check_order(5, "02413");
	CHECK_COUNTED(secondary_moves, 2);
	CHECK_COUNTED(empty_flushes, 1);
	CHECK_COUNTED(shuffles_skipped, 0);
	CHECK_COUNTED(priority_waiters, 0);

	/* The last waiter is not moved, though it is of another node. */
	waiters[3].node = 0;
	waiters[4].node = 1;
	run_undisturbed(waiters, 5);
	check_order(5, "02341");
	CHECK_COUNTED(secondary_moves, 1);

	/* cna does not move waiter 1, since the waiter behind it is of another node too. */
	waiters[2].node = 1;
	run_undisturbed(waiters, 4);
	check_order(4, strcmp(form->name, "cna") == 0 ? "0132" : "0231");
	CHECK_COUNTED(secondary_moves, 1);
}

static void check_off(void)
{
	struct waiter waiters[] = {{.node = 0}, {.node = 1}, {.node = 0}, {.node = 1}};

	CHECK(lw_set_numa_spinlock(LW_NUMA_OFF) == 0);
	run_queue(waiters, 4);
	check_order(4, "0123");
	CHECK_COUNTED(secondary_moves, 0);
	CHECK(lw_set_numa_spinlock(LW_NUMA_AUTO) == 0);
}

static void check_threshold(void)
{
	/* 0 passes over 1 and holds the lock for long; so 2 or 3 moves 1 before the rest. */
	struct waiter waiters[] = {{.node = 0, .hold_ms = 50},
				   {.node = 1},
				   {.node = 0, .hold_ms = 50},
				   {.node = 0},
				   {.node = 0}};

	CHECK(lw_set_numa_spinlock_threshold(1) == 0);
	run_queue(waiters, 5);
	CHECK(since(LW_EVENT_threshold_flushes) > 0);
	CHECK(order[4] != 1);
	CHECK(lw_set_numa_spinlock_threshold(LW_NUMA_THRESHOLD_MAX_MS) == 0);
}

static void check_shuffle_reduction(void)
{
	struct waiter waiters[] = {{.node = 0}, {.node = 1}, {.node = 0}};
	uint64_t skipped = 0;

	lw_set_shuffle_reduction(true);
	for (int i = 0; i < 20; i++) {
		run_queue(waiters, 3);
		skipped += since(LW_EVENT_shuffles_skipped);
	}
	CHECK(skipped > 0);
	lw_set_shuffle_reduction(false);
	run_queue(waiters, 3);
	CHECK_COUNTED(shuffles_skipped, 0);
}

static void check_priority(void)
{
	struct waiter waiters[] = {
		{.node = 0}, {.node = 1, .priority = true}, {.node = 0}, {.node = 1}, {.node = 0}};

	/* 1 is not passed over, and inherits the preference for node 0, so 3 is passed over. */
	run_undisturbed(waiters, 5);
	check_order(5, "01243");
	CHECK_COUNTED(priority_waiters, 1);
	CHECK_COUNTED(secondary_moves, 1);

	/* Without priority waiters 1 is passed over too. */
	lw_set_priority_waiters(false);
	run_undisturbed(waiters, 5);
	check_order(5, "02413");
	CHECK_COUNTED(priority_waiters, 0);
	lw_set_priority_waiters(true);
}

int main(void)
{
	static const char *const forms[] = {
		"cna",
#ifdef LW_WITH_HISTORIC
		"cna13",
#endif
	};
	cpu_set_t allowed;
	char text[32];
	int found = 0;

	CHECK(sched_getaffinity(0, sizeof(allowed), &allowed) == 0);
	for (int cpu = 0; cpu < CPU_SETSIZE && found < 2; cpu++) {
		if (CPU_ISSET(cpu, &allowed))
			cpu_of_node[found++] = cpu;
	}
	if (found < 2) {
		printf("not run: needs two CPUs\n");
		return 0;
	}
	snprintf(text, sizeof(text), "%d:%d", cpu_of_node[0], cpu_of_node[1]);
	CHECK(lw_user_topology_parse(text));
	CHECK(lw_numa_spinlock_active());
	CHECK(lw_set_numa_spinlock_threshold(LW_NUMA_THRESHOLD_MAX_MS) == 0);

	for (size_t i = 0; i < sizeof(forms) / sizeof(forms[0]); i++) {
		form = lw_lock_type_find(forms[i]);
		CHECK(form);
		check_preference();
		check_off();
		check_threshold();
		check_shuffle_reduction();
		check_priority();
	}
	return 0;
}
