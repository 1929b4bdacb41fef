// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * The mutex. A thread that runs and finds it free takes it, but within a bound. Waiters queue, by
 * NUMA node if there are several. The queue head polls the word; all others poll their own node,
 * and then park.
 *
 *   free     (0,0,0) -- any thread: compare-and-swap -----------------> held (0,0,1)
 *   pending  (0,0,1) -- second contender sets the bit, and polls -----> (0,1,1) --> (0,0,1)
 *   queue    (p,*,*) -- further contenders join ----------------------> (n,*,*)
 *            (n,0,0) -- the queue head acquires, and hands its role on > (n,0,1)
 *   retaken  (n,*,0) -- the last holder comes back first --------------> (n,*,1) with RETAKEN
 *   asleep   (n,0,1) with ASLEEP -- unlock ----------------------------> (n,0,0), the head is woken
 *   open     (n,0,0) with OPEN -- any thread, until the head runs -----> (n,0,1)
 *   starved  (n,*,0) with STARVED -- the head or pending waiter -------> (n,0,1)
 *
 * Five ideas make it fast, each where another lock fails:
 *
 *   - The last holder again. In a loop that locks again at once, it is fastest if the last holder
 *     retakes the mutex: word and data are in its cache. In a loop with other work in between, the
 *     mutex would be idle meanwhile. So the word keeps the last holder's CPU after the release, and
 *     a thread on that CPU may retake it (any that arrives, where the word has no mark). It
 *     marks that (RETAKEN), and only where waiters see the mark do they poll less often, for one
 *     window; then they set STARVED.
 *   - A queue for each NUMA node, as in hq.c: the word's queue has places, and a place belongs to a
 *     waiter or to the queue of a NUMA node. The mutex is handed over within a node up to
 *     LW_MUTEX_RUN times. A waiter that could not join after three attempts takes a place of its
 *     own, since attempts disturb those who have joined.
 *   - Parked waiters do not hold up the mutex. A parked waiter that becomes queue head is woken by
 *     the next unlock, not before: it would take the holder's CPU. While the head sleeps or wakes
 *     up, any thread that runs may take the mutex.
 *   - Nobody waits for who does not run. A waiter that finds the holder's mark to be that of its
 *     own CPU knows that the holder lost it. It parks, and tells the others (OFF_CPU). This is the
 *     rule of FlexGuard (SOSP 2025) without a probe in the kernel. And a head that does not get a
 *     CPU for LW_MUTEX_PASSED_AFTER has STARVED set for it by a thread that keeps passing over it.
 *   - Waiters that can all run do not park, and need no read-modify-write to be handed the mutex.
 *     lw_waiters_park() is false there: in kernels, and for threads with a CPU each.
 *
 * The word (lock_word.h), beside the tail:
 *
 * | piece    | set by                         | cleared by                     | may stay clear   |
 * |----------|--------------------------------|--------------------------------|------------------|
 * | locked   | who acquires: its CPU's mark,  | the holder: bit 0 only         | no               |
 * |          | whose bit 0 is 1               |                                |                  |
 * | PENDING  | an arriving thread that polls, | the same, when it acquires or  | yes: then only   |
 * |          | while nobody queues or the     | gives up; a head that it keeps | speed is lost    |
 * |          | mutex is open                  | waiting (parking form)         |                  |
 * | STARVED  | a waiter that polls, after a   | who acquires as queue head, or | yes: then others |
 * |          | window of retakes; a head that | as pending waiter while nobody | go on taking the |
 * |          | runs, or for it who passes     | queues; who has found the free | mutex            |
 * |          | over it, after a time.         | mutex left alone for           |                  |
 * |          | Below its greatest value it    | LW_MUTEX_RESERVED_FOR; any     |                  |
 * |          | counts those who have passed   | thread, when nobody waits      |                  |
 * |          | over the head, again and again |                                |                  |
 * | OPEN     | with ASLEEP, unless the head   | the head, when it runs         | yes: then nobody |
 * |          | starves. Where waiters do not  |                                | steals meanwhile |
 * |          | park: who acquires, and may    | the next waiter that acquires  |                  |
 * |          | come back soon                 |                                |                  |
 * | RETAKEN  | the last holder, as it         | a waiter that has seen it; who | yes: then the    |
 * |          | acquires while others wait     | acquires after waiting         | waiters poll     |
 * | ASLEEP   | the head before it parks; the  | who unlocks and wakes the      | no               |
 * |          | holder that makes a parked     | head; the head, if it wakes    |                  |
 * |          | waiter head                    | early                          |                  |
 *
 * A mutex that nobody holds or waits for may have a mark and any of LW_MAY_STAY set.
 *
 * In the spinning form a queue head, or a pending waiter, acquires by a store where OPEN is not
 * set, since then no other thread acquires. In the parking form all acquire by a compare-and-swap.
 * So a free mutex is open to lw_mutex_trylock() whatever the flags are, except STARVED, and to a
 * thread that has seen it free for LW_MUTEX_REFUSAL polls: the one that should take it does not
 * run. A starved one is open only after LW_MUTEX_RESERVED_FOR.
 *
 * `locked` of a queue node: that of parking.h, with the run of hand-overs within its NUMA node
 * above bit 8. ABANDONED is also the node of a waiter that leaves a mutex which is left alone. And:
 *
 *   WAITING, PARKED --> LEADER  the queue of the NUMA node has no place: take one for it
 *
 * Promises: mutual exclusion; no waiter is lost; no waiter starves. A place is passed over by
 * LW_MUTEX_RUN hand-overs for each place before it. Its waiter, as head, is passed over for
 * LW_MUTEX_STARVES_AFTER at most from the time that it first was too late. If it does not get a
 * CPU, it is passed over for LW_MUTEX_PASSED_AFTER, and by 6 * LW_MUTEX_BYPASS_TIMES acquisitions
 * more on average (by LW_MUTEX_PASSES where those are pending waiters). Then STARVED is set, and
 * the mutex is left to it. Then come only threads that had seen the word before, one pending
 * waiter, and, if it has no CPU for LW_MUTEX_RESERVED_FOR either, others for another
 * LW_MUTEX_PASSED_AFTER. Mutexes that share an entry of the table of times may delay each other's.
 * lw_mutex_trylock() passes over a head uncounted, and so does who has found the mutex left alone.
 * An arriving thread has no place yet: others may come first for LW_MUTEX_OPEN_WAIT polls.
 * Correct without a free queue node.
 *
 * A waiter that is stopped (in a signal handler, say) holds up those behind it for 33 ms to 0.5 s:
 * then they leave the queue and arrive once more. Not those in the queue of a NUMA node, and not a
 * thread that waits in a signal handler itself, or has other uses for its slot.
 *
 * Orders, besides those of parking.h: as in the queued spinlock, a thread acquires by a
 * compare-and-swap that acquires, or by a store after a fence that acquires. The release is a store
 * or compare-and-swap that releases.
 *
 *   - enter and join of the queue of a NUMA node: see hq.c.
 *   - LEADER is stored by a release and read with acquire, as HEAD is.
 *   - All other flags and OFF_CPU are advice, or are followed by an acquisition: relaxed.
 */
#include "lock_type.h"
#include "mutex.h"
#include "node_queue.h"
#include "parking.h"

/*
 * While the last holder retakes the mutex, a waiter polls after so many pauses, then after twice as
 * many, and so on...
 */
#define LW_MUTEX_RETAKE_PAUSES lw_constant(64, 1)
/* ...until it has paused for so many in all, and sets STARVED. */
#define LW_MUTEX_RETAKE_WINDOW lw_constant(1024, 1)
/*
 * Pauses for which a free mutex is left to the last holder, where waiters do not park and it may
 * come back soon: a hand-over's time.
 */
#define LW_MUTEX_GRACE_PAUSES lw_constant(48, 1)
#ifndef LW_MUTEX_RUN
/* The most hand-overs in a row within a NUMA node. */
#define LW_MUTEX_RUN lw_constant(256, 2)
/* The number of hand-overs for which one counts that retakes have delayed. */
#define LW_MUTEX_RUN_WINDOW lw_constant(32, 1)
#endif
/* Attempts to join the queue of a NUMA node. */
#define LW_MUTEX_JOINS lw_constant(3, 2)
/* After this number of hand-overs within a NUMA node its head waits for one more waiter there... */
#define LW_MUTEX_LINGER_RUN lw_constant(8, 1)

/* ...for this number of polls: a hand-over to another node takes longer. */
#define LW_MUTEX_LINGER 64
#ifndef LW_MUTEX_OPEN_WAIT
/* Polls of an arriving thread before it queues behind a head that does not run... */
#define LW_MUTEX_OPEN_WAIT 500
/* ...whether it polls also while that head starves, rather than queue at once... */
#define LW_MUTEX_STARVED_WAIT false
#endif
/* ...and polls of one that has PENDING, before the next may have it. */
#define LW_MUTEX_OPEN_POLLS 100
/* Polls for which a free mutex is left to a waiter that polls: after that, it may not run. */
#define LW_MUTEX_REFUSAL 24
/* Polls of a head for which the mutex is left by others, before it parks. */
#define LW_MUTEX_STARVED_POLLS lw_constant(1000, 1)
/* A waiter behind others parks for so many doublings of a millisecond before it looks around. */
#define LW_MUTEX_LOOK_AFTER 5
/* ...and for so many more at most, so it looks at least every 0.5 s. */
#define LW_MUTEX_LOOK_DOUBLINGS 4
/* Long pauses between two looks at a mutex that seems to be left alone. */
#define LW_MUTEX_ALONE_PAUSES 10
/* Polls after which a waiter checks again that the holder runs. */
#define LW_MUTEX_HOLDER_POLLS 128
/* The unlock wakes the head in one of so many cases in which a pending waiter takes the mutex. */
#define LW_MUTEX_PASSES 256
/* Who passes over the head as the last before STARVED looks at the time in one of so many cases. */
#define LW_MUTEX_BYPASS_TIMES lw_constant(4, 1)
/* Nanoseconds that a head waits before it sets STARVED... */
#define LW_MUTEX_STARVES_AFTER 250000
/* ...and before a thread that passes over it does, since it may have no CPU. */
#define LW_MUTEX_PASSED_AFTER 500000
/*
 * Nanoseconds for which a mutex is left to a head that does not come, from the time that STARVED
 * was set for it, or that the unlock woke it.
 */
#define LW_MUTEX_RESERVED_FOR 25000

enum lw_mutex_outcome {
	LW_MUTEX_ACQUIRED,
	LW_MUTEX_HEADS,
	LW_MUTEX_LEADS,	    /* the queue of our NUMA node has no place yet */
	LW_MUTEX_LEFT,	    /* the wait limit is reached, and our node is out of the queue */
	LW_MUTEX_ABANDONED, /* node and slot are no longer ours */
};

/* A thread in the queue. */
struct lw_mutex_waiter {
	union lw_word *word;
	const struct lw_wait_limit *limit;
	uint32_t slot;
	uint32_t tail;	       /* our node as a tail */
	struct lw_node *node;  /* our own */
	struct lw_node *queue; /* of our NUMA node; NULL if we have a place of our own */
	uint64_t self;	       /* `waiters` of the queue, while we are the last */
	struct lw_node *place; /* in the word's queue */
	uint32_t place_tail;   /* the place as the word's tail; 0 when it is not the last */
	struct lw_node *after; /* the place behind it, if known */
	struct lw_node *prev;  /* before `at` in its queue; a hint */
	struct lw_node *at;    /* the node that we poll, and park on */
	uint32_t spin;	       /* polls before we park */
	bool retakes_seen;     /* by its last holder, while we polled as head */
	uint32_t run;	       /* hand-overs within the NUMA node that led to us */
	bool parked;	       /* at least once */
	uint32_t opens;	       /* OPEN, if we acquire with it where waiters do not park */
};

/*
 * Polling
 */

/* Is the holder known not to run? Then the other waiters shall know it too. */
static bool lw_mutex_holder_waits(union lw_word *word, uint32_t val)
{
	uint8_t holder = (uint8_t)val;

	if (!lw_waiters_park() || lw_may_run(holder))
		return false;
	/* (*,*,mark) -> (*,*,OFF_CPU) */
	if (holder != LW_OFF_CPU)
		lw_field_try_cmpxchg(word, locked, &holder, LW_OFF_CPU, relaxed);
	return true;
}

/*
 * Poll until the mutex is free, or for `spin` pauses. Returns the word of the last poll. While the
 * last holder retakes it, poll ever less often, since each poll takes the cache line from it.
 */
static uint32_t lw_mutex_poll(union lw_word *word, uint32_t spin, bool *retakes_seen)
{
	uint32_t val = lw_load(&word->val, relaxed), pauses = LW_MUTEX_RETAKE_PAUSES, spun = 0;
	uint32_t window = 0;

	while (spun < spin) {
		uint32_t polls = lw_waiters_park() ? LW_MUTEX_HOLDER_POLLS : UINT32_MAX / 2;

		if ((val & LW_RETAKEN) && !lw_mutex_is_starved(val)) {
			*retakes_seen = true;
			if (window >= LW_MUTEX_RETAKE_WINDOW) {
				/* STARVED: 0 -> 1 */
				val = lw_fetch_or(&word->val, LW_STARVED, relaxed) | LW_STARVED;
				continue;
			}
			/* RETAKEN: 1 -> 0 */
			lw_fetch_and(&word->val, ~LW_RETAKEN, relaxed);
			lw_pause(pauses);
			window += pauses;
			polls = pauses;
			pauses *= 2;
			val = lw_load(&word->val, relaxed);
		} else if (!(val & LW_LOCKED) && (val & LW_OPEN) && !lw_waiters_park() && !window) {
			lw_pause(LW_MUTEX_GRACE_PAUSES);
			window += LW_MUTEX_GRACE_PAUSES;
			val = lw_load(&word->val, relaxed);
		} else {
			if (!(val & LW_LOCKED) || lw_mutex_holder_waits(word, val))
				return val;
			val = lw_await_ne_backoff(&word->val, LW_LOCKED, LW_LOCKED, polls);
		}
		spun += lw_waiters_park() ? polls : 0;
	}
	return val;
}

/*
 * Acquiring
 */

/* (*,*,0) -> (*,*,1), without the flags `less`, with the flags `more`. */
static inline bool lw_mutex_acquire(union lw_word *word, uint32_t val, uint32_t less, uint32_t more)
{
	uint16_t seen = (uint16_t)val;
	uint32_t next = (val & ~(less | LW_LOCKED_MASK)) | more | lw_cpu_mark();

	return lw_field_try_cmpxchg(word, locked_pending, &seen, (uint16_t)next, acquire);
}

/* May an arriving thread join those that poll the word? Nobody queues, or the head does not run. */
static inline bool lw_mutex_is_open(uint32_t val)
{
	return (!(val & LW_TAIL_MASK) || (lw_waiters_park() && (val & LW_OPEN))) &&
	       !lw_mutex_is_starved(val);
}

/* Has more time gone by since the time that was noted for this mutex? */
static inline bool lw_mutex_waits_longer(union lw_word *word, uint64_t nanoseconds)
{
	return lw_has_passed(lw_noted_time(&lw_parked_first(word)->since), nanoseconds);
}

/* The checker lets trylock fail instead, which it may at any time. */
bool lw_mutex_is_left(union lw_word *word)
{
	return lw_is_forked() ||
	       lw_constant(lw_mutex_waits_longer(word, LW_MUTEX_RESERVED_FOR), ((void)word, false));
}

/* On arrival: acquire the mutex if it is free and open to us. */
static bool lw_mutex_steal(union lw_word *word)
{
	uint32_t val = lw_load(&word->val, relaxed);

	while (!(val & LW_LOCKED)) {
		uint16_t seen = (uint16_t)val;
		uint32_t next = lw_mutex_next(val, val & LW_TAIL_MASK);

		if (next && !(next & ~LW_LOCKED_MASK)) {
			/* (0,0,0) -> (0,0,1) */
			if (lw_try_cmpxchg(&word->val, &val, next, acquire))
				return true;
			continue;
		}
		if (!next && !lw_waiters_park())
			return false;
		if (!next && !lw_mutex_is_starved(val)) {
			/* Ours, except for the number of those who have passed over the head? */
			next = lw_mutex_next(val & ~LW_STARVED, 1);
			if (next && lw_chance(1, LW_MUTEX_BYPASS_TIMES) &&
			    lw_mutex_waits_longer(word, LW_MUTEX_PASSED_AFTER))
				next |= LW_STARVED;
		}
		if (!next) {
			/* A waiter should take it, but may not run. */
			bool starved;

			val = lw_await_ne_bounded(&word->val, LW_LOCKED, 0, LW_MUTEX_REFUSAL);
			starved = lw_mutex_is_starved(val);
			if ((val & LW_LOCKED) ||
			    (starved && !lw_mutex_waits_longer(word, LW_MUTEX_RESERVED_FOR)))
				return false;
			if (!lw_mutex_acquire(word, val, starved ? LW_STARVED : 0, 0))
				return false;
			if (starved)
				lw_note_time(&lw_parked_first(word)->since, lw_timestamp());
			return true;
		}
		/* (*,*,0) -> (*,*,1) */
		if (lw_field_try_cmpxchg(word, locked_pending, &seen, (uint16_t)next, acquire)) {
			if (lw_mutex_is_starved(next))
				lw_note_time(&lw_parked_first(word)->since, lw_timestamp());
			if (next & LW_RETAKEN)
				lw_count(retakes);
			else
				lw_count(steals_on_arrival);
			return true;
		}
		val = lw_load(&word->val, relaxed);
	}
	return false;
}

/* Where waiters do not park: OPEN, if the next holder is likely to retake the mutex. */
static inline uint32_t lw_mutex_opens(bool retakes_seen)
{
	if (lw_waiters_park())
		return 0;
	return retakes_seen || lw_chance(lw_tunable(mutex_trials), 10000) ? LW_OPEN : 0;
}

/* Compete for the mutex as the pending waiter. False: we have to queue. */
static bool lw_mutex_pending(union lw_word *word, uint32_t spin)
{
	uint32_t val = lw_load(&word->val, relaxed);
	bool retakes_seen = false;

	if ((val & LW_PENDING) || !lw_mutex_is_open(val))
		return false;
	/* (*,0,*) -> (*,1,*) */
	val = lw_fetch_or(&word->val, LW_PENDING, relaxed);
	if (val & LW_PENDING)
		return false;
	if (lw_mutex_is_open(val)) {
		if (lw_waiters_park() && (val & LW_OPEN) && spin > LW_MUTEX_OPEN_POLLS)
			spin = LW_MUTEX_OPEN_POLLS;
		for (;;) {
			/* STARVED is the queue head's, if there is one. */
			uint32_t less = LW_PENDING | LW_RETAKEN, opens;

			val = lw_mutex_poll(word, spin, &retakes_seen);
			if (val & LW_LOCKED)
				break;
			less |= val & LW_TAIL_MASK ? 0 : LW_STARVED;
			opens = lw_mutex_opens(retakes_seen);
			if (lw_waiters_park() && (val & LW_TAIL_MASK) &&
			    lw_constant(lw_chance(1, LW_MUTEX_PASSES), false) &&
			    lw_mutex_waits_longer(word, LW_MUTEX_PASSED_AFTER))
				opens = LW_STARVED;
			if (!lw_waiters_park() && !(val & LW_OPEN)) {
				/* (*,1,0) -> (*,0,1): no other thread acquires now */
				lw_fence(acquire);
				lw_field_store(word, locked_pending,
					       (uint16_t)(opens | lw_cpu_mark()), relaxed);
			} else if (!lw_mutex_acquire(word, val,
						     lw_waiters_park() ? less : less | LW_OPEN,
						     opens)) {
				continue;
			}
			if (opens == LW_STARVED)
				lw_note_time(&lw_parked_first(word)->since, lw_timestamp());
			lw_count(pending_acquisitions);
			lw_spin_report(true);
			return true;
		}
		lw_spin_report(false);
	}
	/* (*,1,*) -> (*,0,*) */
	val = lw_fetch_and(&word->val, ~LW_PENDING, relaxed) & ~LW_PENDING;
	/*
	 * An unlock that saw us pending has woken nobody, so a free mutex is ours to take. Where
	 * waiters do not park, it is the queue head's or the next pending waiter's, by a store.
	 */
	while (lw_waiters_park() && !(val & LW_LOCKED)) {
		if (lw_mutex_acquire(word, val, LW_RETAKEN | (val & LW_TAIL_MASK ? 0 : LW_STARVED),
				     0)) {
			lw_count(pending_acquisitions);
			return true;
		}
		val = lw_load(&word->val, relaxed);
	}
	return false;
}

/*
 * Handing over the head's role
 */

/* We are queue head, and run. */
static void lw_mutex_runs(union lw_word *word)
{
	/* OPEN: 1 -> 0 */
	if (lw_load(&word->val, relaxed) & LW_OPEN)
		lw_field_fetch_and(word, pending, (uint8_t)(0xff ^ (LW_OPEN >> 8)), relaxed);
}

/* A parked waiter that becomes head is woken by our unlock, if we hold the mutex. */
static inline enum lw_waking lw_mutex_waking(bool holds_lock)
{
	if (!lw_waiters_park())
		return LW_WAKE_NOBODY;
	return holds_lock ? LW_WAKE_AT_UNLOCK : LW_WAKE_NOW;
}

/* Our place leaves the word's queue. The first waiter behind it that has not left is head. */
static void lw_mutex_next_head(const struct lw_mutex_waiter *me, bool holds_lock)
{
	struct lw_node *next = me->after;

	if (!next)
		next = lw_queue_next(me->word, me->place, me->place_tail);
	lw_pass_role(me->word, next, lw_mutex_waking(holds_lock), LW_OPEN);
}

/* The place of our NUMA node has left the word's queue: free the queue, or name a new leader. */
static void lw_mutex_leave_queue(const struct lw_mutex_waiter *me, struct lw_node *next)
{
	uint32_t slot;

	if (!me->queue)
		return;
	next = lw_node_queue_next(me->queue, me->self, me->node, next);
	if (!next)
		return;
	slot = lw_tail_slot(lw_load(&next->tail, relaxed));
	if (!lw_waiters_park())
		lw_store(&next->locked, LW_NODE_LEADER, release);
	else if (lw_xchg(&next->locked, LW_NODE_LEADER, release) == LW_NODE_PARKED)
		lw_unpark(&next->locked, slot);
}

/* We are queue head, and saw the mutex free: acquire it, and hand over the head's role. */
static bool lw_mutex_take_over(const struct lw_mutex_waiter *me, uint32_t val)
{
	union lw_word *word = me->word;
	uint32_t less = LW_PENDING | LW_MAY_STAY;
	uint32_t opens = me->retakes_seen ? lw_mutex_opens(true) : me->opens;
	uint32_t mark = lw_release_is_split() || opens ? lw_cpu_mark() | opens : LW_LOCKED;
	struct lw_node *next = me->queue ? lw_load(&me->node->next, dependency) : NULL;
	bool last = (val & LW_TAIL_MASK) == me->place_tail;

	if (me->queue && !next && !last && me->run >= LW_MUTEX_LINGER_RUN &&
	    me->run < LW_MUTEX_RUN) {
		lw_await_ne_bounded(&me->node->next, ~(uintptr_t)0, 0, LW_MUTEX_LINGER);
		next = lw_load(&me->node->next, dependency);
	}

	/* (place,*,0) -> (0,0,1): nobody else queues */
	if (last && !next) {
		if (!lw_try_cmpxchg(&word->val, &val, mark, acq_rel))
			return false;
		lw_mutex_leave_queue(me, NULL);
		return true;
	}
	if (!lw_waiters_park() && !(val & LW_OPEN) && !opens) {
		/* (*,0,0) -> (*,0,1): no other thread acquires now */
		lw_fence(acquire);
		lw_field_store(word, locked, (uint8_t)lw_cpu_mark(), relaxed);
	} else if (!lw_mutex_acquire(word, val, less, opens)) {
		return false;
	}
	if (next && (last || me->run < LW_MUTEX_RUN)) {
		lw_count(local_handoffs);
		lw_make_head(word, next, me->run + (me->retakes_seen ? LW_MUTEX_RUN_WINDOW : 1),
			     lw_mutex_waking(true), LW_OPEN);
	} else {
		lw_mutex_next_head(me, true);
		lw_mutex_leave_queue(me, next);
	}
	return true;
}

/*
 * Waiting
 */

/* Wait as queue head: ACQUIRED or LEFT. */
static enum lw_mutex_outcome lw_mutex_head(struct lw_mutex_waiter *me)
{
	union lw_word *word = me->word;
	uint64_t since = 0; /* when the mutex was first not ours */
	bool limit_reached = false, starved = false;

	if (lw_waiters_park())
		lw_note_time(&lw_parked_first(word)->since, lw_timestamp());

	for (;;) {
		uint32_t val;

		if (since && !starved)
			starved = lw_has_passed(since, LW_MUTEX_STARVES_AFTER);
		/* STARVED: 0 -> 1 */
		if (starved && !lw_mutex_is_starved(lw_load(&word->val, relaxed)))
			lw_fetch_or(&word->val, LW_STARVED, relaxed);
		val = lw_mutex_poll(word, starved ? LW_MUTEX_STARVED_POLLS : me->spin,
				    &me->retakes_seen);
		if (!(val & LW_LOCKED)) {
			/* The pending waiter came before us. */
			if ((val & LW_PENDING) && !lw_waiters_park())
				val = lw_await_ne(&word->val, LW_PENDING, LW_PENDING, relaxed);
			else if ((val & LW_PENDING) && !starved)
				val = lw_await_ne_bounded(&word->val, LW_PENDING, LW_PENDING,
							  LW_MUTEX_REFUSAL);
			if (!(val & LW_LOCKED) && lw_mutex_take_over(me, val))
				return LW_MUTEX_ACQUIRED;
		}
		if (!lw_waiters_park())
			continue;
		if (!since)
			since = lw_timestamp();
		if (!(val & LW_LOCKED))
			continue;
		if (limit_reached || lw_limit_reached(me->limit)) {
			lw_mutex_next_head(me, false);
			return LW_MUTEX_LEFT;
		}
		lw_note_time(&lw_parked_first(word)->since, since);
		if (!lw_head_enter_table(word, me->at, starved ? 0 : LW_OPEN))
			continue;
		lw_spin_report(false);
		me->parked = true;
		limit_reached = lw_head_sleep(word, me->at, LW_OPEN, me->limit);
		lw_mutex_runs(word);
	}
}

/*
 * We have parked for long. Is the mutex free, and does nobody take it? The queue head may be
 * stopped, in a signal handler, say. Then we leave the queue if we can, and arrive once more. The
 * checker has this as a wait that is cancelled, and another.
 */
static inline bool lw_mutex_is_left_alone(const struct lw_mutex_waiter *me)
{
	if (me->queue || lw_tail_index(me->tail) || !lw_slot_may_be_abandoned() ||
	    (lw_load(&me->word->val, relaxed) & LW_LOCKED))
		return false;
	/* Longer than a head takes that is being woken. */
	for (uint32_t i = 0; i < LW_MUTEX_ALONE_PAUSES; i++) {
		if (lw_load(&me->at->locked, relaxed) != LW_NODE_WAITING)
			return false;
		lw_pause_long();
	}
	return !(lw_load(&me->word->val, relaxed) & LW_LOCKED);
}

/* Wait behind others, polling `at`: HEADS, LEADS or ABANDONED. */
static enum lw_mutex_outcome lw_mutex_wait(struct lw_mutex_waiter *me)
{
	struct lw_node *at = me->at;
	uint32_t state, parks = 0;

	if (!lw_waiters_park()) {
		state = lw_await_ne(&at->locked, ~0u, LW_NODE_WAITING, acquire);
	} else {
		while (!lw_node_poll(at, me->prev, me->spin)) {
			state = LW_NODE_WAITING;
			/* WAITING -> ABANDONED; release: all that we did to the slot */
			if (lw_limit_reached(me->limit) ||
			    lw_constant(parks && lw_mutex_is_left_alone(me), false)) {
				if (lw_slot_abandon(me->slot,
						    lw_try_cmpxchg(&at->locked, &state,
								   LW_NODE_ABANDONED, release)))
					return LW_MUTEX_ABANDONED;
				break;
			}
			/* WAITING -> PARKED */
			if (!lw_try_cmpxchg(&at->locked, &state, LW_NODE_PARKED, relaxed))
				break;
			lw_count(halts_in_queue);
			lw_spin_report(false);
			me->parked = true;
			/* That it ends by time changes nothing for the checker. */
			parks += lw_constant(lw_park_bounded(&at->locked, LW_NODE_PARKED, me->limit,
							     LW_MUTEX_LOOK_AFTER + parks) &&
						     parks < LW_MUTEX_LOOK_DOUBLINGS,
					     (lw_park(&at->locked, LW_NODE_PARKED, me->limit), 0));
			state = LW_NODE_PARKED;
			/* Awake before there is anything to do: PARKED -> WAITING */
			if (!lw_try_cmpxchg(&at->locked, &state, LW_NODE_WAITING, relaxed))
				break;
			lw_count(spurious_wakeups);
		}
		state = lw_load(&at->locked, acquire);
		if (state != LW_NODE_LEADER) {
			lw_head_woken(me->word, at, LW_OPEN);
			lw_mutex_runs(me->word);
		}
	}
	me->run = state >> LW_NODE_RUN_SHIFT;
	return state == LW_NODE_LEADER ? LW_MUTEX_LEADS : LW_MUTEX_HEADS;
}

/*
 * Join the queue of our NUMA node, if we can. LEADS: we are first in it, or me->queue is NULL, as
 * we need a place of our own.
 */
static enum lw_mutex_outcome lw_mutex_join(struct lw_mutex_waiter *me)
{
	me->prev = lw_node_queue_join(me->queue, me->self, me->node, LW_MUTEX_JOINS);
	if (me->prev && me->prev != me->node)
		return lw_mutex_wait(me);
	if (!me->prev)
		me->queue = NULL;
	return LW_MUTEX_LEADS;
}

/* Take a place in the word's queue, and wait until it is first: HEADS or ABANDONED. */
static enum lw_mutex_outcome lw_mutex_take_place(struct lw_mutex_waiter *me, uint32_t numa_node)
{
	struct lw_node *place = me->node, *before;
	uint32_t old;

	me->place_tail = me->tail;
	if (me->queue) {
		place = me->queue;
		me->place_tail = lw_node_queue_tail(numa_node);
		lw_node_init(place);
		lw_store(&place->tail, me->tail, relaxed);
	}
	me->place = me->at = place;
	old = lw_word_xchg_tail(me->word, me->place_tail);
	before = old ? lw_decode_place(me->word, old) : NULL;
	if (before && !lw_is_dead(before)) {
		me->prev = before;
		lw_store(&before->next, place, release);
		return lw_mutex_wait(me);
	}
	lw_store(&place->locked, LW_NODE_HEAD, relaxed);
	return LW_MUTEX_HEADS;
}

/*
 * No waiter of our NUMA node came while our place was in the word's queue, so probably none will
 * come soon. Free the queue now: after we have the mutex, others would wait for that.
 */
static void lw_mutex_free_queue_early(struct lw_mutex_waiter *me)
{
	struct lw_node *after = lw_load(&me->place->next, dependency);

	if (!after || lw_load(&me->node->next, relaxed) ||
	    !lw_node_queue_release(me->queue, me->self))
		return;
	me->queue = NULL;
	me->after = after;
	me->place_tail = 0;
	me->at = me->node;
	lw_store(&me->node->locked, LW_NODE_HEAD, relaxed);
}

/* Wait in the queue: ACQUIRED, LEFT or ABANDONED. */
static enum lw_mutex_outcome lw_mutex_queue(struct lw_mutex_waiter *me)
{
	uint32_t numa_node = lw_numa_node();
	enum lw_mutex_outcome outcome = LW_MUTEX_LEADS;

	lw_node_init(me->node);
	lw_store(&me->node->tail, me->tail, relaxed);
	me->opens = lw_mutex_opens(false);
	/* A waiter with a wait limit may leave, so it has a place of its own. */
	if (!me->limit && lw_numa_aware(mutex))
		me->queue = lw_node_queue_of(me->word, numa_node);
	if (me->queue)
		outcome = lw_mutex_join(me);
	if (outcome == LW_MUTEX_LEADS) {
		outcome = lw_mutex_take_place(me, numa_node);
		if (outcome == LW_MUTEX_HEADS && me->queue)
			lw_mutex_free_queue_early(me);
	} else {
		/* The place of our NUMA node is first. */
		me->place = me->queue;
		me->place_tail = lw_node_queue_tail(numa_node);
	}
	if (outcome == LW_MUTEX_HEADS)
		outcome = lw_mutex_head(me);
	if (outcome == LW_MUTEX_ACQUIRED) {
		lw_count(queued_acquisitions);
		if (!me->parked)
			lw_spin_report(true);
	} else {
		lw_count(waits_cancelled);
	}
	return outcome;
}

/* There is no free queue node, or none that may be abandoned: try until the mutex is free. */
static bool lw_mutex_nodeless(struct lw_mutex *mutex, const struct lw_wait_limit *limit)
{
	lw_count(nodeless_acquisitions);
	while (!lw_mutex_trylock(mutex)) {
		if (lw_limit_reached(limit))
			return false;
		lw_pause_long();
		lw_await_ne_bounded(&mutex->word.val, LW_LOCKED, LW_LOCKED, LW_MUTEX_REFUSAL);
	}
	return true;
}

/*
 * On arrival: acquire the mutex without a place in the queue. False: we have to queue. In the queue
 * of an open mutex we would sleep behind a head that sleeps, or has yet to get a CPU. So we compete
 * for LW_MUTEX_OPEN_WAIT, unless we may not spin.
 */
static bool lw_mutex_compete(struct lw_mutex_waiter *me)
{
	uint32_t val, spin = me->spin, spun = 0;
	bool any; /* any change of the word ends the wait, not only that of PENDING */

	do {
		if (lw_mutex_pending(me->word, spin))
			return true;
		if (!lw_waiters_park())
			return false;
		val = lw_load(&me->word->val, relaxed);
		if (!(val & LW_LOCKED) && !lw_mutex_is_starved(val) && lw_mutex_steal(me->word))
			return true;
		if (!(val & LW_OPEN) || spun >= (me->spin ? LW_MUTEX_OPEN_WAIT : 0) ||
		    lw_limit_reached(me->limit)) {
			/* There are more threads than CPUs, and the head needs one. */
			if (val & LW_OPEN)
				me->spin = 0;
			return false;
		}
		spin = LW_MUTEX_OPEN_POLLS;
		spun += spin;
		any = LW_MUTEX_STARVED_WAIT && !(val & LW_PENDING);
		lw_await_ne_bounded(&me->word->val, any ? ~0u : LW_PENDING, any ? val : LW_PENDING,
				    spin);
	} while (!lw_mutex_steal(me->word));
	return true;
}

/* Acquire a mutex that another thread had a moment ago. False if the wait limit was reached. */
static lw_noinline bool lw_mutex_contend(struct lw_mutex *mutex, const struct lw_wait_limit *limit)
{
	union lw_word *word = &mutex->word;
	struct lw_mutex_waiter me = {.word = word, .limit = limit};
	enum lw_mutex_outcome outcome = LW_MUTEX_ACQUIRED;
	struct lw_own_node own;

	me.spin = lw_waiters_park() ? lw_spin_budget((uint32_t)lw_tunable(mutex_spin)) : UINT32_MAX;
	me.slot = lw_slot_enter();
	if (!me.slot || lw_mutex_compete(&me)) {
		lw_slot_leave(me.slot);
		return me.slot || lw_mutex_nodeless(mutex, limit);
	}
	if (lw_node_take(limit, &own)) {
		me.tail = own.tail;
		me.node = me.at = own.node;
		me.self = lw_node_queue_waiters(word, me.tail);
		outcome = lw_mutex_queue(&me);
		if (outcome == LW_MUTEX_ABANDONED)
			lw_slot_leave(me.slot);
		else
			lw_node_return(&own);
	}
	lw_slot_leave(me.slot);
	/* Did we leave a queue that does not move? Then arrive once more. */
	if (lw_constant(outcome == LW_MUTEX_ABANDONED && !lw_limit_reached(limit), false))
		return lw_mutex_steal(word) || lw_mutex_contend(mutex, limit);
	return me.tail ? outcome == LW_MUTEX_ACQUIRED : lw_mutex_nodeless(mutex, limit);
}

bool lw_mutex_lock_limited(struct lw_mutex *mutex, const struct lw_wait_limit *limit)
{
	bool acquired = lw_mutex_steal(&mutex->word) || lw_mutex_contend(mutex, limit);

	if (acquired)
		lw_slice_request();
	return acquired;
}

void lw_mutex_lock_slow(struct lw_mutex *mutex)
{
	if (!lw_mutex_steal(&mutex->word))
		lw_mutex_contend(mutex, NULL);
}

/*
 * The queue head sleeps. Wake it, unless a pending waiter runs, which takes the mutex. But a head
 * that starves, or one in LW_MUTEX_PASSES, is woken all the same. In the child of a fork the
 * pending waiter may be one that did not survive. The head is taken out of the table
 * before the release, because mutex and node may be gone after it. If the head wakes by itself and
 * falls asleep again meanwhile, it is in the table once more.
 */
void lw_mutex_unlock_slow(struct lw_mutex *mutex)
{
	union lw_word *word = &mutex->word;
	uint16_t seen = lw_field_load(word, locked_pending, relaxed);
	struct lw_node *head = NULL;
	uint32_t slot = 0;

	for (;;) {
		bool wake = (seen & LW_HEAD_ASLEEP) &&
			    (!(seen & LW_PENDING) || lw_mutex_is_starved(seen) || lw_is_forked() ||
			     lw_chance(1, LW_MUTEX_PASSES));
		uint16_t next = (uint16_t)(seen & ~(wake ? LW_HEAD_ASLEEP : LW_LOCKED));
		struct lw_node *found;

		/* ASLEEP: 1 -> 0; or (*,*,1) -> (*,*,0) */
		if (!lw_field_try_cmpxchg(word, locked_pending, &seen, next, acq_rel))
			continue;
		if (!wake)
			break;
		if (lw_mutex_is_starved(seen))
			lw_note_time(&lw_parked_first(word)->since, lw_timestamp());
		seen = next;
		found = lw_unlock_head(word, &slot);
		if (found)
			head = found;
	}
	if (head)
		lw_wake(head, slot);
}

LW_DESCRIBE_LIMITED(mutex, struct lw_mutex,
		    .summary = "the mutex: spins, parks, and keeps to NUMA nodes; take this one",
		    .traits = LW_TAIL_WORD | LW_MUTEX_WORD | LW_NUMA_AWARE,
		    .tunables = "mutex_ pv_latencies",
		    .origin = "Lockworks; cohort locks of 2012, HQ-spinlock, Long's pvqspinlock");
