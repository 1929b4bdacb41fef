/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The operation set in the simulator: every access is a call into the engine
 * (crates/sim), which charges its time on the simulated machine and performs it
 * there. locks/contract/operations.h says what each operation means.
 */
#ifndef LW_WORLD_H
#define LW_WORLD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "byte_fields.h"

/*
 * All locks are one translation unit here, so that their symbols do not clash with those of the
 * user world. The simulator uses what lock types point to, so some functions are unused.
 */
#define LW_EXPORT	 static __attribute__((unused))
#define lw_always_inline inline __attribute__((always_inline))
#define lw_noinline	 __attribute__((noinline))
#define lw_aligned(n)	 __attribute__((aligned(n)))
#define lw_unlikely(x)	 (x)

#define lw_constant(value, checked) (value)

#define lw_atomic(T)      \
	struct {          \
		T lw_raw; \
	}

enum lw_sim_order {
	LW_SIM_relaxed,
	LW_SIM_dependency,
	LW_SIM_acquire,
	LW_SIM_release,
	LW_SIM_acq_rel,
	LW_SIM_seq_cst,
};

uint64_t lw_sim_load(const void *p, uint32_t size, uint32_t order);
void lw_sim_store(void *p, uint32_t size, uint64_t value, uint32_t order);
uint64_t lw_sim_xchg(void *p, uint32_t size, uint64_t value, uint32_t order);
/* Returns the old value. `value` has been written if the old value equals `expected`. */
uint64_t lw_sim_cmpxchg(void *p, uint32_t size, uint64_t expected, uint64_t value, uint32_t order);
uint64_t lw_sim_fetch_or(void *p, uint32_t size, uint64_t bits, uint32_t order);
uint64_t lw_sim_fetch_and(void *p, uint32_t size, uint64_t bits, uint32_t order);
uint64_t lw_sim_fetch_add(void *p, uint32_t size, uint64_t value, uint32_t order);
void lw_sim_fence(uint32_t order);
bool lw_sim_waiters_park(void);
bool lw_sim_release_is_split(void);
/* Waits until ((*p & mask) == value) == equal. */
uint64_t lw_sim_await(const void *p, uint32_t size, uint64_t mask, uint64_t value, bool equal,
		      uint32_t order);
/* The same, for the time of `budget` polls. */
uint64_t lw_sim_await_bounded(const void *p, uint32_t size, uint64_t mask, uint64_t value,
			      bool equal, uint32_t budget);
void lw_sim_pause(void);
/* Parks for `milliseconds` at most, or until woken if that is 0. True if that time has passed. */
bool lw_sim_park(const void *p, uint32_t value, uint64_t milliseconds);
void lw_sim_unpark(const void *p, uint32_t slot);
uint8_t lw_sim_cpu_mark(void);
void lw_sim_slice_request(void);
void lw_sim_slice_end(void);
void lw_sim_prefetch(const void *p, bool to_write);
uint64_t lw_sim_plain_read(const void *p, uint32_t size);
void lw_sim_plain_write(void *p, uint32_t size, uint64_t value);

#define LW_SIM_TYPE(p) __typeof__((p)->lw_raw)
#define LW_SIM_RMW(op, p, value, order)                                                   \
	({                                                                                \
		uint64_t lw_old = op(p, sizeof(*(p)), (uint64_t)(value), LW_SIM_##order); \
		(LW_SIM_TYPE(p)) lw_old;                                                  \
	})

#define lw_load(p, order)                                                      \
	({                                                                     \
		uint64_t lw_is = lw_sim_load(p, sizeof(*(p)), LW_SIM_##order); \
		(LW_SIM_TYPE(p)) lw_is;                                        \
	})
#define lw_store(p, value, order)     lw_sim_store(p, sizeof(*(p)), (uint64_t)(value), LW_SIM_##order)
#define lw_xchg(p, value, order)      LW_SIM_RMW(lw_sim_xchg, p, value, order)
#define lw_fetch_or(p, bits, order)   LW_SIM_RMW(lw_sim_fetch_or, p, bits, order)
#define lw_fetch_and(p, bits, order)  LW_SIM_RMW(lw_sim_fetch_and, p, bits, order)
#define lw_fetch_add(p, value, order) LW_SIM_RMW(lw_sim_fetch_add, p, value, order)
#define lw_try_cmpxchg(p, expected, value, order)                                                \
	({                                                                                       \
		LW_SIM_TYPE(p) lw_want = *(expected);                                            \
		*(expected) = (LW_SIM_TYPE(p))lw_sim_cmpxchg(p, sizeof(*(p)), (uint64_t)lw_want, \
							     (uint64_t)(value), LW_SIM_##order); \
		*(expected) == lw_want;                                                          \
	})
#define lw_fence(order) lw_sim_fence(LW_SIM_##order)
/* As in user space, if the threads are those of a program. */
#define lw_release_is_split() lw_sim_release_is_split()
#define lw_waiters_park()     lw_sim_waiters_park()
#define lw_writers_park()     lw_sim_waiters_park()
#define lw_barrier()	      ((void)0)
#define LW_SIM_AWAIT(p, mask, value, equal, order)                                         \
	({                                                                                 \
		uint64_t lw_seen = lw_sim_await(p, sizeof(*(p)), (uint64_t)(mask),         \
						(uint64_t)(value), equal, LW_SIM_##order); \
		(LW_SIM_TYPE(p)) lw_seen;                                                  \
	})
#define lw_await_eq(p, mask, value, order) LW_SIM_AWAIT(p, mask, value, true, order)
#define lw_await_ne(p, mask, value, order) LW_SIM_AWAIT(p, mask, value, false, order)
#define LW_SIM_AWAIT_BOUNDED(p, mask, value, equal, budget)                                \
	({                                                                                 \
		uint64_t lw_seen = lw_sim_await_bounded(p, sizeof(*(p)), (uint64_t)(mask), \
							(uint64_t)(value), equal, budget); \
		(LW_SIM_TYPE(p)) lw_seen;                                                  \
	})
#define lw_await_ne_bounded(p, mask, value, budget) \
	LW_SIM_AWAIT_BOUNDED(p, mask, value, false, budget)
#define lw_await_eq_soon(p, mask, value, order)	    lw_await_eq(p, mask, value, order)
#define lw_await_ne_soon(p, mask, value, order)	    lw_await_ne(p, mask, value, order)
#define lw_await_ne_backoff(p, mask, value, budget) lw_await_ne_bounded(p, mask, value, budget)
#define lw_pause(n)                            \
	({                                     \
		uint32_t lw_pauses_left = (n); \
		while (lw_pauses_left--)       \
			lw_sim_pause();        \
	})
#define lw_pause_long() lw_pause(1)
/* No wait is limited in the simulator. */
#define lw_park(p, value, limit) ((void)(limit), (void)lw_sim_park(p, value, 0))
#define lw_park_bounded(p, value, limit, nth) \
	((void)(limit), lw_sim_park(p, value, lw_release_is_split() ? 1ull << (nth) : 0))
#define lw_unpark(p, slot)	 lw_sim_unpark(p, slot)
#define lw_cpu_mark()		 lw_sim_cpu_mark()
#define lw_was_here(mark)	 (((mark)&0xff) == (lw_sim_cpu_mark() ^ 1))
#define lw_may_run(mark)	 ((mark) != LW_CPU_MARK_NONE && (mark) != lw_sim_cpu_mark())
#define lw_slice_request()	 lw_sim_slice_request()
#define lw_slice_end()		 lw_sim_slice_end()
#define lw_prefetch(p)		 lw_sim_prefetch(p, false)
#define lw_prefetch_write(p)	 lw_sim_prefetch(p, true)
#define lw_plain_read(p)	 ((__typeof__(*(p)))lw_sim_plain_read(p, sizeof(*(p))))
#define lw_plain_write(p, value) lw_sim_plain_write(p, sizeof(*(p)), (uint64_t)(value))

#endif
