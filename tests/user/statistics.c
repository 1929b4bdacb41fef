// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/* The events that locks with parking waiters count, in situations in which the counts are known. */
#include "waiters.h"

#include <dirent.h>

#include "parked_heads.h"

#define WITH(name, value) CHECK(lw_set_tunable(LW_TUNABLE_##name, value) == 0)

static void reset_tunables(void)
{
	for (unsigned int id = 0; id < LW_TUNABLE_COUNT; id++)
		CHECK(lw_set_tunable((enum lw_tunable_id)id, lw_tunables[id].default_value) == 0);
}

static void *lock_once(void *arg)
{
	const struct subject *subject = arg;

	subject->lock();
	subject->unlock();
	return NULL;
}

/* Whether a thread of this process, other than this thread, does not sleep. */
static bool others_run(void)
{
	DIR *tasks = opendir("/proc/self/task");
	bool run = false;

	CHECK(tasks);
	for (struct dirent *task; (task = readdir(tasks));) {
		char text[512], path[300];
		FILE *stat;

		if (task->d_name[0] == '.' || atoi(task->d_name) == gettid())
			continue;
		snprintf(path, sizeof(path), "/proc/self/task/%s/stat", task->d_name);
		stat = fopen(path, "r");
		/* A thread that has ended may be listed for a moment. */
		if (!stat)
			continue;
		/* TID (NAME) STATE ...; the name is ours. */
		if (fgets(text, sizeof(text), stat))
			run |= strncmp(strrchr(text, ')'), ") S", 3) != 0;
		fclose(stat);
	}
	closedir(tasks);
	return run;
}

/*
 * Starts `n` waiters, each of which parks behind the one before. This thread holds the lock.
 * Waiters count that they park before they do it. A waiter that does not sleep yet when its turn
 * comes needs no kick, so wait until all sleep.
 */
static void queue_up(const struct subject *subject, pthread_t *threads, unsigned int n)
{
	watch(subject->name);
	subject->lock();
	start_counting();
	for (unsigned int i = 0; i < n; i++) {
		uint64_t asleep = halts();

		thread_start(&threads[i], 0, lock_once, (void *)subject);
		await_halts(asleep, 1);
		while (others_run())
			usleep(200);
	}
}

/* Releases the lock. The waiters acquire it one after the other. */
static void drain(const struct subject *subject, pthread_t *threads, unsigned int n)
{
	subject->unlock();
	for (unsigned int i = 0; i < n; i++)
		CHECK(pthread_join(threads[i], NULL) == 0);
	check_free(subject);
	reset_tunables();
}

static void check_kick_at_unlock(const struct subject *subject)
{
	pthread_t threads[3];

	WITH(pv_pending, 0);
	queue_up(subject, threads, 3);
	CHECK_COUNTED(halts_at_head, 1);
	CHECK_COUNTED(halts_in_queue, 2);
	CHECK_COUNTED(table_operations, 1);
	CHECK_COUNTED(kicks_at_unlock, 0);
	drain(subject, threads, 3);
	/* One kick for each, and an entry made and removed for each. */
	CHECK_COUNTED(kicks_at_unlock, 3);
	CHECK_COUNTED(kicks_at_handoff, 0);
	CHECK_COUNTED(kicks_ahead, 0);
	CHECK_COUNTED(spurious_wakeups, 0);
	CHECK_COUNTED(table_operations, 6);
	CHECK_COUNTED(table_hops, 0);
	CHECK_COUNTED(queued_acquisitions, 3);
	CHECK_COUNTED(pending_acquisitions, 0);
	/* These are counted only with pv_latencies. */
	CHECK_COUNTED(kick_nanoseconds, 0);
	CHECK_COUNTED(wakeup_nanoseconds, 0);
	CHECK_COUNTED(wakeups, 0);
}

static void check_kick_at_handoff(const struct subject *subject)
{
	pthread_t threads[3];

	WITH(pv_pending, 0);
	WITH(pv_kick_at_unlock, 0);
	queue_up(subject, threads, 3);
	drain(subject, threads, 3);
	CHECK_COUNTED(kicks_at_handoff, 2);
	CHECK(since(LW_EVENT_kicks_at_unlock) >= 1);
}

static void check_kick_ahead(const struct subject *subject)
{
	pthread_t threads[4];

	WITH(pv_pending, 0);
	WITH(pv_kick_ahead, 2);
	queue_up(subject, threads, 4);
	drain(subject, threads, 4);
	CHECK(since(LW_EVENT_kicks_ahead) >= 2);
}

static void check_wait_early(const struct subject *subject)
{
	pthread_t threads[3];

	WITH(pv_pending, 0);
	/* Enough polls to notice that the waiter before has parked. */
	WITH(pv_spin, 1000000);
	queue_up(subject, threads, 3);
	CHECK_COUNTED(halts_early, 2);
	drain(subject, threads, 3);

	WITH(pv_pending, 0);
	WITH(pv_wait_early, 0);
	queue_up(subject, threads, 3);
	CHECK_COUNTED(halts_early, 0);
	drain(subject, threads, 3);
}

static void check_latencies(const struct subject *subject)
{
	pthread_t threads[3];
	uint64_t begun;

	WITH(pv_latencies, 1);
	queue_up(subject, threads, 3);
	/* This time must not be counted: no waiter has been kicked yet. */
	usleep(50000);
	start_counting();
	begun = lw_timestamp();
	drain(subject, threads, 3);
	CHECK(since(LW_EVENT_wakeups) == since(LW_EVENT_kicks_at_unlock));
	CHECK(since(LW_EVENT_kick_nanoseconds) > 0);
	CHECK(since(LW_EVENT_wakeup_nanoseconds) > 0);
	/* Each waiter was woken after the release. */
	CHECK(since(LW_EVENT_wakeup_nanoseconds) <= 3 * (lw_timestamp() - begun));
}

static void check_pending(const struct subject *subject)
{
	pthread_t thread;

	WITH(pv_spin, UINT32_MAX);
	watch(subject->name);
	subject->lock();
	start_counting();
	thread_start(&thread, 0, lock_once, (void *)subject);
	while (!(lw_load(&subject->word->val, relaxed) & LW_PENDING))
		usleep(200);
	drain(subject, &thread, 1);
	CHECK_COUNTED(pending_acquisitions, 1);
	CHECK_COUNTED(queued_acquisitions, 0);
}

/* An arrival nearly always acquires the lock before a waiter that has to wake up. Until it does. */
static void check_steals_on_arrival(const struct subject *subject, void (*arrive)(void))
{
	pthread_t thread;

	do {
		queue_up(subject, &thread, 1);
		subject->unlock();
		arrive();
		drain(subject, &thread, 1);
	} while (!since(LW_EVENT_steals_on_arrival));
	CHECK_COUNTED(steals_on_arrival, 1);
}

/* So does a waiter that spins in the queue behind a parked head. */
static void check_steals_in_queue(const struct subject *subject)
{
	union lw_word *word = subject->word;
	pthread_t threads[2];

	do {
		uint32_t tail;

		queue_up(subject, threads, 1);
		tail = lw_load(&word->val, relaxed) & LW_TAIL_MASK;
		WITH(unfair_spin, UINT32_MAX);
		thread_start(&threads[1], 0, lock_once, (void *)subject);
		while ((lw_load(&word->val, relaxed) & LW_TAIL_MASK) == tail)
			usleep(200);
		/* Time to get from the tail to its place; otherwise there is another run. */
		usleep(1000);
		drain(subject, threads, 2);
	} while (!since(LW_EVENT_steals_behind_head));
	CHECK_COUNTED(steals_behind_head, 1);
	CHECK_COUNTED(steals_third, 0);
}

static void pv_arrive(void)
{
	lw_pv_lock_slow(&pv_tested);
}

static void unfair_arrive(void)
{
	lw_unfair_lock_slow(&unfair_tested);
}

static struct lw_pv many[1 << 18];

static void *lock_one_of_many(void *lock)
{
	lw_pv_lock(lock);
	lw_pv_unlock(lock);
	return NULL;
}

/* Two locks whose entries in the table of parked heads have the same place. */
static void check_hops(void)
{
	static unsigned int first_at[1 << 16];
	struct lw_pv *locks[2] = {NULL};
	pthread_t threads[2];

	watch("hops");
	for (unsigned int i = 1; !locks[0]; i++) {
		ptrdiff_t place = lw_parked_probe(&many[i].word, 0) - lw_parked_heads();

		CHECK(i + 1 < sizeof(many) / sizeof(many[0]));
		if (first_at[place]) {
			locks[0] = &many[first_at[place]];
			locks[1] = &many[i];
		}
		first_at[place] = i;
	}
	start_counting();
	for (int i = 0; i < 2; i++) {
		uint64_t asleep = halts();

		lw_pv_lock(locks[i]);
		thread_start(&threads[i], 0, lock_one_of_many, locks[i]);
		await_halts(asleep, 1);
	}
	CHECK_COUNTED(table_operations, 2);
	CHECK_COUNTED(table_hops, 1);
	/* The second entry is found one hop past the first. */
	for (int i = 2; i-- > 0;) {
		lw_pv_unlock(locks[i]);
		CHECK(pthread_join(threads[i], NULL) == 0);
	}
	CHECK_COUNTED(table_operations, 4);
	CHECK_COUNTED(table_hops, 2);
}

int main(void)
{
	const struct subject *pv = &subjects[0], *unfair = &subjects[1];

	check_kick_at_unlock(pv);
	check_kick_at_handoff(pv);
	check_kick_ahead(pv);
	check_wait_early(pv);
	check_latencies(pv);
	check_latencies(unfair);
	check_pending(pv);
	check_steals_on_arrival(pv, pv_arrive);
	check_steals_on_arrival(unfair, unfair_arrive);
	check_steals_in_queue(unfair);
	check_hops();
	return 0;
}
