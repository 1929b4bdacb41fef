/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The queue of the locks whose waiters halt: they give up their CPU, and are kicked
 * when it is worth running again. And of those that may be stolen from the queue.
 *
 * The lock word's `locked` is more than a bit here:
 *
 *   0  free
 *   1  LW_LOCKED     held
 *   3  LW_SLOW       held; the queue head is halted, and in the table of parked heads
 *   2  LW_UNLOCKING  the holder is about to release it, and takes the head out of the table
 *
 *              acquire                      head halts
 *   (*,*,0) ------------> (*,*,1) ----------------------------> (*,*,3)
 *      ^        unlock       |     <-- head was woken early --     |
 *      |<--------------------'                                     | unlock
 *      `----------------------------- (*,*,2) <--------------------'
 *                       kick the head
 *
 * `pending` says that the lock is not to be stolen by those who arrive: one who
 * waits for it without a queue node, or the queue head, has set it. It is advice: the
 * lock is acquired by a compare-and-swap that finds `locked` 0 and clears it, always.
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
 *   ABANDONED   was WAITING or HALTED_HEAD, and has given up: whoever would hand over to it, or
 *               kick it, takes it out of the queue and gives its slot back
 *
 * All changes to a queue but arrival are made by the holder of the lock: the head that has
 * it hands over before it returns, one that steals it leaves the queue before it returns, and
 * who unlocks it clears away a head that gave up. So neighbours never leave at a time.
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

/* Looks between two at the waiter before. */
#define LW_PREV_CHECK 256
/* The head's successor looks at the lock so often, the one behind it half as often, and so on. */
#define LW_STEAL_CHECK 8
#ifndef LW_PLACES
#define LW_PLACES 8
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
	bool latencies;	     /* measure how long kicks and wake-ups take */
	uint32_t kick_ahead; /* how many waiters behind the head are kicked with it */
	uint32_t spin;	     /* looks before halting */
	uint32_t claim;	     /* after so many halts in vain the head forbids stealing */
};

#define LW_NEVER_CLAIM UINT32_MAX

/* Without a queue node */

/* The word when the lock is free, or is still held after so many looks. */
static inline uint32_t lw_halting_watch(union lw_word *lock, uint32_t looks)
{
	/* LW_LOCKED is a bit of LW_SLOW, too */
	uint32_t val = lw_await_ne_bounded(&lock->val, LW_LOCKED, LW_LOCKED, looks);

	if ((val & LW_LOCKED_MASK) == LW_UNLOCKING)
		val = lw_await_ne(&lock->val, LW_LOCKED_MASK, LW_UNLOCKING, relaxed);
	return val;
}

static lw_always_inline bool lw_halting_arrive(union lw_word *lock, struct lw_halting how)
{
	uint32_t val = lw_load(&lock->val, relaxed);
	uint16_t pending = LW_PENDING;

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
		if (!(val & LW_LOCKED_MASK) &&
		    lw_field_try_cmpxchg(lock, locked_pending, &pending, LW_LOCKED, acquire)) {
			lw_count(pending_acquisitions);
			return true;
		}
	}
	/* (*,1,*) -> (*,0,*) */
	lw_fetch_and(&lock->val, ~LW_PENDING, relaxed);
	return false;
}

/* No queue node to be had, or none that may be left in the queue. */
static inline bool lw_halting_nodeless(union lw_word *lock, const struct lw_patience *patience,
				       struct lw_halting how)
{
	lw_count(nodeless_acquisitions);
	while (!lw_word_steal(lock, lw_load(&lock->val, relaxed))) {
		if (lw_gives_up(patience))
			return false;
		lw_await_ne_bounded(&lock->val, LW_LOCKED, LW_LOCKED, how.spin);
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
			/* (*,*,1) -> (*,*,3) */
			lw_field_store(lock, locked, LW_SLOW, relaxed);
			/* HALTED -> HALTED_HEAD */
			if (lw_try_cmpxchg(&node->locked, &state, LW_NODE_HALTED_HEAD, release))
				return true;
			/* It has woken: (*,*,3) -> (*,*,1) */
			lw_field_store(lock, locked, LW_LOCKED, relaxed);
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
		next = lw_await_ne(&node->next, ~(uintptr_t)0, 0, dependency);
	return next;
}

/* Make the first from `node` on that has not given up the head of the queue; clear away others. */
static lw_always_inline void lw_halting_pass(union lw_word *lock, struct lw_node *node, bool hold,
					     struct lw_halting how)
{
	/* (*,0,*) -> (*,1,*): nobody overtakes the new head, not even while it wakes up */
	if (node && !how.claim)
		lw_fetch_or(&lock->val, LW_PENDING, relaxed);
	while (node && !lw_make_head(lock, node, hold, how)) {
		uint32_t tail = lw_load(&node->tail, relaxed);
		struct lw_node *next = lw_halting_next(lock, node, tail);

		/* (0,1,*) -> (0,0,*) */
		if (!next && !how.claim)
			lw_fetch_and(&lock->val, ~LW_PENDING, relaxed);
		lw_store(&node->count, 0, release);
		lw_slot_reclaim(lw_tail_slot(tail));
		node = next;
	}
}

/*
 * We have stolen the lock, so only arrivals change the queue: leave it.
 *   prev <-> node <-> next   becomes   prev <-> next
 */
static lw_always_inline void lw_halting_leave(union lw_word *lock, uint32_t tail,
					      struct lw_node *node, struct lw_halting how)
{
	struct lw_node *prev, *next;

	if (lw_load(&node->locked, relaxed) != LW_NODE_WAITING) {
		/* Meanwhile we were made head. */
		lw_halting_pass(lock, lw_halting_next(lock, node, tail), true, how);
		return;
	}
	prev = lw_load(&node->prev, relaxed);
	next = lw_load(&node->next, dependency);
	if (!next) {
		uint16_t last = (uint16_t)(tail >> LW_TAIL_SHIFT);
		uint16_t left = (uint16_t)(lw_load(&prev->tail, relaxed) >> LW_TAIL_SHIFT);

		lw_store(&prev->next, NULL, relaxed);
		/* (node,*,*) -> (prev,*,*); release: who queues behind prev finds its next NULL */
		if (lw_field_try_cmpxchg(lock, tail, &last, left, release))
			return;
		next = lw_await_ne(&node->next, ~(uintptr_t)0, 0, dependency);
	}
	lw_store(&next->prev, prev, relaxed);
	lw_store(&prev->next, next, relaxed);
}

static inline struct lw_node *lw_next_halted(struct lw_node *node)
{
	do
		node = lw_load(&node->next, dependency);
	while (node && lw_load(&node->locked, relaxed) != LW_NODE_HALTED);
	return node;
}

/* The lock word was made (*,*,2). */
static lw_always_inline void lw_halting_unlock_slow(union lw_word *lock, struct lw_halting how)
{
	struct lw_node *kicked[1 + LW_KICK_AHEAD_MAX];
	uint32_t slots[1 + LW_KICK_AHEAD_MAX], kicks = 0;
	struct lw_node *head;

	/* LW_UNLOCKING, from the one who made it LW_SLOW */
	lw_field_load(lock, locked, acquire);
	head = lw_parked_take(lock);
	if (head) {
		uint32_t state = LW_NODE_HALTED_HEAD;

		lw_kick_begins(head, how);
		/* HALTED_HEAD -> HEAD */
		if (lw_try_cmpxchg(&head->locked, &state, LW_NODE_HEAD, release)) {
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
		} else {
			/* ABANDONED */
			lw_halting_pass(lock, head, false, how);
		}
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
	LW_END_ACQUIRED, /* and out of the queue */
	LW_END_GIVEN_UP, /* the node, and its slot with it, is no longer ours */
};

static lw_always_inline enum lw_halting_end
lw_halting_wait_turn(union lw_word *lock, uint32_t tail, struct lw_node *node, struct lw_node *prev,
		     const struct lw_patience *patience, struct lw_halting how)
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
		if (lw_gives_up(patience)) {
			/* WAITING -> ABANDONED */
			if (lw_slot_abandon(lw_tail_slot(tail),
					    lw_try_cmpxchg(&node->locked, &state, LW_NODE_ABANDONED,
							   relaxed)))
				return LW_END_GIVEN_UP;
			return LW_END_HEAD;
		}
		if (!how.halt)
			continue;
		/* WAITING -> HALTED */
		if (!lw_try_cmpxchg(&node->locked, &state, LW_NODE_HALTED, relaxed))
			return LW_END_HEAD;
		lw_count(halts_in_queue);
		lw_park(&node->locked, LW_NODE_HALTED, patience);
		state = LW_NODE_HALTED;
		/* Woken before our turn: HALTED -> WAITING */
		if (!lw_try_cmpxchg(&node->locked, &state, LW_NODE_WAITING, relaxed))
			return LW_END_HEAD;
		lw_count(spurious_wakeups);
	}
}

/* We are head, and may have been parked as such: be out of the table. */
static lw_always_inline void lw_head_woken(union lw_word *lock, struct lw_node *node,
					   struct lw_halting how)
{
	uint8_t slow = LW_SLOW;

	if (lw_load(&node->locked, acquire) == LW_NODE_HALTED_HEAD) {
		/* Not kicked: (*,*,3) -> (*,*,1) */
		if (lw_field_try_cmpxchg(lock, locked, &slow, LW_LOCKED, relaxed)) {
			lw_parked_take(lock);
			lw_store(&node->locked, LW_NODE_HEAD, relaxed);
			lw_count(spurious_wakeups);
			return;
		}
		/* Who unlocks is about to. */
		lw_await_eq(&node->locked, ~0u, LW_NODE_HEAD, acquire);
	}
	lw_kick_arrives(node, how);
}

/* Into the table with us, as what we are to be found there; false if the lock has become free. */
static lw_always_inline bool lw_head_enter_table(union lw_word *lock, struct lw_node *node,
						 uint32_t state)
{
	struct lw_parked_head *entry = lw_parked_insert(lock, node);
	uint8_t held = LW_LOCKED;

	if (!entry)
		return false;
	/* HEAD -> state */
	lw_store(&node->locked, state, relaxed);
	/* (*,*,1) -> (*,*,3) */
	if (lw_field_try_cmpxchg(lock, locked, &held, LW_SLOW, release))
		return true;
	lw_store(&node->locked, LW_NODE_HEAD, relaxed);
	lw_parked_remove(entry);
	return false;
}

/* The lock was seen free, as val: acquire it as the queue head, and leave the queue. */
static lw_always_inline bool lw_head_acquire(union lw_word *lock, uint32_t val, uint32_t tail,
					     struct lw_node *node, struct lw_halting how)
{
	uint16_t free = (uint16_t)(val & LW_PENDING);

	/* (head,*,0) -> (0,0,1): nobody else queues; release: we are out of the table */
	if ((val & LW_TAIL_MASK) == tail)
		return lw_try_cmpxchg(&lock->val, &val, LW_LOCKED, acq_rel);
	/* (*,*,0) -> (*,0,1) */
	if (!lw_field_try_cmpxchg(lock, locked_pending, &free, LW_LOCKED, acquire))
		return false;
	lw_halting_pass(lock, lw_halting_next(lock, node, tail), true, how);
	return true;
}

/* False if we have given up, and left the node and the slot behind. */
static lw_always_inline bool lw_halting_wait_head(union lw_word *lock, uint32_t tail,
						  struct lw_node *node,
						  const struct lw_patience *patience,
						  struct lw_halting how)
{
	uint32_t vain = 0;

	if (how.steal_queued)
		lw_store(&node->place, 0, relaxed);
	for (;;) {
		uint32_t val = lw_halting_watch(lock, how.spin);

		if (!(val & LW_LOCKED_MASK)) {
			if (lw_head_acquire(lock, val, tail, node, how))
				return true;
			continue;
		}
		/* (*,0,*) -> (*,1,*) */
		if (vain == how.claim && !(val & LW_PENDING))
			lw_fetch_or(&lock->val, LW_PENDING, relaxed);
		if (lw_gives_up(patience)) {
			/* (*,1,*) -> (*,0,*) */
			if (vain == how.claim)
				lw_fetch_and(&lock->val, ~LW_PENDING, relaxed);
			if (lw_slot_abandon(lw_tail_slot(tail),
					    lw_head_enter_table(lock, node, LW_NODE_ABANDONED)))
				return false;
		} else if (how.halt && lw_head_enter_table(lock, node, LW_NODE_HALTED_HEAD)) {
			lw_count(halts_at_head);
			lw_park(&node->locked, LW_NODE_HALTED_HEAD, patience);
			lw_head_woken(lock, node, how);
			if (vain < how.claim && how.claim != LW_NEVER_CLAIM)
				vain++;
		}
	}
}

/* True when the lock is ours, false if we have given up. */
static lw_always_inline bool lw_halting_queue(union lw_word *lock, uint32_t tail,
					      struct lw_node *node,
					      const struct lw_patience *patience,
					      struct lw_halting how)
{
	enum lw_halting_end end = LW_END_HEAD;
	uint32_t old;

	lw_store(&node->next, NULL, relaxed);
	lw_store(&node->locked, LW_NODE_WAITING, relaxed);
	lw_store(&node->tail, tail, relaxed);
	if (how.steal_queued)
		lw_store(&node->place, 0, relaxed);
	if (how.latencies)
		lw_store(&node->kicked_at, 0, relaxed);

	old = lw_word_xchg_tail(lock, tail);
	if (old && !lw_is_dead(lw_decode_tail(old))) {
		struct lw_node *prev = lw_decode_tail(old);

		if (how.steal_queued)
			lw_store(&node->prev, prev, relaxed);
		lw_store(&prev->next, node, release);
		end = lw_halting_wait_turn(lock, tail, node, prev, patience, how);
		if (end == LW_END_HEAD)
			lw_head_woken(lock, node, how);
	} else {
		lw_store(&node->locked, LW_NODE_HEAD, relaxed);
	}
	if (end == LW_END_HEAD && lw_halting_wait_head(lock, tail, node, patience, how))
		end = LW_END_ACQUIRED;
	if (end != LW_END_ACQUIRED) {
		lw_count(given_up);
		return false;
	}
	lw_count(queued_acquisitions);
	return true;
}

#endif
