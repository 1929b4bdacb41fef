/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The queue of the locks whose waiters halt: they give up their CPU, and are kicked
 * when it is worth running again. And of those that may be stolen from the queue.
 *
 * The lock word's `parked` says that the queue head is halted, and in the table of parked heads.
 * Until it is cleared nobody who sees it acquires the lock. Who clears it takes the head out: the
 * head, when it wakes by itself, or the one who unlocks.
 *
 *              acquire                    head halts
 *   (*,*,0) ------------> (*,*,1) --------------------------> parked (*,*,1)
 *      ^        unlock       |     <-- head wakes early --           |
 *      |<--------------------'                                       |
 *      `------------ (*,*,2) <-------------- unlock -----------------'
 *                       takes the head out and kicks it
 *
 * To unlock and to see parked is one atomic step. In user space it is a load and then a store,
 * since those who never halt would pay most for it (lw_release_is_split()). In between a head may
 * park, and is missed: parked (*,*,0), which nobody acquires. It looks for longer than such a store
 * takes, and sleeps no longer than it has slept before until it looks again: a 1-0 protocol (Dice
 * 2001).
 *
 * `pending` says that the lock is not to be stolen by those who arrive: one who
 * waits for it without a queue node, or the queue head, has set it. It is advice: the
 * lock is acquired by a compare-and-swap that finds `locked` 0, always.
 *
 * A waiter's `locked`:
 *
 *   WAITING --> HEAD            handed over by the holder, the head before it
 *      |  ^
 *      v  |
 *   HALTED ---> HEAD            the same, and kicks it
 *      |
 *      `------> HALTED_HEAD     the same, and puts it into the table: it is kicked at unlock
 *                 ^     |
 *          HEAD --'     `----> HEAD   kicked by the one who unlocks
 *
 *   ABANDONED   was WAITING, and has given up: whoever would hand over to it takes it out of the
 *               queue and gives its slot back
 *
 * One at a time changes a queue, but for arrivals: its head, which hands over when it has acquired
 * the lock or gives up; or a waiter that has stolen the lock and takes itself out. Where waiters
 * give up, a bit of the word is the lock of these two.
 *
 * A kick is a hint. Whoever wakes looks again, so one that comes late, or for another, is harmless.
 *
 * Promises: mutual exclusion; no lost waiter: a head that halts is in the table before
 * anyone can unlock past it; correct without a free queue node. Order: see the locks.
 */
#ifndef LW_HALTING_H
#define LW_HALTING_H

#include "parked_heads.h"
#include "queued.h"

#define LW_NODE_HALTED	    2
#define LW_NODE_HALTED_HEAD 3
#define LW_NODE_ABANDONED   4
/* user: of a thread that a fork has left behind */
#define LW_NODE_DEAD 5

/* Looks in which a release has surely come to be seen, save for a miracle. */
#define LW_SETTLE 32
/* Looks between two at the waiter before. */
#define LW_PREV_CHECK 256
/*
 * The head's successor looks at the lock so often, the one behind it half as often, and so on to
 * the fourth: where few of them run, it may be one of the last who finds the lock free.
 */
#define LW_STEAL_CHECK 8
#ifndef LW_PLACES
#define LW_PLACES 4
#endif
/* A queue head that was overtaken so often, while it ran, has tried in vain once. */
#ifndef LW_RACES
#define LW_RACES 1024
#endif
/* Looks of a head that has been overtaken, until it forbids that. */
#ifndef LW_RARE_LOOKS
#define LW_RARE_LOOKS 8
#endif
/* A head looks so far behind it for a waiter of its NUMA node. */
#ifndef LW_GROUP_REACH
#define LW_GROUP_REACH 16
#endif
/* Most waiters that are kicked ahead of their turn. */
#define LW_KICK_AHEAD_MAX 8

/* How a lock's waiters behave. */
struct lw_halting {
	bool steal;	     /* arrivals take a free lock, though others queue */
	bool steal_queued;   /* so do waiters, the more often the nearer to the head */
	bool pending;	     /* without a queue, wait for the lock with the pending bit */
	bool halt;	     /* waiters halt */
	bool kick_at_unlock; /* who is halted when made head sleeps on until the unlock */
	bool wait_early;     /* halt as soon as the waiter before has */
	bool linger_late;    /* arrivals linger only if they would queue behind one that halts */
	bool latencies;	     /* measure how long kicks and wake-ups take */
	uint32_t kick_ahead; /* how many waiters behind the head are kicked with it */
	/* so many waiters in a row may pass others for their NUMA node; not with steal_queued */
	uint32_t group;
	uint32_t linger; /* looks of one that arrives before it queues, if it may steal */
	uint32_t spin;	 /* looks before halting */
	uint32_t claim;	 /* after so many halts or watches in vain the head forbids stealing */
	/* after so many looks a head that runs forbids stealing until it halts; 0: it does not */
	uint32_t overtake;
};

#define LW_NEVER_CLAIM UINT32_MAX

/* Without a queue node */

/* The word when the lock is free, or is still held after so many looks. */
static inline uint32_t lw_halting_watch(union lw_word *lock, uint32_t looks)
{
	uint32_t val = lw_await_ne_backoff(&lock->val, LW_LOCKED, LW_LOCKED, looks);

	if ((val & LW_LOCKED_MASK) == LW_UNLOCKING)
		val = lw_await_ne_soon(&lock->val, LW_LOCKED_MASK, LW_UNLOCKING, relaxed);
	if (val & LW_QUEUE_LOCKED)
		val = lw_await_eq_soon(&lock->val, LW_QUEUE_LOCKED, 0, relaxed);
	return val;
}

static lw_always_inline bool lw_halting_lingers(uint32_t val, struct lw_halting how)
{
	if (!how.linger || (val & LW_PENDING))
		return false;
	return !how.linger_late ||
	       ((val & LW_TAIL_MASK) &&
		lw_hint(&lw_decode_tail(val)->locked, LW_NODE_ABANDONED + 1) >= LW_NODE_HALTED);
}

static lw_always_inline bool lw_halting_arrive(union lw_word *lock, struct lw_halting how)
{
	uint32_t val = lw_load(&lock->val, relaxed);

	if (lw_halting_lingers(val, how))
		val = lw_halting_watch(lock, how.linger);
	if (how.steal && lw_word_steal(lock, val)) {
		lw_count(steals_on_arrival);
		return true;
	}
	if (!how.pending || (val & (LW_TAIL_MASK | LW_PENDING)))
		return false;
	/* (*,0,*) -> (*,1,*) */
	val = lw_fetch_or(&lock->val, LW_PENDING, relaxed);
	if (val & LW_PENDING)
		return false;
	if (!(val & LW_TAIL_MASK)) {
		val = lw_halting_watch(lock, how.spin);
		/* (*,1,0) -> (*,0,1) */
		if (!(val & (LW_LOCKED_MASK | LW_PARKED)) && lw_word_acquire(lock, val)) {
			lw_count(pending_acquisitions);
			return true;
		}
	}
	/* (*,1,*) -> (*,0,*) */
	lw_fetch_and(&lock->val, ~LW_PENDING, relaxed);
	return false;
}

/* No queue node to be had, or none that may be left in the queue. */
static inline bool lw_halting_nodeless(union lw_word *lock, const struct lw_wait_limit *limit,
				       struct lw_halting how)
{
	lw_count(nodeless_acquisitions);
	while (!lw_word_steal(lock, lw_load(&lock->val, relaxed))) {
		if (lw_limit_reached(limit))
			return false;
		lw_pause_long();
		lw_halting_watch(lock, how.spin);
	}
	return true;
}

/* Kicks */

/* Whoever is kicked may have woken and gone already, so nothing of the node is touched. */
static lw_always_inline void lw_kick(struct lw_node *node, uint32_t slot, struct lw_halting how)
{
	uint64_t begun = how.latencies ? lw_timestamp() : 0;

	lw_unpark(&node->locked, slot);
	if (how.latencies)
		lw_count_by(kick_nanoseconds, lw_timestamp() - begun);
}

static lw_always_inline void lw_kick_begins(struct lw_node *node, struct lw_halting how)
{
	if (how.latencies)
		lw_store(&node->kicked_at, lw_timestamp(), relaxed);
}

/* In the node that was kicked, when it has woken. */
static lw_always_inline void lw_kick_arrives(struct lw_node *node, struct lw_halting how)
{
	uint64_t kicked_at = how.latencies ? lw_load(&node->kicked_at, relaxed) : 0;

	if (kicked_at) {
		lw_store(&node->kicked_at, 0, relaxed);
		lw_count(wakeups);
		lw_count_by(wakeup_nanoseconds, lw_timestamp() - kicked_at);
	}
}

/* The holder's part */

/* Make this waiter head of the queue; false if it has given up. `hold`: we unlock later. */
static lw_always_inline bool lw_make_head(union lw_word *lock, struct lw_node *node, bool hold,
					  struct lw_halting how)
{
	uint32_t state = lw_load(&node->locked, relaxed);

	while (state != LW_NODE_ABANDONED) {
		bool halted = state == LW_NODE_HALTED;
		uint32_t slot = halted ? lw_tail_slot(lw_load(&node->tail, relaxed)) : 0;
		struct lw_parked_head *entry = NULL;

		if (halted && hold && how.kick_at_unlock)
			entry = lw_parked_insert(lock, node);
		if (entry) {
			/* parked: 0 -> 1 */
			lw_field_fetch_or(lock, locked_pending, LW_PARKED, relaxed);
			/* HALTED -> HALTED_HEAD */
			if (lw_try_cmpxchg(&node->locked, &state, LW_NODE_HALTED_HEAD, release))
				return true;
			/* It has woken, parked: 1 -> 0 */
			lw_field_fetch_and(lock, locked_pending, (uint16_t)(0xffff ^ LW_PARKED),
					   relaxed);
			lw_parked_remove(entry);
			continue;
		}
		if (halted)
			lw_kick_begins(node, how);
		/* WAITING or HALTED -> HEAD */
		if (lw_try_cmpxchg(&node->locked, &state, LW_NODE_HEAD, release)) {
			if (halted) {
				lw_count(kicks_at_handoff);
				lw_kick(node, slot, how);
			}
			return true;
		}
	}
	return false;
}

/* Who is behind `node`; NULL if it is the last, then the queue is empty. */
static lw_always_inline struct lw_node *lw_halting_next(union lw_word *lock, struct lw_node *node,
							uint32_t tail)
{
	struct lw_node *next = lw_load(&node->next, dependency);
	uint16_t last = (uint16_t)(tail >> LW_TAIL_SHIFT);

	/* (node,*,*) -> (0,*,*); release: the head is out of the table */
	if (!next && !lw_field_try_cmpxchg(lock, tail, &last, 0, release))
		next = lw_await_ne_soon(&node->next, ~(uintptr_t)0, 0, dependency);
	return next;
}

/*
 * We are head, and leave the queue: make the first behind us that has not given up the head of it,
 * and clear away the others.
 */
static lw_always_inline void lw_halting_pass(union lw_word *lock, uint32_t tail,
					     struct lw_node *node, bool hold, struct lw_halting how)
{
	node = lw_halting_next(lock, node, tail);
	/* (*,0,*) -> (*,1,*): nobody is to overtake the new head, not even while it wakes up */
	if (node && !how.claim)
		lw_fetch_or(&lock->val, LW_PENDING, relaxed);
	while (node && !lw_make_head(lock, node, hold, how)) {
		struct lw_node *next;

		/* Abandoned: what the waiter did to its slot is before the next owner. */
		lw_fence(acquire);
		tail = lw_load(&node->tail, relaxed);
		next = lw_halting_next(lock, node, tail);
		lw_store(&node->count, 0, release);
		lw_slot_reclaim(lw_tail_slot(tail));
		node = next;
	}
	/* (0,1,*) -> (0,0,*) */
	if (!node && !how.claim)
		lw_fetch_and(&lock->val, ~LW_PENDING, relaxed);
}

/*
 * Take `node` out from behind `prev`: prev -> node -> next  becomes  prev -> next. Gives `next`,
 * NULL if it was the last.
 */
static lw_always_inline struct lw_node *lw_halting_unlink(union lw_word *lock, struct lw_node *prev,
							  struct lw_node *node)
{
	struct lw_node *next = lw_load(&node->next, dependency);

	if (!next) {
		uint16_t last = (uint16_t)(lw_load(&node->tail, relaxed) >> LW_TAIL_SHIFT);
		uint16_t left = (uint16_t)(lw_load(&prev->tail, relaxed) >> LW_TAIL_SHIFT);

		lw_store(&prev->next, NULL, relaxed);
		/* (node,*,*) -> (prev,*,*); release: who queues behind prev finds its next NULL */
		if (lw_field_try_cmpxchg(lock, tail, &last, left, release))
			return NULL;
		next = lw_await_ne_soon(&node->next, ~(uintptr_t)0, 0, dependency);
	}
	lw_store(&prev->next, next, relaxed);
	return next;
}

static inline void lw_halting_lock_queue(union lw_word *lock)
{
	/* queue: 0 -> 1; acquire: what the last one did to it */
	while (lw_field_fetch_or(lock, pending, LW_QUEUE_LOCKED >> 8, acquire) &
	       (LW_QUEUE_LOCKED >> 8))
		lw_await_eq_soon(&lock->val, LW_QUEUE_LOCKED, 0, relaxed);
}

static inline void lw_halting_unlock_queue(union lw_word *lock)
{
	/* queue: 1 -> 0 */
	lw_field_fetch_and(lock, pending, 0xff ^ LW_QUEUE_LOCKED >> 8, release);
}

/* We have stolen the lock: leave the queue. */
static lw_always_inline void lw_halting_leave(union lw_word *lock, uint32_t tail,
					      struct lw_node *node, struct lw_halting how)
{
	if (lw_limits_exist())
		lw_halting_lock_queue(lock);
	if (lw_load(&node->locked, relaxed) == LW_NODE_WAITING) {
		struct lw_node *prev = lw_load(&node->prev, relaxed);
		struct lw_node *next = lw_halting_unlink(lock, prev, node);

		if (next)
			lw_store(&next->prev, prev, relaxed);
	} else {
		/* Meanwhile we were made head. */
		lw_halting_pass(lock, tail, node, true, how);
	}
	if (lw_limits_exist())
		lw_halting_unlock_queue(lock);
}

/* The next that is halted, of the few behind `node`: meanwhile nobody has the lock. */
static inline struct lw_node *lw_next_halted(struct lw_node *node)
{
	for (uint32_t steps = 0; steps < LW_KICK_AHEAD_MAX; steps++) {
		node = lw_load(&node->next, dependency);
		if (!node || lw_load(&node->locked, relaxed) == LW_NODE_HALTED)
			return node;
	}
	return NULL;
}

/* After lw_word_release(): the head has still to be taken out of the table, then (*,*,2) ends. */
static lw_always_inline void lw_halting_unlock_slow(union lw_word *lock, struct lw_halting how)
{
	struct lw_node *kicked[1 + LW_KICK_AHEAD_MAX];
	uint32_t slots[1 + LW_KICK_AHEAD_MAX], kicks = 0;
	struct lw_node *head = lw_parked_take(lock);

	if (head) {
		lw_kick_begins(head, how);
		/* HALTED_HEAD -> HEAD */
		lw_store(&head->locked, LW_NODE_HEAD, release);
		lw_count(kicks_at_unlock);
		kicked[0] = head;
		kicks = 1;
		while (kicks <= how.kick_ahead && kicks <= LW_KICK_AHEAD_MAX) {
			struct lw_node *node = lw_next_halted(kicked[kicks - 1]);

			if (!node)
				break;
			kicked[kicks++] = node;
			lw_count(kicks_ahead);
		}
		for (uint32_t i = 0; i < kicks; i++)
			slots[i] = lw_tail_slot(lw_load(&kicked[i]->tail, relaxed));
	}
	/* (*,*,2) -> (*,*,0) */
	lw_field_store(lock, locked, 0, release);
	for (uint32_t i = 0; i < kicks; i++)
		lw_kick(kicked[i], slots[i], how);
}

/* A waiter's part */

/* What watching came to. */
enum lw_halting_turn {
	LW_TURN_LONG, /* it takes so long that we had better halt */
	LW_TURN_HEAD,
	LW_TURN_STOLEN, /* we have the lock */
};

static inline void lw_count_steal(uint32_t place)
{
	if (place <= 1)
		lw_count(steals_behind_head);
	else if (place == 2)
		lw_count(steals_third);
	else if (place == 3)
		lw_count(steals_fourth);
	else
		lw_count(steals_further_back);
}

/* Watch our node for as long as it is worth. */
static lw_always_inline enum lw_halting_turn lw_halting_spin(union lw_word *lock,
							     struct lw_node *node,
							     struct lw_node *prev,
							     struct lw_halting how)
{
	uint32_t left = how.spin;

	do {
		uint32_t place = 0, looks = left;

		if (how.wait_early && looks > LW_PREV_CHECK)
			looks = LW_PREV_CHECK;
		if (how.steal_queued) {
			prev = lw_load(&node->prev, relaxed);
			place = lw_hint(&prev->place, LW_PLACES) + 1;
			lw_store(&node->place, place, relaxed);
			if (looks > (uint32_t)LW_STEAL_CHECK << place)
				looks = (uint32_t)LW_STEAL_CHECK << place;
		}
		if (lw_await_ne_bounded(&node->locked, ~0u, LW_NODE_WAITING, looks) !=
		    LW_NODE_WAITING)
			return LW_TURN_HEAD;
		if (how.steal_queued && lw_word_steal(lock, lw_load(&lock->val, relaxed))) {
			lw_count_steal(place);
			return LW_TURN_STOLEN;
		}
		if (how.wait_early &&
		    lw_hint(&prev->locked, LW_NODE_ABANDONED + 1) >= LW_NODE_HALTED) {
			lw_count(halts_early);
			return LW_TURN_LONG;
		}
		left -= looks;
	} while (left);
	return LW_TURN_LONG;
}

enum lw_halting_end {
	LW_END_HEAD,
	LW_END_ACQUIRED,  /* and out of the queue */
	LW_END_ABANDONED, /* the node, and its slot with it, is no longer ours */
};

static lw_always_inline enum lw_halting_end
lw_halting_wait_turn(union lw_word *lock, uint32_t tail, struct lw_node *node, struct lw_node *prev,
		     const struct lw_wait_limit *limit, struct lw_halting how)
{
	for (;;) {
		enum lw_halting_turn turn = lw_halting_spin(lock, node, prev, how);
		uint32_t state = LW_NODE_WAITING;

		if (turn == LW_TURN_HEAD)
			return LW_END_HEAD;
		if (turn == LW_TURN_STOLEN) {
			lw_halting_leave(lock, tail, node, how);
			return LW_END_ACQUIRED;
		}
		if (lw_limit_reached(limit)) {
			/* WAITING -> ABANDONED; release: all that we did to the slot */
			if (lw_slot_abandon(lw_tail_slot(tail),
					    lw_try_cmpxchg(&node->locked, &state, LW_NODE_ABANDONED,
							   release)))
				return LW_END_ABANDONED;
			return LW_END_HEAD;
		}
		if (!how.halt)
			continue;
		/* WAITING -> HALTED */
		if (!lw_try_cmpxchg(&node->locked, &state, LW_NODE_HALTED, relaxed))
			return LW_END_HEAD;
		lw_count(halts_in_queue);
		lw_park(&node->locked, LW_NODE_HALTED, limit);
		state = LW_NODE_HALTED;
		/* Woken before our turn: HALTED -> WAITING */
		if (!lw_try_cmpxchg(&node->locked, &state, LW_NODE_WAITING, relaxed))
			return LW_END_HEAD;
		lw_count(spurious_wakeups);
	}
}

/* parked: 1 -> 0, with us out of the table; false if the one who unlocks was first. */
static lw_always_inline bool lw_head_leave_table(union lw_word *lock)
{
	/* acquire: the table, from the holder who put us there */
	if (!(lw_field_fetch_and(lock, locked_pending, (uint16_t)(0xffff ^ LW_PARKED), acquire) &
	      LW_PARKED))
		return false;
	lw_parked_take(lock);
	return true;
}

/* We are head, and may have been parked as such: be out of the table. */
static lw_always_inline void lw_head_woken(union lw_word *lock, struct lw_node *node,
					   struct lw_halting how)
{
	if (lw_load(&node->locked, acquire) == LW_NODE_HALTED_HEAD) {
		if (lw_head_leave_table(lock)) {
			lw_store(&node->locked, LW_NODE_HEAD, relaxed);
			lw_count(spurious_wakeups);
			return;
		}
		/* Who unlocks is about to. */
		lw_await_eq_soon(&node->locked, ~0u, LW_NODE_HEAD, acquire);
	}
	lw_kick_arrives(node, how);
}

/* The lock is free, and who released it did not see that we are parked: we no longer are. */
static lw_always_inline bool lw_head_is_missed(union lw_word *lock, struct lw_node *node)
{
	if (!lw_release_is_split() ||
	    lw_await_ne_bounded(&lock->val, LW_LOCKED_MASK, LW_LOCKED, LW_SETTLE) &
		    LW_LOCKED_MASK ||
	    !lw_head_leave_table(lock))
		return false;
	lw_store(&node->locked, LW_NODE_HEAD, relaxed);
	return true;
}

/* Into the table with us; false if the lock has become free. */
static lw_always_inline bool lw_head_enter_table(union lw_word *lock, struct lw_node *node)
{
	struct lw_parked_head *entry = lw_parked_insert(lock, node);
	uint16_t seen = LW_LOCKED;

	if (!entry)
		return false;
	/* HEAD -> HALTED_HEAD */
	lw_store(&node->locked, LW_NODE_HALTED_HEAD, relaxed);
	/* (*,*,1), parked: 0 -> 1 */
	while (!lw_field_try_cmpxchg(lock, locked_pending, &seen, seen | LW_PARKED, release))
		if (!(seen & LW_LOCKED)) {
			lw_store(&node->locked, LW_NODE_HEAD, relaxed);
			lw_parked_remove(entry);
			return false;
		}
	return !lw_head_is_missed(lock, node);
}

/* The lock was seen free, as val: acquire it as the queue head, and leave the queue. */
static lw_always_inline bool lw_head_acquire(union lw_word *lock, uint32_t val, uint32_t tail,
					     struct lw_node *node, struct lw_halting how)
{
	/* (head,*,0) -> (0,0,1): nobody else queues; release: we are out of the table */
	if ((val & LW_TAIL_MASK) == tail)
		return lw_try_cmpxchg(&lock->val, &val, LW_LOCKED, acq_rel);
	/* (*,*,0) -> (*,0,1) */
	if (!lw_word_acquire(lock, val))
		return false;
	lw_halting_pass(lock, tail, node, true, how);
	return true;
}

/*
 * Until we are kicked, or `limit` ends: true. If a kick may be missed, also until the lock is
 * seen to be free.
 */
static inline bool lw_head_sleep(union lw_word *lock, struct lw_node *node,
				 const struct lw_wait_limit *limit)
{
	uint32_t naps = 0;

	do {
		naps += lw_park_bounded(&node->locked, LW_NODE_HALTED_HEAD, limit, naps);
		if (lw_load(&node->locked, relaxed) != LW_NODE_HALTED_HEAD)
			return false;
		if (lw_limit_reached(limit))
			return true;
	} while (lw_release_is_split() && (lw_load(&lock->val, relaxed) & LW_LOCKED));
	return false;
}

/*
 * We are head, and wait: put the first waiter behind us that runs and is of our NUMA node before
 * the others, so that it has the lock after us. Whom it passes waits for how.group such waiters at
 * most. node -> first -> ... -> found -> ...   becomes   node -> found -> first -> ...
 */
static lw_always_inline void lw_head_group(union lw_word *lock, struct lw_node *node,
					   struct lw_halting how)
{
	struct lw_node *first = lw_load(&node->next, dependency), *prev = first, *found;
	uint16_t here = lw_load(&node->numa_node, relaxed);
	uint32_t run = lw_load(&node->run, relaxed);

	if (!first || run >= how.group || lw_load(&first->numa_node, relaxed) == here)
		return;
	for (uint32_t reach = 1; reach < LW_GROUP_REACH; reach++) {
		found = lw_load(&prev->next, dependency);
		if (!found)
			return;
		if (lw_load(&found->numa_node, relaxed) == here &&
		    lw_load(&found->locked, relaxed) == LW_NODE_WAITING) {
			lw_halting_unlink(lock, prev, found);
			lw_store(&found->next, first, relaxed);
			lw_store(&found->run, run + 1, relaxed);
			lw_store(&node->next, found, relaxed);
			lw_count(waiters_grouped);
			return;
		}
		prev = found;
	}
}

/* We give up. */
static lw_always_inline void lw_head_leave(union lw_word *lock, uint32_t tail, struct lw_node *node,
					   struct lw_halting how)
{
	if (how.steal_queued)
		lw_halting_lock_queue(lock);
	/* Who has kicked us was seen to be done with our node. */
	lw_fence(acquire);
	lw_halting_pass(lock, tail, node, false, how);
	if (how.steal_queued)
		lw_halting_unlock_queue(lock);
}

/* (*,*,*) -> (*,1,*): nobody is to overtake us any more */
static lw_always_inline void lw_head_claim(union lw_word *lock)
{
	lw_fetch_or(&lock->val, LW_PENDING, relaxed);
}

/* (*,1,*) -> (*,0,*) */
static lw_always_inline void lw_head_unclaim(union lw_word *lock)
{
	lw_fetch_and(&lock->val, ~LW_PENDING, relaxed);
}

/*
 * We are head, and run: others may overtake us for a while, and no longer. Who loses a race knows
 * that the lock is hot, and looks seldom from then on: each look takes the line from the owner.
 * True if the lock is ours.
 */
static lw_always_inline bool lw_head_be_overtaken(union lw_word *lock, uint32_t tail,
						  struct lw_node *node, struct lw_halting how)
{
	for (uint32_t looks = 0; looks <= LW_RARE_LOOKS; looks++) {
		uint32_t val = lw_halting_watch(lock, looks ? 1 : how.overtake);
		bool lost = !(val & LW_LOCKED_MASK);

		if (lost && lw_head_acquire(lock, val, tail, node, how))
			return true;
		if (!looks && !lost)
			break;
		for (uint32_t i = 0; i < how.overtake / LW_RARE_LOOKS; i++)
			lw_pause();
	}
	lw_head_claim(lock);
	return false;
}

/* False if we have given up, and left the queue. */
static lw_always_inline bool lw_halting_wait_head(union lw_word *lock, uint32_t tail,
						  struct lw_node *node,
						  const struct lw_wait_limit *limit,
						  struct lw_halting how)
{
	bool over = false, claimed = false;
	uint32_t vain = 0, races = 0;

	if (how.steal_queued)
		lw_store(&node->place, 0, relaxed);
	for (;;) {
		uint32_t val;
		bool lost;

		if (how.group && (lw_load(&lock->val, relaxed) & LW_LOCKED))
			lw_head_group(lock, node, how);
		if (how.overtake && !claimed) {
			if (lw_head_be_overtaken(lock, tail, node, how))
				return true;
			claimed = true;
		}
		val = lw_halting_watch(lock, how.spin);
		lost = !(val & LW_LOCKED_MASK);

		if (lost && lw_head_acquire(lock, val, tail, node, how))
			return true;
		if (vain == how.claim && !(val & LW_PENDING))
			lw_head_claim(lock);
		if (over || lw_limit_reached(limit)) {
			if (claimed || vain == how.claim)
				lw_head_unclaim(lock);
			lw_head_leave(lock, tail, node, how);
			return false;
		}
		if (lost) {
			races = (races + 1) % LW_RACES;
			if (races)
				continue;
		}
		if (how.halt && !lost) {
			if (claimed && vain != how.claim) {
				lw_head_unclaim(lock);
				claimed = false;
			}
			if (!lw_head_enter_table(lock, node))
				continue;
			lw_count(halts_at_head);
			over = lw_head_sleep(lock, node, limit);
			lw_head_woken(lock, node, how);
		}
		if (vain < how.claim && how.claim != LW_NEVER_CLAIM)
			vain++;
	}
}

static lw_always_inline enum lw_queue_end lw_halting_queue(union lw_word *lock, uint32_t tail,
							   struct lw_node *node,
							   const struct lw_wait_limit *limit,
							   struct lw_halting how)
{
	enum lw_halting_end end = LW_END_HEAD;
	uint32_t old;

	lw_store(&node->next, NULL, relaxed);
	lw_store(&node->locked, LW_NODE_WAITING, relaxed);
	lw_store(&node->tail, tail, relaxed);
	if (how.steal_queued)
		lw_store(&node->place, 0, relaxed);
	if (how.group) {
		lw_store(&node->numa_node, lw_numa_node(), relaxed);
		lw_store(&node->run, 0, relaxed);
	}
	if (how.latencies)
		lw_store(&node->kicked_at, 0, relaxed);

	old = lw_word_xchg_tail(lock, tail);
	if (old && !lw_is_dead(lw_decode_tail(old))) {
		struct lw_node *prev = lw_decode_tail(old);

		if (how.steal_queued)
			lw_store(&node->prev, prev, relaxed);
		lw_store(&prev->next, node, release);
		end = lw_halting_wait_turn(lock, tail, node, prev, limit, how);
		if (end == LW_END_HEAD)
			lw_head_woken(lock, node, how);
	} else {
		lw_store(&node->locked, LW_NODE_HEAD, relaxed);
	}
	if (end == LW_END_ABANDONED ||
	    (end == LW_END_HEAD && !lw_halting_wait_head(lock, tail, node, limit, how))) {
		lw_count(waits_cancelled);
		return end == LW_END_ABANDONED ? LW_QUEUE_ABANDONED : LW_QUEUE_LEFT;
	}
	lw_count(queued_acquisitions);
	return LW_QUEUE_ACQUIRED;
}

#endif
