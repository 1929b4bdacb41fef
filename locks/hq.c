// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * HQ-spinlock: the queued spinlock, with a queue for each NUMA node below the queue of the lock
 * word.
 *
 *   the word's queue   NUMA node 1 ----> NUMA node 2 ------> thread 7 --> NUMA node 0 <-- tail
 *                           |                 |                                |
 *   queues of NUMA     thread 4 (head)   thread 9 (leader)                thread 2 (leader)
 *   nodes              thread 5          thread 8                         thread 1
 *
 * A place in the word's queue belongs to a thread, as in qspinlock, or to the queue of a NUMA node.
 * The first waiter in the queue of a NUMA node is its leader. It takes a place in the word's queue
 * for all of them. When the place comes to the front, the leader becomes queue head. When it has
 * the lock, it makes the waiter behind it in the queue of its NUMA node queue head. So arrivals and
 * hand-overs stay within a NUMA node. When the fairness threshold is reached, or no waiter of the
 * NUMA node is left, the place is taken out of the word's queue, and the next one is served.
 *
 * The queue of a NUMA node is a queue node in that NUMA node's memory, found by hashing the lock's
 * address. `next` and `locked` are its place in the word's queue. `waiters` names the lock that
 * uses the queue, and the last waiter. The queue belongs to a lock from the first waiter to the
 * last:
 *
 * | state  | waiters   | in word's queue | transitions                                   |
 * |--------|-----------|-----------------|-----------------------------------------------|
 * | free   | 0         | no              | enter: 0 -> (lock,me), I am the leader        |
 * | led    | (lock,t)  | no              | place: the leader exchanges the word's tail   |
 * | placed | (lock,t)  | yes             | turn: the leader is made queue head           |
 * | first  | (lock,t)  | yes, as head    | pass: the next waiter is made queue head      |
 * |        |           |                 | leave: the place is out of the word's queue,  |
 * |        |           |                 | or about to be with its successor known; then |
 * |        | (lock,me) | no              |   (lock,me) -> 0, free, or                    |
 * |        | (lock,t)  | no              |   the next waiter is made leader, led         |
 *
 * In all states except free, join: (lock,t) -> (lock,me) adds a waiter. If another lock uses the
 * queue, or there is no queue, a waiter takes a place of its own. Invariants:
 *
 *   - The queue of a NUMA node is in the word's queue at most once. Only its leader places it, and
 *     only its head takes it out, before it is free or led again.
 *   - When it is out, no thread can reach its place: either it was the last and the tail has been
 *     cleared, or the link to its successor has been read.
 *   - `waiters` names a lock only while a thread waits for that lock or has just acquired it. So
 *     nothing remains of a lock whose memory is freed.
 *
 * The mode bit in the lock word only says to arriving threads whether they queue by NUMA node.
 * Places of both kinds are in one queue, so the mode may change at any time. It changes in the
 * compare-and-swap that takes the lock.
 *
 * The published lock has a list of node queues besides the word's queue, and uses one of the two at
 * a time. The one in use has to become empty before the lock changes to the other, and some waiters
 * notice the change late. docs/locks/hq.md says which further code that needs, and why none of it
 * is needed here.
 *
 * The states of the lock word are those of the queued spinlock (qspinlock.c).
 *
 * Promises: those of the queued spinlock, except that a waiter may be passed over: places are
 * served in the order in which they were taken, with up to the fairness threshold of hand-overs
 * each.
 *
 * Orders: those of the queued spinlock, and in the queue of a NUMA node:
 *
 *   - enter and join are a compare-and-swap of `waiters` that acquires and releases. release: the
 *     waiter's node is set up before the next one links to it. acquire: that next one sees it set
 *     up, and a leader that enters sees the place as its last user left it.
 *   - free is a compare-and-swap that releases, the partner of that last acquire.
 *   - `next` and `locked` are a release and acquire pair each, as in the word's queue. They carry
 *     `history` along, which is relaxed.
 *   - The queue head changes the mode by a relaxed compare-and-swap, since it has polled the word
 *     with acquire and no other thread can acquire the lock then.
 */
#include "hq.h"
#include "lock_type.h"
#include "node_queue.h"
#include "pending_bit.h"
#include "queue_slot.h"

/* `locked` of a waiter in the queue of a NUMA node: it is the leader, but has no place yet. */
#define LW_HQ_LEADER 2

/*
 * NUMA mode is faster than plain mode while at most one hand-over in LW_HQ_WORTH goes to another
 * NUMA node. If a NUMA node has only two or three threads, its place is soon taken out of the
 * word's queue, and that takes time of the holder.
 */
#define LW_HQ_WORTH 8

/* The hand-overs since the queue was last empty, as counted by the queue heads in turn. */
union lw_hq_history {
	uint64_t packed;
	struct {
		union {
			/* NUMA mode: those that are left before it is another place's turn. */
			uint16_t left;
			/*
			 * Plain mode: those within a NUMA node since the last one that `remote` has
			 * counted.
			 */
			uint16_t local;
		};
		/*
		 * Those since the last decision whether to keep the mode. In NUMA mode those within
		 * a place are added when its turn ends.
		 */
		uint16_t handoffs;
		/*
		 * Those of them that went to another NUMA node. In plain mode such a hand-over is
		 * counted only if enough local ones came before it.
		 */
		uint16_t remote;
		uint16_t numa_node : 15;
		uint16_t numa_mode : 1;
	};
};

/* A waiter, and its place. */
struct lw_hq_waiter {
	struct lw_node *node;
	struct lw_node *queue; /* of its NUMA node; NULL if it has a place of its own */
	uint64_t self;	       /* `waiters` of the queue, while we are the last */
	struct lw_node *place;
	uint32_t place_tail; /* the place as the word's tail */
	union lw_hq_history history;
};

enum lw_hq_role {
	LW_HQ_ALONE, /* has a place of its own */
	LW_HQ_LEADS, /* is first in the queue of its NUMA node, which has no place yet */
	LW_HQ_HEADS, /* is queue head */
};

/*
 * Join the queue of our NUMA node with `node`, which is `self` there, and wait until it is the
 * first.
 */
static lw_always_inline enum lw_hq_role lw_hq_join(struct lw_node *queue, uint64_t self,
						   struct lw_node *node)
{
	struct lw_node *prev = lw_node_queue_join(queue, self, node, UINT32_MAX);

	if (!prev)
		return LW_HQ_ALONE;
	if (prev == node)
		return LW_HQ_LEADS;
	return lw_mcs_wait(node) == LW_NODE_HEAD ? LW_HQ_HEADS : LW_HQ_LEADS;
}

static inline uint16_t lw_hq_sum(uint16_t a, uint64_t b)
{
	return b < (uint64_t)LW_HANDOFFS_MAX - a ? a + b : LW_HANDOFFS_MAX;
}

/* The hand-overs of a turn: after so many within one place, it is another place's turn. */
static inline uint16_t lw_hq_turn(void)
{
	return lw_hq_sum(0, lw_tunable(hqlock_fairness_threshold));
}

/* We hand over the head's role within our place. */
static lw_always_inline void lw_hq_count_local(union lw_hq_history *h)
{
	lw_count(local_handoffs);
	if (h->numa_mode) {
		h->left -= h->left > 0;
	} else {
		h->handoffs = lw_hq_sum(h->handoffs, 1);
		h->local = lw_hq_sum(h->local, 1);
	}
}

/* The turn of our place is over. */
static inline void lw_hq_end_turn(struct lw_hq_waiter *me)
{
	union lw_hq_history *h = &me->history;
	uint16_t turn = lw_hq_turn();

	if (!me->queue || !h->numa_mode || h->left > turn)
		return;
	h->handoffs = lw_hq_sum(h->handoffs, turn - h->left);
	lw_count_max(longest_local_run, turn - h->left);
}

/* The head's role was handed over to our place. */
static lw_always_inline void lw_hq_receive(struct lw_hq_waiter *me)
{
	union lw_hq_history h = {.packed = lw_load(&lw_hq_part(me->place)->history, relaxed)};
	bool remote = h.numa_node != me->history.numa_node;

	/* In NUMA mode, a waiter with a place of its own is no evidence for or against the mode. */
	if (me->queue || !h.numa_mode)
		h.handoffs = lw_hq_sum(h.handoffs, 1);
	if (h.numa_mode) {
		if (remote && me->queue)
			h.remote = lw_hq_sum(h.remote, 1);
		h.left = lw_hq_turn();
	} else if (!remote) {
		h.local = lw_hq_sum(h.local, 1);
	} else if (h.local >= lw_tunable(hqlock_local_handoffs_to_increase_remotes)) {
		h.remote = lw_hq_sum(h.remote, 1);
		h.local = 0;
	}
	if (remote)
		lw_count(remote_handoffs);
	else
		lw_count(local_handoffs);
	h.numa_node = me->history.numa_node;
	me->history = h;
}

/* Hand over the head's role. */
static lw_always_inline void lw_hq_hand_over(const union lw_hq_history *h, struct lw_node *next)
{
	lw_store(&lw_hq_part(next)->history, h->packed, relaxed);
	lw_mcs_hand_over(next, LW_NODE_HEAD);
}

static inline bool lw_hq_has_seen_enough(const union lw_hq_history *h)
{
	return h->handoffs > lw_tunable(hqlock_general_handoffs_turn_numa);
}

/*
 * Plain mode: is there enough contention across NUMA nodes? Each doubt, that is, each time that
 * NUMA mode was left because it was slower, doubles the number of hand-overs that this takes.
 */
static inline bool lw_hq_is_contended(const union lw_hq_history *h, uint32_t doubts)
{
	uint64_t handoffs = h->handoffs >> doubts / LW_HQ_DOUBT;

	return lw_hq_has_seen_enough(h) &&
	       (handoffs > lw_tunable(hqlock_general_handoffs_turn_numa) ||
		h->handoffs == LW_HANDOFFS_MAX) &&
	       h->remote >= lw_tunable(hqlock_remote_handoffs_turn_numa);
}

/* NUMA mode, when no other thread waits: should the mode be kept? */
static inline bool lw_hq_keeps_numa(const union lw_hq_history *h)
{
	return h->remote >= lw_tunable(hqlock_remote_handoffs_keep_numa) ||
	       lw_chance(lw_tunable(hqlock_probability_of_force_stay_numa), 10000);
}

/*
 * The service bits with which a thread that acquires the lock replaces those of `val`. `empty`: no
 * other thread waits.
 */
static lw_always_inline uint32_t lw_hq_service(uint32_t val, const union lw_hq_history *h,
					       bool empty)
{
	uint32_t same = val & LW_SERVICE_MASK, plain = same & ~LW_HQ_NUMA;
	uint32_t doubts = val & LW_HQ_DOUBTS;

	if (!(val & LW_HQ) || !lw_numa_aware(hq))
		return plain;
	if (!(val & LW_HQ_NUMA))
		return lw_hq_is_contended(h, doubts) ? same | LW_HQ_NUMA : same;
	if (empty)
		return lw_hq_keeps_numa(h) ? same : plain;
	/* After enough hand-overs: do they stay within NUMA nodes? If not, plain mode is faster. */
	if (!lw_hq_has_seen_enough(h))
		return same;
	if (h->remote <= h->handoffs / LW_HQ_WORTH)
		return same & ~LW_HQ_DOUBTS;
	return doubts < LW_HQ_DOUBTS ? plain + LW_HQ_DOUBT : plain;
}

static inline void lw_hq_count_mode(uint32_t before, uint32_t service)
{
	if (service & ~before & LW_HQ_NUMA)
		lw_count(numa_mode_entered);
	if (before & ~service & LW_HQ_NUMA)
		lw_count(numa_mode_left);
}

/* (t,0,0) -> (0,0,1): no other thread waits. False if the word is no longer `*val`. */
static lw_always_inline bool lw_hq_try_take_last(union lw_word *lock, uint32_t *val,
						 uint32_t service)
{
	uint32_t before = *val;

	if (!lw_try_cmpxchg(&lock->val, val, service | LW_LOCKED, acquire))
		return false;
	lw_hq_count_mode(before, service);
	return true;
}

/* (t,0,0) -> (t,0,1): only the queue head may do this while there is a tail */
static lw_always_inline void lw_hq_take(union lw_word *lock, uint32_t val, union lw_hq_history *h)
{
	uint16_t before = val & LW_SERVICE_MASK, now = before;
	uint16_t service = lw_hq_service(val, h, false);

	if (service != before &&
	    lw_try_cmpxchg(&lock->locked_pending, &now, service | LW_LOCKED, relaxed)) {
		lw_hq_count_mode(before, service);
		now = service;
	} else {
		/* If the pending bit has been set, a later queue head will change the mode. */
		lw_field_store(lock, locked, LW_LOCKED, relaxed);
		now = before;
	}
	/* The counts begin at zero when the mode has changed, or has just been kept. */
	if (h->numa_mode != !!(now & LW_HQ_NUMA))
		*h = (union lw_hq_history){.numa_node = h->numa_node,
					   .numa_mode = !h->numa_mode,
					   .left = h->numa_mode ? 0 : lw_hq_turn()};
	else if (h->numa_mode && now == service && lw_hq_has_seen_enough(h))
		h->handoffs = h->remote = 0;
}

/*
 * We have the lock, and the queue of our NUMA node is out of the word's queue: free it, or make the
 * next waiter its leader.
 */
static lw_always_inline void lw_hq_leave(struct lw_hq_waiter *me, struct lw_node *next)
{
	if (me->queue)
		next = lw_node_queue_next(me->queue, me->self, me->node, next);
	if (me->queue && next)
		lw_mcs_hand_over(next, LW_HQ_LEADER);
}

/*
 * We are queue head, and the lock has been in NUMA mode: take it, and hand over the head's role
 * within our place, if another waiter is known there and the turn is not over. False if not. This
 * is what most waiters do in NUMA mode.
 */
static lw_always_inline bool lw_hq_go_on(union lw_word *lock, struct lw_node *node)
{
	union lw_hq_history h = {.packed = lw_load(&lw_hq_part(node)->history, relaxed)};
	struct lw_node *next = lw_load(&node->next, dependency);

	if (!next || !h.numa_mode || !h.left)
		return false;
	lw_prefetch_write(&next->locked);
	/* (*,*,*) -> (*,0,0) -> (*,0,1) */
	lw_await_eq(&lock->val, lw_head_awaits(), 0, acquire);
	lw_field_store(lock, locked, LW_LOCKED, relaxed);
	lw_count(local_handoffs);
	h.left--;
	lw_hq_hand_over(&h, next);
	return true;
}

/* We are queue head: take the lock, and hand over the head's role. */
static lw_noinline void lw_hq_head(union lw_word *lock, struct lw_hq_waiter *me, bool led)
{
	struct lw_node *next = NULL;  /* in the queue of our NUMA node */
	struct lw_node *after = NULL; /* in the word's queue */
	uint32_t val;
	bool last;

	if (me->queue)
		next = lw_load(&me->node->next, dependency);
	if (!next)
		after = lw_load(&me->place->next, dependency);
	if (next || after)
		lw_prefetch_write(next ? &next->locked : &after->locked);
	/*
	 * No waiter of our NUMA node came while our place was in the word's queue, so probably none
	 * will come soon. Return the queue now: after we have the lock, others would wait for that.
	 */
	if (led && me->queue && after && lw_node_queue_release(me->queue, me->self)) {
		me->queue = NULL;
		me->place_tail = 0;
	}

	for (;;) {
		/* (*,*,*) -> (*,0,0) */
		val = lw_await_eq(&lock->val, lw_head_awaits(), 0, acquire);
		last = (val & LW_TAIL_MASK) == me->place_tail;
		if (me->queue && !next)
			next = lw_load(&me->node->next, dependency);
		if (next && (last || !me->history.numa_mode || me->history.left)) {
			lw_hq_take(lock, val, &me->history);
			lw_hq_count_local(&me->history);
			lw_hq_hand_over(&me->history, next);
			return;
		}
		if (!last)
			break;
		/* (place,0,0) -> (0,0,1) */
		if (lw_hq_try_take_last(lock, &val, lw_hq_service(val, &me->history, true))) {
			lw_hq_end_turn(me);
			lw_hq_leave(me, NULL);
			return;
		}
	}

	if (next)
		lw_count(fairness_handoffs);
	lw_hq_end_turn(me);
	lw_hq_take(lock, val, &me->history);
	if (!after)
		after = lw_await_ne(&me->place->next, ~(uintptr_t)0, 0, dependency);
	lw_hq_hand_over(&me->history, after);
	lw_hq_leave(me, next);
}

/* Wait for the head's role in the word's queue, and take the lock. */
static inline void lw_hq_wait_in_place(union lw_word *lock, struct lw_hq_waiter *me, bool led)
{
	struct lw_node *before;
	uint32_t old;

	if (led)
		lw_node_init(me->place);
	old = lw_word_xchg_tail(lock, me->place_tail);
	before = old ? lw_decode_place(lock, old) : NULL;
	if (before && !lw_is_dead(before)) {
		lw_store(&before->next, me->place, release);
		lw_mcs_wait(me->place);
		lw_hq_receive(me);
	}
	lw_hq_head(lock, me, led);
}

/*
 * Wait with `role` in `queue`, where lw_hq_go_on() has not sufficed. In plain mode there is no
 * queue.
 */
static lw_noinline void lw_hq_wait_with(union lw_word *lock, struct lw_node *node, uint32_t tail,
					struct lw_node *queue, uint16_t numa_node,
					enum lw_hq_role role)
{
	struct lw_hq_waiter me = {.node = node, .place = node, .place_tail = tail};

	me.history.numa_node = numa_node;
	if (queue) {
		me.history.numa_mode = true;
		me.history.left = lw_hq_turn();
	}
	if (role != LW_HQ_ALONE) {
		me.queue = me.place = queue;
		me.self = lw_node_queue_waiters(lock, tail);
		me.place_tail = lw_node_queue_tail(numa_node);
	}
	if (role == LW_HQ_HEADS) {
		me.history.packed = lw_load(&lw_hq_part(node)->history, relaxed);
		lw_hq_head(lock, &me, false);
	} else {
		lw_hq_wait_in_place(lock, &me, role == LW_HQ_LEADS);
	}
}

/* Wait with `node`, which is `tail` as a tail, in the queues. */
static lw_always_inline void lw_hq_wait(union lw_word *lock, uint32_t val, struct lw_node *node,
					uint32_t tail)
{
	uint16_t numa_node = lw_numa_node();
	struct lw_node *queue = NULL;
	enum lw_hq_role role = LW_HQ_ALONE;

	if (val & LW_HQ_NUMA)
		queue = lw_node_queue_of(lock, numa_node);
	if (queue)
		role = lw_hq_join(queue, lw_node_queue_waiters(lock, tail), node);
	if (role != LW_HQ_HEADS || !lw_hq_go_on(lock, node))
		lw_hq_wait_with(lock, node, tail, queue, numa_node, role);
	lw_count(queued_acquisitions);
}

/*
 * The lock is free, but its word is not the one that the fast path expects. Remove one doubt each
 * time, so that the word soon becomes the expected one.
 */
static lw_always_inline bool lw_hq_try_take_free(union lw_word *lock, uint32_t *val)
{
	union lw_hq_history none = {.packed = 0};
	uint32_t service = lw_hq_service(*val, &none, true);

	return lw_hq_try_take_last(lock, val,
				   service & LW_HQ_DOUBTS ? service - LW_HQ_DOUBT : service);
}

void lw_hq_lock_slow(struct lw_hq *lock, uint32_t val)
{
	union lw_word *word = &lock->word;
	struct lw_own_node own;

	if (lw_word_is_free(val) && lw_hq_try_take_free(word, &val))
		return;
	if (lw_pending_lock(word, val))
		return;

	if (!lw_node_take(NULL, &own)) {
		lw_spin_nodeless(word);
		return;
	}
	lw_node_init(own.node);
	/* To fetch the node's lines may have taken long. Has the lock become free meanwhile? */
	val = lw_load(&word->val, relaxed);
	/* (0,0,0) -> (0,0,1) */
	if (lw_word_is_free(val) && lw_try_cmpxchg(&word->val, &val, val | LW_LOCKED, acquire))
		goto acquired;

	lw_hq_wait(word, val, own.node, own.tail);
acquired:
	lw_node_return(&own);
}

LW_DESCRIBE(
	hq, struct lw_hq, .summary = "hierarchical queued spinlock, a queue for each NUMA node",
	.unlocked = LW_HQ, .traits = LW_SPINS | LW_NUMA_AWARE | LW_TAIL_WORD, .tunables = "hqlock_",
	.origin = "HQ-spinlock, RFC v1 to v3 against Linux 7.0, not merged; cohort locks of 2012");
