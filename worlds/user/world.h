/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The operations in user space. operations.h says what each of them means. */
#ifndef LW_WORLD_H
#define LW_WORLD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "annotations.h"
#include "backoff.h"
#include "byte_fields.h"

#ifdef __cplusplus
#define LW_EXPORT extern "C" __attribute__((visibility("default")))
#else
#define LW_EXPORT __attribute__((visibility("default")))
#endif
#define lw_always_inline inline __attribute__((always_inline))
#define lw_noinline	 __attribute__((noinline))
#define lw_aligned(n)	 __attribute__((aligned(n)))
#define lw_unlikely(x)	 __builtin_expect(!!(x), 0)

#define lw_constant(value, checked) (value)

#define lw_atomic(T)      \
	struct {          \
		T lw_raw; \
	}

#define LW_ORDER_relaxed    __ATOMIC_RELAXED
#define LW_ORDER_acquire    __ATOMIC_ACQUIRE
#define LW_ORDER_release    __ATOMIC_RELEASE
#define LW_ORDER_acq_rel    __ATOMIC_ACQ_REL
#define LW_ORDER_seq_cst    __ATOMIC_SEQ_CST
#define LW_ORDER_dependency __ATOMIC_ACQUIRE

#define lw_load(p, order) \
	LW_REPORTED_READ(p, order, __atomic_load_n(&(p)->lw_raw, LW_ORDER_##order))
#define lw_store(p, value, order) \
	LW_REPORTED_WRITE(p, order, __atomic_store_n(&(p)->lw_raw, value, LW_ORDER_##order))
#define LW_USER_RMW(name, p, operand, order) \
	LW_REPORTED_BOTH(p, order, __atomic_##name(&(p)->lw_raw, operand, LW_ORDER_##order), true)
#define lw_xchg(p, value, order)      LW_USER_RMW(exchange_n, p, value, order)
#define lw_fetch_or(p, bits, order)   LW_USER_RMW(fetch_or, p, bits, order)
#define lw_fetch_and(p, bits, order)  LW_USER_RMW(fetch_and, p, bits, order)
#define lw_fetch_add(p, value, order) LW_USER_RMW(fetch_add, p, value, order)
#define lw_try_cmpxchg(p, expected, value, order)                                          \
	LW_REPORTED_BOTH(p, order,                                                         \
			 __atomic_compare_exchange_n(&(p)->lw_raw, expected, value, false, \
						     LW_ORDER_##order, __ATOMIC_RELAXED),  \
			 lw_was)
#define lw_release_is_split() true
#define lw_waiters_park()     true
#define lw_writers_park()     true
#define lw_fence(order)	      __atomic_thread_fence(LW_ORDER_##order)
#define lw_barrier()	      __atomic_signal_fence(__ATOMIC_SEQ_CST)
#define lw_prefetch(p)	      __builtin_prefetch(p)
#define lw_prefetch_write(p)  __builtin_prefetch(p, 1)

static inline void lw_user_pause(void)
{
#if defined(__x86_64__) || defined(__i386__)
	__builtin_ia32_pause();
#elif defined(__aarch64__)
	__asm__ __volatile__("isb" ::: "memory");
#elif defined(__riscv)
	/* PAUSE of Zihintpause, which older assemblers do not know and older processors ignore. */
	__asm__ __volatile__(".4byte 0x0100000f" ::: "memory");
#endif
}

/*
 * Pauses while the `size` bytes at `p` are `seen`. On arm64 the processor sleeps until another one
 * writes there: LDXR makes it watch the line, and the write is an event that ends WFE. So is any
 * exception, and Linux' event stream each 100 microseconds, so a lost event only costs time.
 */
static inline void lw_user_pause_while(const volatile void *p, size_t size, uint64_t seen)
{
#if defined(__aarch64__)
#define LW_USER_WFE(load)                                                  \
	__asm__ __volatile__(load "; eor %0, %0, %2; cbnz %0, 1f; wfe; 1:" \
			     : "=&r"(lw_now)                               \
			     : "r"(p), "r"(seen)                           \
			     : "memory")
	uint64_t lw_now;

	if (size == 1)
		LW_USER_WFE("ldxrb %w0, [%1]");
	else if (size == 2)
		LW_USER_WFE("ldxrh %w0, [%1]");
	else if (size == 4)
		LW_USER_WFE("ldxr %w0, [%1]");
	else
		LW_USER_WFE("ldxr %0, [%1]");
#undef LW_USER_WFE
#else
	(void)p, (void)size, (void)seen;
	lw_user_pause();
#endif
}

/* Without the fence, x86 loads ahead. Half of all builds then have a mutex a quarter as fast. */
static inline void lw_user_pauses(uint32_t n)
{
	while (n--)
		lw_user_pause();
#if defined(__x86_64__) || defined(__i386__)
	__asm__ __volatile__("lfence" ::: "memory");
#endif
}

#define LW_USER_AWAIT(p, mask, condition, order, wait)                                          \
	__extension__({                                                                         \
		__typeof__((p)->lw_raw) lw_seen;                                                \
		while (lw_seen = lw_load(p, order), !(((uintptr_t)lw_seen & (mask)) condition)) \
			wait;                                                                   \
		lw_seen;                                                                        \
	})
#define LW_USER_PAUSE_WHILE_SEEN(p) \
	lw_user_pause_while(&(p)->lw_raw, sizeof((p)->lw_raw), (uintptr_t)lw_seen)
#define lw_await_eq(p, mask, value, order) \
	LW_USER_AWAIT(p, mask, == (value), order, LW_USER_PAUSE_WHILE_SEEN(p))
#define lw_await_ne(p, mask, value, order) \
	LW_USER_AWAIT(p, mask, != (value), order, LW_USER_PAUSE_WHILE_SEEN(p))
/* Sleeps for 50 microseconds. */
void lw_user_pause_long(void) __attribute__((visibility("hidden")));
/* Sleeps for 50 microseconds for each thread that does so now. */
void lw_user_pause_in_turn(void) __attribute__((visibility("hidden")));
/* The number of polls between two long pauses: see lw_await_eq_soon(). */
#define LW_PAUSE_LONG_POLLS 1024
#define LW_USER_AWAIT_SOON(p, mask, condition, order)                                   \
	__extension__({                                                                 \
		uint32_t lw_polls = 0;                                                  \
		LW_USER_AWAIT(p, mask, condition, order,                                \
			      ++lw_polls % LW_PAUSE_LONG_POLLS ? lw_user_pause()        \
							       : lw_user_pause_long()); \
	})
#define lw_await_eq_soon(p, mask, value, order) LW_USER_AWAIT_SOON(p, mask, == (value), order)
#define lw_await_ne_soon(p, mask, value, order) LW_USER_AWAIT_SOON(p, mask, != (value), order)
#define LW_USER_AWAIT_BOUNDED(p, mask, condition, budget)                            \
	__extension__({                                                              \
		unsigned int lw_polls = (budget);                                    \
		__typeof__((p)->lw_raw) lw_seen;                                     \
		while (lw_seen = lw_load(p, relaxed),                                \
		       !(((uintptr_t)lw_seen & (mask)) condition) && lw_polls-- > 1) \
			lw_user_pause();                                             \
		lw_seen;                                                             \
	})
#define lw_await_ne_bounded(p, mask, value, budget) \
	LW_USER_AWAIT_BOUNDED(p, mask, != (value), budget)
#define lw_pause(n)	lw_user_pauses(n)
#define lw_pause_long() lw_user_pause_in_turn()

#define lw_await_ne_backoff(p, mask, value, budget) LW_AWAIT_NE_BACKOFF(p, mask, value, budget, 128)

/* Where a thread's rseq is, from its thread pointer; 0 if the C library does not register it. */
#ifdef __cplusplus
extern "C"
#else
extern
#endif
	__attribute__((visibility("default"))) ptrdiff_t lw_rseq_offset;

static inline char *lw_user_thread_pointer(void)
{
#if defined(__x86_64__)
	char *self;

	/* The ABI keeps the pointer there. Older compilers lack the function. */
	__asm__("mov %%fs:0, %0" : "=r"(self));
	return self;
#else
	return (char *)__builtin_thread_pointer();
#endif
}

static inline uint32_t lw_user_cpu_mark(void)
{
	char *self = lw_user_thread_pointer();
	uint32_t number = (uint32_t)((uintptr_t)self >> 12);

	/* The kernel keeps the number of the CPU there. */
	if (!lw_unlikely(!lw_rseq_offset))
		number = *(volatile uint32_t *)(void *)(self + lw_rseq_offset + 4);
	/* Negative: the kernel has refused rseq to this thread. */
	if (lw_unlikely((int32_t)number < 0))
		number = (uint32_t)((uintptr_t)self >> 12);
	if (lw_unlikely(number >= 127))
		number %= 127;
	return number << 1 | 1;
}

#define lw_cpu_mark()	  lw_user_cpu_mark()
#define lw_was_here(mark) (((mark)&0xff) == (lw_cpu_mark() ^ 1))
#define lw_may_run(mark)  ((mark) != LW_CPU_MARK_NONE && (mark) != lw_cpu_mark())

struct lw_wait_limit;
/* Parks while *word is `value`. Returns true if the deadline of `limit` came. */
bool lw_user_park(const uint32_t *word, uint32_t value, const struct lw_wait_limit *limit)
	__attribute__((visibility("hidden")));
/* The same, for a bounded time that doubles with `nth`. Returns true if that time passed. */
bool lw_user_park_bounded(const uint32_t *word, uint32_t value, const struct lw_wait_limit *limit,
			  uint32_t nth) __attribute__((visibility("hidden")));
/* Wakes one thread that is parked on `word`, or `slot`'s thread if that can be cancelled. */
void lw_user_unpark(const uint32_t *word, uint32_t slot) __attribute__((visibility("hidden")));
#define lw_park(p, value, limit)	      ((void)lw_user_park(&(p)->lw_raw, value, limit))
#define lw_park_bounded(p, value, limit, nth) lw_user_park_bounded(&(p)->lw_raw, value, limit, nth)
#define lw_unpark(p, slot)		      lw_user_unpark(&(p)->lw_raw, slot)

/* Does this program ask for time slice extensions? slice.h says what they are. */
#ifdef __cplusplus
extern "C"
#else
extern
#endif
	__attribute__((visibility("default"))) bool lw_slices_wanted;
LW_EXPORT void lw_slice_request_slow(void);
LW_EXPORT void lw_slice_end_slow(void);
#define LW_USER_IF_SLICES(call) \
	(lw_unlikely(__atomic_load_n(&lw_slices_wanted, __ATOMIC_RELAXED)) ? (call) : (void)0)
#define lw_slice_request() LW_USER_IF_SLICES(lw_slice_request_slow())
#define lw_slice_end()	   LW_USER_IF_SLICES(lw_slice_end_slow())

#define lw_plain_read(p)	 (*(p))
#define lw_plain_write(p, value) ((void)(*(p) = (value)))

#endif
