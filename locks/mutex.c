// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * The mutex of programs, a policy of the queue whose waiters halt (halting.h).
 *
 * Whoever runs takes a free mutex, past those who queue, until the first of them has looked for it
 * mutex_steal_window times, and does not sleep, or has slept mutex_starvation_limit times in vain;
 * then the mutex is handed to that one. Waiters spin mutex_spin looks, less if the one before them
 * sleeps, then sleep. Who would queue behind a sleeper first looks for a short while, as long as a
 * short critical section, whether it can do without: a queue that sleeps drains slower than it
 * fills. While the first waits, it brings one of its NUMA node that spins to the second place, so
 * that mutex and data stay on a node; whom that passes waits for mutex_group such waiters at most.
 *
 * Read-modify-writes: one for lock and unlock of a free mutex. One that waits in the queue and does
 * not sleep makes two, one more if it has to forbid stealing, and its predecessor one to make it
 * head.
 */
#include "halting.h"
#include "lock_type.h"
#include "mutex.h"

static lw_always_inline struct lw_halting lw_mutex_how(void)
{
	return (struct lw_halting){
		.steal = true,
		.halt = true,
		.kick_at_unlock = true,
		.wait_early = true,
		.latencies = lw_tunable(pv_latencies),
		.group = lw_numa_aware(mutex) ? (uint32_t)lw_tunable(mutex_group) : 0,
		.linger = (uint32_t)lw_tunable(mutex_arrival_spin),
		.linger_late = true,
		.spin = (uint32_t)lw_tunable(mutex_spin),
		.claim = (uint32_t)lw_tunable(mutex_starvation_limit),
		.overtake = (uint32_t)lw_tunable(mutex_steal_window),
	};
}

static lw_always_inline enum lw_queue_end lw_mutex_queue(union lw_word *lock, uint32_t tail,
							 struct lw_node *node,
							 const struct lw_wait_limit *limit)
{
	return lw_halting_queue(lock, tail, node, limit, lw_mutex_how());
}

static lw_always_inline bool lw_mutex_nodeless(union lw_word *lock,
					       const struct lw_wait_limit *limit)
{
	return lw_halting_nodeless(lock, limit, lw_mutex_how());
}

bool lw_mutex_lock_limited(struct lw_mutex *mutex, const struct lw_wait_limit *limit)
{
	return lw_halting_arrive(&mutex->word, lw_mutex_how()) ||
	       lw_queued_wait(&mutex->word, limit, lw_mutex_queue, lw_mutex_nodeless);
}

void lw_mutex_lock_slow(struct lw_mutex *mutex)
{
	lw_mutex_lock_limited(mutex, NULL);
}

void lw_mutex_unlock_slow(struct lw_mutex *mutex)
{
	lw_halting_unlock_slow(&mutex->word, lw_mutex_how());
}

LW_DESCRIBE_LIMITED(mutex, struct lw_mutex,
		    .summary = "sleeping lock: waiters spin, then sleep; arrivals may steal; NUMA-aware",
		    .traits = LW_TAIL_WORD | LW_NUMA_AWARE,
		    .origin = "Long's pvqspinlock of 2015 as a mutex; grouping after Kashyap and "
			      "others, ShflLock, 2019");
