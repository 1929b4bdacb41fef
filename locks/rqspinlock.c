// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * The resilient queued spinlock: the queued spinlock, whose acquisitions can fail. It is for code
 * of which nobody knows how it nests its locks, such as programs that a kernel loads. Such code may
 * wait for itself (AA), or two threads may wait for each other (ABBA). The word is that of
 * qspinlock.c. The differences:
 *
 *   enter     a thread enters the lock in its table of held locks (held_locks.h), and tries the
 *             fast path
 *   AA        before it waits, it looks for an earlier entry of the lock in its own table
 *   ABBA      the pending waiter and the queue head poll the word; from time to time they look for
 *             a thread that has the lock and waits for one of ours
 *   timeout   the same two waiters give up after `rqspinlock_timeout` milliseconds
 *   remove    a thread that fails removes its entry; a holder does so after the release
 *
 * A waiter that fails takes back what it has put into the word:
 *
 *   pending waiter     (*,1,*) ---- clears its bit ------------------------> (*,0,*)
 *   head, the last     (tail,*,*) - takes the tail out --------------------> (0,*,*)
 *   head, ABBA         (n,*,*) ---- n is queue head
 *   head, timeout      (n,*,*) ---- n is told to give up too, and so on to the end of the queue
 *
 * After a timeout the queue is taken down as a whole, because each further head would wait as long
 * for the same holder. After a deadlock only the head fails: its successors need not be part of it.
 *
 * A thread may be interrupted at any operation by code that acquires locks. If the thread has a
 * queue node in use, the interruption does not queue: it tries until the word is 0, and looks for
 * deadlocks. Otherwise it might wait behind a head that waits for the interrupted code to play its
 * part in another queue, and no waiter behind a head looks for deadlocks. A thread without a free
 * node does the same. A thread without a slot has no table, so only the timeout ends its deadlocks.
 *
 * Limit: a waiter behind a head does not look either. If two threads wait for each other, each
 * behind a head that has no other lock, the deadlock ends by the timeout of a head. That takes four
 * threads.
 *
 * Promises: mutual exclusion; FIFO among queued waiters; no waiter waits for ever, if locks are
 * held for a bounded time; a thread that waits for itself fails at once; of two threads that wait
 * for each other, one fails as soon as it looks, if it is pending waiter, queue head or without a
 * node; the table is as before after a failure and after an unlock.
 *
 * Why each AA is found: a lock is in the table from before the compare-and-swap that acquires it
 * until after the store that releases it, and from before a waiter shows in the word until after it
 * does not. An interruption therefore finds it. AA is also reported, if the lock is busy, to an
 * interruption between the entry and the first operation on the word, or between the release and
 * the removal: the interrupted code has the entry, though not the lock.
 *
 * Why ABBA is found: both threads have entered both locks before they wait, and entries stay while
 * they wait. Of two threads that wait for each other, one looks last, and sees them. ABBA is also
 * reported if the other thread has given up or released a lock meanwhile, but never unless it
 * has tried to acquire one of ours while it had the lock that we want.
 *
 * Orders: as in qspinlock.c, but the last waiter in the queue releases when it takes the tail out.
 * Otherwise a thread that then acquires the free word might see the tail gone, but `locked` as it
 * was before earlier heads held the lock, and would not see their accesses. A pending waiter that
 * gives up need not release: since it set its bit, by an operation on the whole word, nobody has
 * acquired the lock. The tables decide only who fails; held_locks.h has their orders.
 */
#include "held_locks.h"
#include "lock_type.h"
#include "pending_bit.h"
#include "queue_slot.h"
#include "rqspinlock.h"

/* The value of `locked` in a queue node whose predecessor has reached its timeout. */
#define LW_NODE_EXPIRED 7
/* lw_rq_pending(): the caller has to queue. */
#define LW_RQ_QUEUE 4
/* The polls between two looks at tables and clock. */
#define LW_RQ_POLLS 1024

static inline uint64_t lw_rq_deadline(void)
{
	return lw_deadline(lw_tunable(rqspinlock_timeout));
}

/* Does a wait for the lock fail? LW_RQ_ACQUIRED: not now. */
static int lw_rq_look(struct lw_rqspinlock *lock, const struct lw_held *held, uint64_t deadline)
{
	if (lw_held_by_waiter(held, lock))
		return LW_RQ_ABBA;
	return lw_is_past(deadline) ? LW_RQ_TIMEOUT : LW_RQ_ACQUIRED;
}

/* Wait until the bits of `mask` are clear in the word, which is then *val. */
static int lw_rq_await(struct lw_rqspinlock *lock, const struct lw_held *held, uint32_t mask,
		       uint32_t *val)
{
	uint64_t deadline = lw_rq_deadline();

	while (*val = lw_load(&lock->word.val, acquire), *val & mask) {
		uint32_t seen = *val & mask;
		int failure;

		if (!(lw_await_ne_bounded(&lock->word.val, mask, seen, LW_RQ_POLLS) & mask))
			continue;
		failure = lw_rq_look(lock, held, deadline);
		if (failure)
			return failure;
	}
	return LW_RQ_ACQUIRED;
}

/* As lw_pending_lock(): wait with the pending bit, or LW_RQ_QUEUE. */
static int lw_rq_pending(struct lw_rqspinlock *lock, const struct lw_held *held, uint32_t val)
{
	union lw_word *word = &lock->word;
	int result = LW_RQ_ACQUIRED;

	if (lw_is_forked() || val & LW_TAIL_MASK)
		return LW_RQ_QUEUE;
	/* (0,1,0): the pending waiter is about to take over */
	if (val == LW_PENDING)
		val = lw_await_ne_bounded(&word->val, ~0u, LW_PENDING, LW_PENDING_LOOPS);
	if (val & (LW_TAIL_MASK | LW_PENDING))
		return LW_RQ_QUEUE;

	/* (0,0,*) -> (0,1,*) */
	val = lw_fetch_or(&word->val, LW_PENDING, acquire);
	if (val & (LW_TAIL_MASK | LW_PENDING)) {
		/* We have set the bit, but there is a queue: (n,1,*) -> (n,0,*) */
		if (!(val & LW_PENDING))
			lw_field_store(word, pending, 0, relaxed);
		return LW_RQ_QUEUE;
	}
	/* (*,1,1) -> (*,1,0) */
	if (val & LW_LOCKED_MASK)
		result = lw_rq_await(lock, held, LW_LOCKED_MASK, &val);
	if (result != LW_RQ_ACQUIRED) {
		/* (*,1,*) -> (*,0,*) */
		lw_field_store(word, pending, 0, relaxed);
		return result;
	}
	/* (*,1,0) -> (*,0,1) */
	lw_field_store(word, locked_pending, LW_LOCKED, relaxed);
	lw_count(pending_acquisitions);
	return LW_RQ_ACQUIRED;
}

/* Without a free queue node, or with one in use: try until nobody holds the lock or waits for it.
 */
static int lw_rq_spin(struct lw_rqspinlock *lock, const struct lw_held *held)
{
	uint64_t deadline = lw_rq_deadline();

	lw_count(nodeless_acquisitions);
	for (;;) {
		uint32_t val = 0;
		int failure;

		/* (0,0,0) -> (0,0,1) */
		if (lw_try_cmpxchg(&lock->word.val, &val, LW_LOCKED, acquire))
			return LW_RQ_ACQUIRED;
		if (!lw_await_ne_bounded(&lock->word.val, ~0u, val, LW_RQ_POLLS))
			continue;
		failure = lw_rq_look(lock, held, deadline);
		if (failure)
			return failure;
	}
}

/* Wait in the queue, with a node that has the tail `tail`. */
static int lw_rq_queue(struct lw_rqspinlock *lock, const struct lw_held *held, struct lw_node *node,
		       uint32_t tail)
{
	union lw_word *word = &lock->word;
	uint16_t last = (uint16_t)(tail >> LW_TAIL_SHIFT);
	int result = LW_RQ_ACQUIRED;
	struct lw_node *next;
	uint32_t prev, val;

	lw_node_init(node);
	prev = lw_word_xchg_tail(word, tail);
	if (prev && !lw_is_dead(lw_decode_tail(prev))) {
		lw_store(&lw_decode_tail(prev)->next, node, release);
		if (lw_mcs_wait(node) == LW_NODE_EXPIRED)
			result = LW_RQ_TIMEOUT;
		lw_count_handoff(lw_tail_slot(prev));
	}
	/* We are queue head. (*,*,*) -> (*,0,0): a holder or a pending waiter may be ahead of us */
	while (result == LW_RQ_ACQUIRED) {
		result = lw_rq_await(lock, held, lw_head_awaits(), &val);
		if (result != LW_RQ_ACQUIRED)
			break;
		lw_count(queued_acquisitions);
		if ((val & LW_TAIL_MASK) != tail) {
			/* (n,0,0) -> (n,0,1) */
			lw_field_store(word, locked, LW_LOCKED, relaxed);
			break;
		}
		/* (tail,0,0) -> (0,0,1), unless another thread has set the pending bit */
		if (lw_try_cmpxchg(&word->val, &val, LW_LOCKED, relaxed))
			return LW_RQ_ACQUIRED;
	}
	/* (tail,*,*) -> (0,*,*), if we give up and are the last */
	if (result != LW_RQ_ACQUIRED && lw_field_try_cmpxchg(word, tail, &last, 0, release))
		return result;
	next = lw_await_ne(&node->next, ~(uintptr_t)0, 0, dependency);
	lw_mcs_hand_over(next, result == LW_RQ_TIMEOUT ? LW_NODE_EXPIRED : LW_NODE_HEAD);
	return result;
}

/* Wait in the queue, or without a node. */
static int lw_rq_queue_or_spin(struct lw_rqspinlock *lock, const struct lw_held *held)
{
	struct lw_own_node own;
	int result;

	if (!lw_node_take(NULL, &own))
		return lw_rq_spin(lock, held);
	/* With the second node we have interrupted a waiter, for which others may wait. */
	if (own.index)
		result = lw_rq_spin(lock, held);
	else
		result = lw_rq_queue(lock, held, own.node, own.tail);
	lw_node_return(&own);
	return result;
}

/* The word was seen as `val`, not free. The lock is entered in `held`. */
static lw_noinline int lw_rq_slow(struct lw_rqspinlock *lock, struct lw_held *held, uint32_t val)
{
	int result = LW_RQ_AA;

	if (!lw_held_before(held, lock))
		result = lw_rq_pending(lock, held, val);
	if (result == LW_RQ_QUEUE)
		result = lw_rq_queue_or_spin(lock, held);
	if (result != LW_RQ_ACQUIRED)
		lw_held_remove(held, lock);
	return result;
}

/* Our own table. A thread may keep its slot once it has entered it. */
static inline struct lw_held *lw_rq_held(void)
{
	if (lw_unlikely(!lw_own_held()))
		lw_slot_leave(lw_slot_enter());
	return lw_own_held();
}

int lw_rqspinlock_acquire(struct lw_rqspinlock *lock)
{
	struct lw_held *held = lw_held_add(lw_rq_held(), lock);
	uint32_t val = 0;

	/* (0,0,0) -> (0,0,1) */
	if (lw_try_cmpxchg(&lock->word.val, &val, LW_LOCKED, acquire))
		return LW_RQ_ACQUIRED;
	return lw_rq_slow(lock, held, val);
}

void lw_rqspinlock_lock(struct lw_rqspinlock *lock)
{
	while (lw_rqspinlock_acquire(lock) != LW_RQ_ACQUIRED)
		;
}

bool lw_rqspinlock_trylock(struct lw_rqspinlock *lock)
{
	struct lw_held *held = lw_held_add(lw_rq_held(), lock);

	if (lw_word_trylock(&lock->word))
		return true;
	lw_held_remove(held, lock);
	return false;
}

void lw_rqspinlock_unlock(struct lw_rqspinlock *lock)
{
	struct lw_held *held = lw_own_held();

	/* (*,*,1) -> (*,*,0) */
	lw_word_unlock(&lock->word);
	lw_held_remove(held, lock);
}

LW_DESCRIBE(rqspinlock, struct lw_rqspinlock,
	    .summary = "queued spinlock that detects deadlocks and whose waits end",
	    .traits = LW_FIFO | LW_SPINS | LW_TAIL_WORD | LW_RESILIENT, .tunables = "rqspinlock_",
	    .origin = "Dwivedi, Linux 6.15; written anew");
