/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The operation set in Linux; what each operation means is in operations.h.
 */
#ifndef LW_WORLD_H
#define LW_WORLD_H

#include <linux/atomic.h>
#include <linux/compiler.h>
#include <linux/limits.h>
#include <linux/nospec.h>
#include <linux/prefetch.h>
#include <linux/processor.h>
#include <linux/types.h>
#include <asm/barrier.h>

#include "backoff.h"

#define UINT16_MAX  U16_MAX
#define UINT32_MAX  U32_MAX
#define INT64_MAX   S64_MAX
#define UINT64_C(n) n##ULL

/* All locks are one translation unit in Linux, which calls only the hooks. */
#define LW_EXPORT	 static
#define lw_always_inline __always_inline
#define lw_noinline	 noinline
#define lw_aligned(n)	 __aligned(n)
#define lw_unlikely(x)	 unlikely(x)

#define lw_constant(value, checked) (value)

#define lw_atomic(T)      \
	struct {          \
		T lw_raw; \
	}

#define LW_LOAD_relaxed(p)    READ_ONCE(*(p))
#define LW_LOAD_dependency(p) READ_ONCE(*(p))
#define LW_LOAD_acquire(p)    smp_load_acquire(p) /* the matching release is in the lock */
/* All other seq_cst operations are read-modify-writes, which are full barriers. */
#define LW_LOAD_seq_cst(p) smp_load_acquire(p) /* the matching release is in the lock */
#define lw_load(p, order)  LW_LOAD_##order(&(p)->lw_raw)

#define LW_STORE_relaxed(p, value) WRITE_ONCE(*(p), value)
#define LW_STORE_release(p, value) smp_store_release(p, value) /* the matching acquire, too */
#define lw_store(p, value, order)  LW_STORE_##order(&(p)->lw_raw, value)

/* Linux has no weaker read-modify-write that both acquires and releases. */
#define LW_MODIFY_relaxed(op, ...) op##_relaxed(__VA_ARGS__)
#define LW_MODIFY_acquire(op, ...) op##_acquire(__VA_ARGS__)
#define LW_MODIFY_release(op, ...) op##_release(__VA_ARGS__)
#define LW_MODIFY_acq_rel(op, ...) op(__VA_ARGS__)
#define LW_MODIFY_seq_cst(op, ...) op(__VA_ARGS__)
#define lw_xchg(p, value, order)   LW_MODIFY_##order(xchg, &(p)->lw_raw, value)
#define lw_try_cmpxchg(p, expected, value, order) \
	LW_MODIFY_##order(try_cmpxchg, &(p)->lw_raw, expected, value)
/* Linux has atomic arithmetic on words of 32 and 64 bits only, with a type for each. */
#define LW_FETCH_32(op, p, value, order) \
	((uint32_t)LW_MODIFY_##order(atomic_fetch_##op, (uint32_t)(value), (atomic_t *)(p)))
#define LW_FETCH_64(op, p, value, order) \
	((uint64_t)LW_MODIFY_##order(atomic64_fetch_##op, value, (atomic64_t *)(p)))
#define LW_FETCH(op, p, value, order)                                    \
	_Generic((p)->lw_raw, uint32_t                                   \
		 : LW_FETCH_32(op, &(p)->lw_raw, value, order), uint64_t \
		 : LW_FETCH_64(op, &(p)->lw_raw, value, order))
#define lw_fetch_or(p, bits, order)   LW_FETCH(or, p, bits, order)
#define lw_fetch_and(p, bits, order)  LW_FETCH(and, p, bits, order)
#define lw_fetch_add(p, value, order) LW_FETCH(add, p, value, order)

#define lw_field_load(word, field, order)	  lw_load(&(word)->field, order)
#define lw_field_store(word, field, value, order) lw_store(&(word)->field, value, order)
#define lw_field_xchg(word, field, value, order)  lw_xchg(&(word)->field, value, order)
/* Linux has no read-modify-write operations on 16 bits. */
#define LW_KERNEL_FIELD_CHANGE(word, field, now, order)                                \
	({                                                                             \
		typeof((word)->field.lw_raw) lw_old = READ_ONCE((word)->field.lw_raw); \
		while (!lw_field_try_cmpxchg(word, field, &lw_old, lw_old now, order)) \
			;                                                              \
		lw_old;                                                                \
	})
#define lw_field_fetch_or(word, field, bits, order) \
	LW_KERNEL_FIELD_CHANGE(word, field, | (bits), order)
#define lw_field_fetch_and(word, field, bits, order) \
	LW_KERNEL_FIELD_CHANGE(word, field, &(bits), order)
#define lw_field_try_cmpxchg(word, field, expected, value, order) \
	lw_try_cmpxchg(&(word)->field, expected, value, order)
/* smp_rmb() and smp_wmb() do not order a load before a later store, as these fences must. */
#define LW_FENCE_acquire()    smp_mb() /* as above */
#define LW_FENCE_release()    smp_mb() /* as above */
#define LW_FENCE_acq_rel()    smp_mb() /* as above */
#define LW_FENCE_seq_cst()    smp_mb() /* as above */
#define lw_fence(order)	      LW_FENCE_##order()
#define lw_release_is_split() false
/* Waiters of the mutex park if a guest has chosen that. Waiters of pv always may. */
#define lw_waiters_park() (guest_spinlock == GUEST_SPINLOCK_PV_MUTEX)
/*
 * A halted head runs only when it is kicked and the host gives its virtual CPU a CPU. Arrivals that
 * queued behind it meanwhile would halt, one after the other, until the host has an idle CPU. So
 * they poll for some time slices of the host, also while the head starves.
 */
#define LW_MUTEX_OPEN_WAIT    (1u << 20)
#define LW_MUTEX_STARVED_WAIT true
/* A halted CPU is kicked by its number, which readers do not know. */
#define lw_writers_park() false

/* Stock code stores 1 when it acquires a lock, and 0 when it releases one. */
#define lw_cpu_mark()	  1u
#define lw_was_here(mark) ((void)(mark), true)
#define lw_may_run(mark)  ((void)(mark), true)

/* The kernel itself decides who keeps the CPU. */
#define lw_slice_request() ((void)0)
#define lw_slice_end()	   ((void)0)

#define lw_barrier()	     barrier()
#define lw_prefetch(p)	     prefetch(p)
#define lw_prefetch_write(p) prefetchw(p)

#define LW_AWAIT_relaxed(p, condition)	  smp_cond_load_relaxed(p, condition)
#define LW_AWAIT_dependency(p, condition) smp_cond_load_relaxed(p, condition)
#define LW_AWAIT_acquire(p, condition)	  smp_cond_load_acquire(p, condition)
#define lw_await_eq(p, mask, value, order) \
	LW_AWAIT_##order(&(p)->lw_raw, ((uintptr_t)VAL & (mask)) == (value))
#define lw_await_ne(p, mask, value, order) \
	LW_AWAIT_##order(&(p)->lw_raw, ((uintptr_t)VAL & (mask)) != (value))
#define LW_AWAIT_BOUNDED(p, condition, budget)                                       \
	({                                                                           \
		unsigned int lw_polls = (budget);                                    \
		smp_cond_load_relaxed(&(p)->lw_raw, (condition) || lw_polls-- <= 1); \
	})
#define lw_await_ne_bounded(p, mask, value, budget) \
	LW_AWAIT_BOUNDED(p, ((uintptr_t)VAL & (mask)) != (value), budget)
#define lw_await_eq_soon(p, mask, value, order)	    lw_await_eq(p, mask, value, order)
#define lw_await_ne_soon(p, mask, value, order)	    lw_await_ne(p, mask, value, order)
#define lw_await_ne_backoff(p, mask, value, budget) LW_AWAIT_NE_BACKOFF(p, mask, value, budget, 8)
#define lw_pause(n)                       \
	({                                \
		u32 lw_pauses_left = (n); \
		while (lw_pauses_left--)  \
			cpu_relax();      \
		barrier_nospec();         \
	})
#define lw_pause_long() lw_pause(1)

/*
 * The hypervisor's function that halts a virtual CPU compares one byte, so it gets the
 * least significant byte of the word. No wait is cancelled, so the wait limit is not used.
 */
#ifdef CONFIG_PARAVIRT_SPINLOCKS
#define lw_park(p, value, limit) ((void)(limit), pv_wait((u8 *)&(p)->lw_raw, value))
#define lw_unpark(p, slot)	 ((void)(p), pv_kick((int)(slot)-1))
#else
/* cpu_relax() is a statement on some architectures. */
#define lw_park(p, value, limit) \
	({                       \
		(void)(p);       \
		(void)(value);   \
		(void)(limit);   \
		cpu_relax();     \
	})
#define lw_unpark(p, slot) ((void)(p), (void)(slot))
#endif

#define lw_park_bounded(p, value, limit, nth) ((void)(nth), lw_park(p, value, limit), false)

#define lw_plain_read(p)	 (*(p))
#define lw_plain_write(p, value) ((void)(*(p) = (value)))

#endif
