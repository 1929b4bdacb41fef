/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The operation set, first half: all that a lock may do to shared memory. The
 * second half, what it may know of its surroundings, is in surroundings.h. Each
 * world implements them in its own world.h and world_surroundings.h, found by
 * include path:
 *
 *   user    C11 atomics, thread slots, futex, getcpu
 *   kernel  the Linux atomics, per-CPU data
 *   sim     calls into a NUMA machine simulator with virtual time
 *   check   calls into a model checker with a weak memory model
 *
 * Shared variables have type lw_atomic(T), so that touching one by any other
 * means does not compile. `order` is one of
 *
 *   relaxed, acquire, release, acq_rel, seq_cst
 *   dependency   orders what is reached *through* the value loaded. kernel:
 *                the address dependency itself; everywhere else: acquire.
 *
 * user and check take every order as C11 means it. kernel may strengthen. sim
 * uses them to decide which stores of a weakly ordered machine wait for which.
 */
#ifndef LW_OPERATIONS_H
#define LW_OPERATIONS_H

#include "world.h"

/* Memory */

/* Read. */
#define lw_load(p, order) lw_world_load(p, order)
/* Write. sim: posted through the store buffer, does not stall the writer. */
#define lw_store(p, value, order) lw_world_store(p, value, order)
/* Write `value`, give the old one. */
#define lw_xchg(p, value, order) lw_world_xchg(p, value, order)
/*
 * If *p equals *expected, write `value` and give true. Otherwise copy *p to
 * *expected (relaxed) and give false. Never fails spuriously.
 */
#define lw_try_cmpxchg(p, expected, value, order) lw_world_try_cmpxchg(p, expected, value, order)
/* Or, and, add; give the old value. */
#define lw_fetch_or(p, bits, order)   lw_world_fetch_or(p, bits, order)
#define lw_fetch_and(p, bits, order)  lw_world_fetch_and(p, bits, order)
#define lw_fetch_add(p, value, order) lw_world_fetch_add(p, value, order)
/*
 * Load, store or exchange one named piece of a lock word (see lock_word.h): a
 * single atomic step that leaves the other pieces alone, in every world.
 */
#define lw_field_load(word, field, order)	  lw_world_field_load(word, field, order)
#define lw_field_store(word, field, value, order) lw_world_field_store(word, field, value, order)
#define lw_field_xchg(word, field, value, order)  lw_world_field_xchg(word, field, value, order)
/* The same for lw_fetch_or() and its kin, and lw_try_cmpxchg(). */
#define lw_field_fetch_or(word, field, bits, order) \
	lw_world_field_fetch_or(word, field, bits, order)
#define lw_field_fetch_and(word, field, bits, order) \
	lw_world_field_fetch_and(word, field, bits, order)
/* Not in the kernel. */
#define lw_field_fetch_add(word, field, value, order) \
	lw_world_field_fetch_add(word, field, value, order)
#define lw_field_try_cmpxchg(word, field, expected, value, order) \
	lw_world_field_try_cmpxchg(word, field, expected, value, order)
#define lw_fence(order) lw_world_fence(order)
/*
 * Is a lock word looked at, then released by a store, which both costs less than a compare-and-swap
 * that does it in one step? user: yes. check: as configured.
 */
#ifdef lw_world_release_is_split
#define lw_release_is_split() lw_world_release_is_split()
#else
#define lw_release_is_split() false
#endif
/*
 * Order against an interrupt or signal handler on this CPU or thread only.
 * check: nothing, since such an interruption may come in before every operation.
 */
#define lw_barrier() lw_world_barrier()

/* Waiting. The ways to spin: the condition is data, so that sim and check can block on it. */

/* Until (*p & mask) == value; gives the *p that satisfied it. */
#define lw_await_eq(p, mask, value, order) lw_world_await_eq(p, mask, value, order)
/* Until (*p & mask) != value; gives the *p that satisfied it. */
#define lw_await_ne(p, mask, value, order) lw_world_await_ne(p, mask, value, order)
/*
 * The same, for what another does in its next few steps. user: sleeps between many looks, for the
 * other may never run while we do, as when we are SCHED_FIFO.
 */
#ifdef lw_world_await_ne_soon
#define lw_await_eq_soon(p, mask, value, order) lw_world_await_eq_soon(p, mask, value, order)
#define lw_await_ne_soon(p, mask, value, order) lw_world_await_ne_soon(p, mask, value, order)
#else
#define lw_await_eq_soon(p, mask, value, order) lw_await_eq(p, mask, value, order)
#define lw_await_ne_soon(p, mask, value, order) lw_await_ne(p, mask, value, order)
#endif
/*
 * lw_await_ne(), but gives up after `budget` looks (user, kernel), the time of so
 * many looks (sim) or at any moment (check); gives the last *p seen. relaxed.
 */
#define lw_await_ne_bounded(p, mask, value, budget) \
	lw_world_await_ne_bounded(p, mask, value, budget)
/*
 * The same, for what its writer uses all the time. user, kernel: looks ever more seldom, up to
 * LW_BACKOFF pauses apart, in `budget` pauses.
 */
#ifdef LW_BACKOFF
#define lw_await_ne_backoff(p, mask, value, budget)                                   \
	__extension__({                                                               \
		unsigned int lw_left = (budget), lw_gap = 1;                          \
		__typeof__((p)->lw_raw) lw_seen;                                      \
		while (lw_seen = lw_load(p, relaxed),                                 \
		       ((uintptr_t)lw_seen & (mask)) == (value) && lw_left) {         \
			unsigned int lw_pauses = lw_gap < lw_left ? lw_gap : lw_left; \
			lw_left -= lw_pauses;                                         \
			if (lw_gap < LW_BACKOFF)                                      \
				lw_gap *= 2;                                          \
			while (lw_pauses--)                                           \
				lw_pause();                                           \
		}                                                                     \
		lw_seen;                                                              \
	})
#else
#define lw_await_ne_backoff(p, mask, value, budget) lw_await_ne_bounded(p, mask, value, budget)
#endif
#define lw_await_eq_bounded(p, mask, value, budget) \
	lw_world_await_eq_bounded(p, mask, value, budget)
/* Between two tries at what is not to be awaited, but tried all the time. */
#define lw_pause() lw_world_pause()
/* The same, of one who has tried in vain for long. user: sleeps 50 microseconds. */
#ifdef lw_world_pause_long
#define lw_pause_long() lw_world_pause_long()
#else
#define lw_pause_long() lw_pause()
#endif
/*
 * Sleep while *p == value; may return early, so callers look again. user: a
 * futex. kernel: halt the virtual CPU. sim: give up the CPU. check: blocks, and
 * wakes spuriously. `p` is an lw_atomic(uint32_t). The end of `limit` ends the
 * sleep too (see lw_limit_reached()).
 */
#define lw_park(p, value, limit) lw_world_park(p, value, limit)
/*
 * The same, for one whom nobody may wake if lw_release_is_split(). user: for 2^nth milliseconds at
 * most; true if for so long. check: for as long as it likes then.
 */
#ifdef lw_world_park_bounded
#define lw_park_bounded(p, value, limit, nth) lw_world_park_bounded(p, value, limit, nth)
#else
#define lw_park_bounded(p, value, limit, nth) ((void)(nth), lw_park(p, value, limit), false)
#endif
/* Wake one of those parked on p; kernel: that of `slot`. What is at p is not touched. */
#define lw_unpark(p, slot) lw_world_unpark(p, slot)
/* Soon written by this CPU: fetch its line for writing. A hint. */
#define lw_prefetch_write(p) lw_world_prefetch_write(p)

/* Data that a lock protects, touched by tests and workloads. Never used by a lock. */

/* sim: a load or store that takes time. check: a race here is an error. */
#define lw_plain_read(p)	 lw_world_plain_read(p)
#define lw_plain_write(p, value) lw_world_plain_write(p, value)

#endif
