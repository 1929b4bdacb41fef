// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/* Signal handlers that acquire locks while the interrupted thread queues or takes a slot. */
#include "test.h"

#include <sys/time.h>

#include "slots.h"

#define LEVELS 6

/* The thread queues for the first lock, a handler in it for the second, and so on. */
static struct lw_qspinlock levels[LEVELS];

static void enter_level(int signal)
{
	struct lw_qspinlock *lock = &levels[signal - SIGRTMIN];

	lw_qspinlock_lock(lock);
	lw_qspinlock_unlock(lock);
}

static void *nest(void *arg)
{
	(void)arg;
	enter_level(SIGRTMIN);
	/* All levels have ended, so this thread uses its first queue node again. */
	make_busy(&levels[0].word);
	enter_level(SIGRTMIN);
	return NULL;
}

static void check_nesting(void)
{
	uint64_t nodeless = counted(LW_EVENT_nodeless_acquisitions);
	uint64_t queued = counted(LW_EVENT_queued_acquisitions);
	struct sigaction action = {.sa_handler = enter_level};
	uint32_t first = 0;
	pthread_t thread;

	for (int level = 0; level < LEVELS; level++) {
		CHECK(sigaction(SIGRTMIN + level, &action, NULL) == 0);
		make_busy(&levels[level].word);
	}
	thread_start(&thread, 0, nest, NULL);
	for (uint32_t level = 0; level < LEVELS; level++) {
		if (level > 0)
			CHECK(pthread_kill(thread, SIGRTMIN + (int)level) == 0);
		if (level < LW_NODES_PER_SLOT) {
			uint32_t tail = await_tail(&levels[level].word, 0);

			first = level == 0 ? tail : first;
			CHECK(tail == (first | level << LW_TAIL_SHIFT));
		} else {
			while (counted(LW_EVENT_nodeless_acquisitions) <
			       nodeless + level + 1 - LW_NODES_PER_SLOT)
				usleep(200);
			CHECK(!(lw_load(&levels[level].word.val, relaxed) & LW_TAIL_MASK));
		}
	}
	for (int level = LEVELS; level-- > 0;)
		end_busy(&levels[level].word);
	CHECK(await_tail(&levels[0].word, 0) == first);
	end_busy(&levels[0].word);
	CHECK(pthread_join(thread, NULL) == 0);
	CHECK(counted(LW_EVENT_nodeless_acquisitions) == nodeless + LEVELS - LW_NODES_PER_SLOT);
	CHECK(counted(LW_EVENT_queued_acquisitions) == queued + LW_NODES_PER_SLOT + 1);
}

#define STRESSED 2
#define ALARMS	 3000

static struct lw_cna outer, inner;
static unsigned long outer_count, inner_count; /* protected by the locks */
static unsigned int alarms, taken[STRESSED];
static uint32_t owner[LW_MAX_SLOTS + 1];

/* Takes a slot and checks that no other thread has it. */
static void use_slot(void)
{
	uint32_t self = (uint32_t)gettid();
	uint32_t slot = lw_user_slot_enter();
	uint32_t last;

	CHECK(slot != 0);
	last = __atomic_exchange_n(&owner[slot], self, __ATOMIC_RELAXED);
	CHECK(last == 0 || last == self);
	/* The interrupted code may still use it. */
	__atomic_store_n(&owner[slot], last, __ATOMIC_RELAXED);
	lw_user_slot_leave();
}

static void on_alarm(int signal)
{
	(void)signal;
	use_slot();
	lw_cna_lock(&inner);
	inner_count++;
	lw_cna_unlock(&inner);
	__atomic_fetch_add(&alarms, 1, __ATOMIC_RELAXED);
}

static void *stress(void *arg)
{
	unsigned int *count = arg;

	/* This thread borrows slots, so it takes and returns one at every turn. */
	lw_user_thread.exiting = true;
	while (__atomic_load_n(&alarms, __ATOMIC_RELAXED) < ALARMS) {
		lw_cna_lock(&outer);
		outer_count++;
		lw_cna_unlock(&outer);
		++*count;
		for (int i = 0; i < 50; i++)
			use_slot();
	}
	return NULL;
}

static void check_alarms(void)
{
	struct sigaction action = {.sa_handler = on_alarm};
	struct itimerval every = {.it_interval.tv_usec = 200, .it_value.tv_usec = 200}, never = {0};
	sigset_t blocked;
	pthread_t threads[STRESSED];

	CHECK(sigaction(SIGALRM, &action, NULL) == 0);
	for (int i = 0; i < STRESSED; i++)
		thread_start(&threads[i], 0, stress, &taken[i]);
	/* The alarm signal goes to any thread that does not block it. */
	sigemptyset(&blocked);
	sigaddset(&blocked, SIGALRM);
	CHECK(pthread_sigmask(SIG_BLOCK, &blocked, NULL) == 0);
	CHECK(setitimer(ITIMER_REAL, &every, NULL) == 0);
	for (int i = 0; i < STRESSED; i++)
		CHECK(pthread_join(threads[i], NULL) == 0);
	CHECK(setitimer(ITIMER_REAL, &never, NULL) == 0);
	CHECK(outer_count == (unsigned long)taken[0] + taken[1]);
	CHECK(inner_count == alarms);
	/* Handlers interrupted threads that took and returned slots. No slot was lost. */
	check_slots_are_free(64, 64 + 2 * STRESSED + 2);
}

static struct lw_mutex mutex;
static lw_atomic(bool) goes_on;
static lw_atomic(int) acquired;

static void stop(int signal)
{
	(void)signal;
	while (!lw_load(&goes_on, relaxed))
		usleep(200);
}

static void *acquire(void *arg)
{
	lw_mutex_lock(&mutex);
	lw_fetch_add(&acquired, 1, relaxed);
	lw_mutex_unlock(&mutex);
	return arg;
}

/* A collector stops threads wherever they are. A waiter that it stops stops no other for good. */
static void check_stopped_head(void)
{
	struct sigaction action = {.sa_handler = stop};
	pthread_t threads[3];

	CHECK(sigaction(SIGUSR1, &action, NULL) == 0);
	lw_mutex_lock(&mutex);
	for (int i = 0; i < 3; i++) {
		thread_start(&threads[i], 0, acquire, NULL);
		usleep(30000);
	}
	/* Long enough for waits behind it to have been long. */
	sleep(2);
	CHECK(pthread_kill(threads[0], SIGUSR1) == 0);
	usleep(30000);
	lw_mutex_unlock(&mutex);
	/* Those that come later, and those that had queued behind it. */
	for (int i = 0; i < 20000; i++) {
		lw_mutex_lock(&mutex);
		lw_mutex_unlock(&mutex);
	}
	if (!lw_numa_aware(mutex))
		while (lw_load(&acquired, relaxed) < 2)
			usleep(1000);
	lw_store(&goes_on, true, relaxed);
	for (int i = 0; i < 3; i++)
		CHECK(pthread_join(threads[i], NULL) == 0);
	CHECK(lw_load(&acquired, relaxed) == 3);
}

int main(void)
{
	/* A test that fails here hangs. */
	alarm(60);
	check_stopped_head();
	check_nesting();
	check_alarms();
	return 0;
}
