/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The operations of locks/contract/operations.h in the model checker. Every operation asks the
 * engine (crates/check), which explores all results that the memory model allows.
 *
 * Addresses are names only. The engine keeps the values, and no memory is read or written through
 * an address.
 */
#ifndef LW_WORLD_H
#define LW_WORLD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "byte_fields.h"

/*
 * All locks are one translation unit here, so that their names do not clash with those of other
 * worlds in one program.
 */
#define LW_EXPORT	 static
#define lw_always_inline inline __attribute__((always_inline))
#define lw_noinline	 __attribute__((noinline))
#define lw_aligned(n)	 __attribute__((aligned(n)))
#define lw_unlikely(x)	 (x)

#define lw_constant(value, checked) (checked)

#define lw_atomic(T)      \
	struct {          \
		T lw_raw; \
	}

enum lw_check_order {
	LW_CHECK_plain, /* not atomic: a race unless it is ordered */
	LW_CHECK_relaxed,
	LW_CHECK_dependency,
	LW_CHECK_acquire,
	LW_CHECK_release,
	LW_CHECK_acq_rel,
	LW_CHECK_seq_cst,
};

enum lw_check_kind {
	LW_CHECK_LOAD,
	LW_CHECK_STORE,
	LW_CHECK_XCHG,
	LW_CHECK_CMPXCHG,
	LW_CHECK_OR,
	LW_CHECK_AND,
	LW_CHECK_ADD,
	LW_CHECK_FENCE,
	LW_CHECK_AWAIT_EQ,
	LW_CHECK_AWAIT_NE,
	LW_CHECK_AWAIT_EQ_BOUNDED,
	LW_CHECK_AWAIT_NE_BOUNDED,
	LW_CHECK_PAUSE,
	LW_CHECK_PARK,
	LW_CHECK_UNPARK,
	LW_CHECK_PLAIN_READ,
	LW_CHECK_PLAIN_WRITE,
	LW_CHECK_CLOCK,
	LW_CHECK_CHOOSE,
};

/* An operation in the source. The linker collects all of them; traces and mutants name them. */
struct lw_check_site {
	const char *file;
	const char *function;
	const char *operand;
	uint32_t line;
	uint8_t kind;
	uint8_t order;
	uint8_t size;
	uint8_t failure; /* the order of a compare-and-swap that fails */
} lw_aligned(16);

/*
 * Perform operation `site` on p, and return the old value where there is one. `a` and `b` are its
 * operands: the value to store, or the expected and the new value, or a mask and a value, or a
 * count.
 */
uint64_t lw_check_operate(const struct lw_check_site *site, uintptr_t p, uint64_t a, uint64_t b);

bool lw_check_release_is_split(void);
bool lw_check_waiters_park(void);

#define LW_CHECK_OPERATE(KIND, operand_text, bytes, order_of, p, a, b)                    \
	({                                                                                \
		static const struct lw_check_site lw_site                                 \
			__attribute__((section("lw_check_sites"), used)) = {              \
				.file = __FILE__,                                         \
				.function = __func__,                                     \
				.operand = operand_text,                                  \
				.line = __LINE__,                                         \
				.kind = LW_CHECK_##KIND,                                  \
				.order = LW_CHECK_##order_of,                             \
				.size = bytes,                                            \
				.failure = LW_CHECK_relaxed,                              \
			};                                                                \
		lw_check_operate(&lw_site, (uintptr_t)(p), (uint64_t)(a), (uint64_t)(b)); \
	})
#define LW_CHECK_TYPE(p) __typeof__((p)->lw_raw)
#define LW_CHECK_ACCESS(KIND, p, a, b, order)                                               \
	({                                                                                  \
		uint64_t lw_got = LW_CHECK_OPERATE(KIND, #p, sizeof(*(p)), order, p, a, b); \
		(LW_CHECK_TYPE(p)) lw_got;                                                  \
	})

#define lw_load(p, order)	      LW_CHECK_ACCESS(LOAD, p, 0, 0, order)
#define lw_store(p, value, order)     ((void)LW_CHECK_ACCESS(STORE, p, value, 0, order))
#define lw_xchg(p, value, order)      LW_CHECK_ACCESS(XCHG, p, value, 0, order)
#define lw_fetch_or(p, bits, order)   LW_CHECK_ACCESS(OR, p, bits, 0, order)
#define lw_fetch_and(p, bits, order)  LW_CHECK_ACCESS(AND, p, bits, 0, order)
#define lw_fetch_add(p, value, order) LW_CHECK_ACCESS(ADD, p, value, 0, order)
#define lw_try_cmpxchg(p, expected, value, order)                                 \
	({                                                                        \
		LW_CHECK_TYPE(p) lw_want = *(expected);                           \
		*(expected) = LW_CHECK_ACCESS(CMPXCHG, p, lw_want, value, order); \
		*(expected) == lw_want;                                           \
	})
#define lw_release_is_split() lw_check_release_is_split()
#define lw_waiters_park()     lw_check_waiters_park()
#define lw_writers_park()     lw_check_waiters_park()
#define lw_fence(order)	      ((void)LW_CHECK_OPERATE(FENCE, "", 0, order, 0, 0, 0))
#define lw_barrier()	      ((void)0) /* an interruption may come before every operation */
#define lw_cpu_mark()	      1u
#define lw_was_here(mark)     ((void)(mark), LW_CHECK_OPERATE(CHOOSE, "", 0, relaxed, 0, 2, 0))
/* A waiter that polls once at most learns as much from a bounded await. */
#define lw_may_run(mark) \
	(lw_check_tunables()->mutex_spin == 1 || ((mark) != LW_CPU_MARK_NONE && lw_was_here(mark)))
#define lw_slice_request()		   ((void)0) /* the search does not know of time */
#define lw_slice_end()			   ((void)0)
#define lw_await_eq(p, mask, value, order) LW_CHECK_ACCESS(AWAIT_EQ, p, mask, value, order)
#define lw_await_ne(p, mask, value, order) LW_CHECK_ACCESS(AWAIT_NE, p, mask, value, order)
#define lw_await_ne_bounded(p, mask, value, budget) \
	((void)(budget), LW_CHECK_ACCESS(AWAIT_NE_BOUNDED, p, mask, value, relaxed))
#define lw_await_eq_soon(p, mask, value, order)	    lw_await_eq(p, mask, value, order)
#define lw_await_ne_soon(p, mask, value, order)	    lw_await_ne(p, mask, value, order)
#define lw_await_ne_backoff(p, mask, value, budget) lw_await_ne_bounded(p, mask, value, budget)
#define lw_pause_long()				    lw_pause(1)
#define lw_pause(n)				    ((void)(n), (void)LW_CHECK_OPERATE(PAUSE, "", 0, relaxed, 0, 0, 0))
/* The second operand of PARK: does the sleep end by time? */
#define lw_park(p, value, limit) \
	((void)(limit), (void)LW_CHECK_ACCESS(PARK, p, value, false, seq_cst))
#define lw_park_bounded(p, value, limit, nth) \
	((void)(limit), (void)(nth),          \
	 (void)LW_CHECK_ACCESS(PARK, p, value, lw_check_release_is_split(), seq_cst), false)
#define lw_unpark(p, slot)   ((void)(slot), (void)LW_CHECK_ACCESS(UNPARK, p, 0, 0, seq_cst))
#define lw_prefetch(p)	     ((void)(p))
#define lw_prefetch_write(p) ((void)(p))
#define lw_plain_read(p) \
	((__typeof__(*(p)))LW_CHECK_OPERATE(PLAIN_READ, #p, sizeof(*(p)), relaxed, p, 0, 0))
#define lw_plain_write(p, value) \
	((void)LW_CHECK_OPERATE(PLAIN_WRITE, #p, sizeof(*(p)), relaxed, p, value, 0))

#endif
