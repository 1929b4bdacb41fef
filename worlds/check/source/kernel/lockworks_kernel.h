/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The operations of Linux, for locks that are written with them and checked outside of the kernel.
 * What they mean is said by Documentation/memory-barriers.txt and atomic_t.txt of Linux; here they
 * are the compiler's builtins, which the checker sees.
 *
 * An operation that returns a value and has no order in its name is a full barrier before and
 * after. In the models of the kernel and of ARM that is a read-modify-write with acquire and
 * release; C11 has fences for it.
 */
#ifndef LW_KERNEL_H
#define LW_KERNEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef uint8_t u8;
typedef uint16_t u16;
typedef uint32_t u32;
typedef uint64_t u64;
typedef int8_t s8;
typedef int16_t s16;
typedef int32_t s32;
typedef int64_t s64;
typedef uint8_t __u8;
typedef uint16_t __u16;
typedef uint32_t __u32;
typedef uint64_t __u64;
typedef int32_t __s32;
typedef int64_t __s64;

typedef struct {
	int counter;
} atomic_t;
typedef struct {
	s64 counter;
} atomic64_t;
typedef struct {
	long counter;
} atomic_long_t;

bool lw_check_has_full_rmw(void);
unsigned int lw_check_thread_number(void);
void lw_check_rmb(void);
void lw_check_wmb(void);

#define ATOMIC_INIT(i) \
	{              \
		(i)    \
	}
#define ATOMIC64_INIT(i) \
	{                \
		(i)      \
	}
#define ATOMIC_LONG_INIT(i) \
	{                   \
		(i)         \
	}

/* The C library has some of these. */
#undef __always_inline
#define __always_inline inline __attribute__((always_inline))
#define noinline	__attribute__((noinline))
#define notrace
#define asmlinkage
#define __sched
#define __lockfunc
#define __visible
#define __init
#define __must_check
#define __maybe_unused		     __attribute__((unused))
#define __aligned(n)		     __attribute__((aligned(n)))
#define ____cacheline_aligned	     __attribute__((aligned(64)))
#define ____cacheline_aligned_in_smp __attribute__((aligned(64)))
#define __acquires(x)
#define __releases(x)
#define __acquire(x)		   ((void)0)
#define __release(x)		   ((void)0)
#define likely(x)		   (x)
#define unlikely(x)		   (x)
#define EXPORT_SYMBOL(x)	   extern int lw_exported
#define EXPORT_SYMBOL_GPL(x)	   extern int lw_exported
#define BUILD_BUG_ON(x)		   _Static_assert(!(x), #x)
#define BUG_ON(x)		   ((x) ? __builtin_abort() : (void)0)
#define WARN_ON(x)		   BUG_ON(x)
#define WARN_ON_ONCE(x)		   BUG_ON(x)
#define DEBUG_LOCKS_WARN_ON(x)	   BUG_ON(x)
#define container_of(p, T, member) ((T *)((char *)(p)-offsetof(T, member)))

#define barrier()	       __asm__ __volatile__("" ::: "memory")
#define cpu_relax()	       barrier()
#define cond_resched()	       barrier()
#define need_resched()	       0
#define preempt_disable()      barrier()
#define preempt_enable()       barrier()
#define prefetch(p)	       ((void)(p))
#define prefetchw(p)	       ((void)(p))
#define smp_processor_id()     ((int)lw_check_thread_number())
#define raw_smp_processor_id() smp_processor_id()

#define READ_ONCE(x)	 __atomic_load_n(&(x), __ATOMIC_RELAXED)
#define WRITE_ONCE(x, v) __atomic_store_n(&(x), (v), __ATOMIC_RELAXED)
#define data_race(x)	 READ_ONCE(x)

#define smp_mb()		      __atomic_thread_fence(__ATOMIC_SEQ_CST)
#define smp_rmb()		      lw_check_rmb()
#define smp_wmb()		      lw_check_wmb()
#define rmb()			      smp_rmb()
#define wmb()			      smp_wmb()
#define mb()			      smp_mb()
#define smp_mb__before_atomic()	      smp_mb()
#define smp_mb__after_atomic()	      smp_mb()
#define smp_mb__after_spinlock()      smp_mb()
#define smp_mb__after_unlock_lock()   smp_mb()
#define smp_acquire__after_ctrl_dep() smp_rmb()
#define smp_load_acquire(p)	      __atomic_load_n((p), __ATOMIC_ACQUIRE)
#define smp_store_release(p, v)	      __atomic_store_n((p), (v), __ATOMIC_RELEASE)
#define smp_store_mb(x, v)        \
	do {                      \
		WRITE_ONCE(x, v); \
		smp_mb();         \
	} while (0)
#define rcu_dereference(p) __atomic_load_n(&(p), __ATOMIC_CONSUME)

/* VAL: what was read. */
#define LW_COND_LOAD(p, condition, order)                  \
	({                                                 \
		__typeof__(*(p) + 0) VAL;                  \
		for (;;) {                                 \
			VAL = __atomic_load_n((p), order); \
			if (condition)                     \
				break;                     \
		}                                          \
		VAL;                                       \
	})
#define smp_cond_load_relaxed(p, condition) LW_COND_LOAD(p, condition, __ATOMIC_RELAXED)
#define smp_cond_load_acquire(p, condition) LW_COND_LOAD(p, condition, __ATOMIC_ACQUIRE)
#define atomic_cond_read_relaxed(v, c)	    smp_cond_load_relaxed(&(v)->counter, (c))
#define atomic_cond_read_acquire(v, c)	    smp_cond_load_acquire(&(v)->counter, (c))

#define LW_XCHG(p, v, order)	  __atomic_exchange_n((p), (v), order)
#define LW_FETCH(op, p, v, order) __atomic_fetch_##op((p), (v), order)
#define LW_CMPXCHG(p, old, new, order)                                                        \
	({                                                                                    \
		__typeof__(*(p) + 0) lw_want = (old);                                         \
		__typeof__(*(p)) lw_old = (__typeof__(*(p)))lw_want;                          \
		__atomic_compare_exchange_n((p), &lw_old, (new), 0, order, __ATOMIC_RELAXED); \
		lw_old;                                                                       \
	})
#define LW_FULL(p, relaxed, full)               \
	({                                      \
		__typeof__(*(p) + 0) lw_result; \
		if (lw_check_has_full_rmw()) {  \
			lw_result = (full);     \
		} else {                        \
			smp_mb();               \
			lw_result = (relaxed);  \
			smp_mb();               \
		}                               \
		lw_result;                      \
	})
#define LW_TRY(p, old, operation)                          \
	({                                                 \
		__typeof__(*(p) + 0) lw_expected = *(old); \
		*(old) = (operation);                      \
		*(old) == lw_expected;                     \
	})

#define xchg_relaxed(p, v)	 LW_XCHG(p, v, __ATOMIC_RELAXED)
#define xchg_acquire(p, v)	 LW_XCHG(p, v, __ATOMIC_ACQUIRE)
#define xchg_release(p, v)	 LW_XCHG(p, v, __ATOMIC_RELEASE)
#define xchg(p, v)		 LW_FULL(p, xchg_relaxed(p, v), LW_XCHG(p, v, __ATOMIC_ACQ_REL))
#define cmpxchg_relaxed(p, o, n) LW_CMPXCHG(p, o, n, __ATOMIC_RELAXED)
#define cmpxchg_acquire(p, o, n) LW_CMPXCHG(p, o, n, __ATOMIC_ACQUIRE)
#define cmpxchg_release(p, o, n) LW_CMPXCHG(p, o, n, __ATOMIC_RELEASE)
/* One that fails orders nothing, so in C11 it is a read without fences. */
#define cmpxchg(p, o, n)                                                         \
	({                                                                       \
		__typeof__(*(p) + 0) lw_asked = (o);                             \
		__typeof__(*(p) + 0) lw_found;                                   \
		if (lw_check_has_full_rmw()) {                                   \
			lw_found = LW_CMPXCHG(p, lw_asked, n, __ATOMIC_ACQ_REL); \
		} else {                                                         \
			lw_found = READ_ONCE(*(p));                              \
			if (lw_found == (__typeof__(*(p)))lw_asked) {            \
				smp_mb();                                        \
				lw_found = cmpxchg_relaxed(p, lw_asked, n);      \
				smp_mb();                                        \
			}                                                        \
		}                                                                \
		lw_found;                                                        \
	})
#define try_cmpxchg_relaxed(p, o, n) LW_TRY(p, o, cmpxchg_relaxed(p, lw_expected, n))
#define try_cmpxchg_acquire(p, o, n) LW_TRY(p, o, cmpxchg_acquire(p, lw_expected, n))
#define try_cmpxchg_release(p, o, n) LW_TRY(p, o, cmpxchg_release(p, lw_expected, n))
#define try_cmpxchg(p, o, n)	     LW_TRY(p, o, cmpxchg(p, lw_expected, n))

/* The operations of an atomic type, whose names begin with `prefix`. */
#define LW_ORDERS(prefix, A, T, op, builtin, operand)                                      \
	static inline T prefix##_fetch_##op##_relaxed(T i, A *v)                           \
	{                                                                                  \
		return LW_FETCH(builtin, &v->counter, operand, __ATOMIC_RELAXED);          \
	}                                                                                  \
	static inline T prefix##_fetch_##op##_acquire(T i, A *v)                           \
	{                                                                                  \
		return LW_FETCH(builtin, &v->counter, operand, __ATOMIC_ACQUIRE);          \
	}                                                                                  \
	static inline T prefix##_fetch_##op##_release(T i, A *v)                           \
	{                                                                                  \
		return LW_FETCH(builtin, &v->counter, operand, __ATOMIC_RELEASE);          \
	}                                                                                  \
	static inline T prefix##_fetch_##op(T i, A *v)                                     \
	{                                                                                  \
		return LW_FULL(&v->counter,                                                \
			       LW_FETCH(builtin, &v->counter, operand, __ATOMIC_RELAXED),  \
			       LW_FETCH(builtin, &v->counter, operand, __ATOMIC_ACQ_REL)); \
	}                                                                                  \
	static inline void prefix##_##op(T i, A *v)                                        \
	{                                                                                  \
		(void)LW_FETCH(builtin, &v->counter, operand, __ATOMIC_RELAXED);           \
	}
#define LW_RETURNS(prefix, A, T, op, change)                         \
	static inline T prefix##_##op##_return_relaxed(T i, A *v)    \
	{                                                            \
		return prefix##_fetch_##op##_relaxed(i, v) change i; \
	}                                                            \
	static inline T prefix##_##op##_return_acquire(T i, A *v)    \
	{                                                            \
		return prefix##_fetch_##op##_acquire(i, v) change i; \
	}                                                            \
	static inline T prefix##_##op##_return_release(T i, A *v)    \
	{                                                            \
		return prefix##_fetch_##op##_release(i, v) change i; \
	}                                                            \
	static inline T prefix##_##op##_return(T i, A *v)            \
	{                                                            \
		return prefix##_fetch_##op(i, v) change i;           \
	}
#define LW_SUFFIXED(prefix, A, T, suffix)                                \
	static inline T prefix##_xchg##suffix(A *v, T i)                 \
	{                                                                \
		return xchg##suffix(&v->counter, i);                     \
	}                                                                \
	static inline T prefix##_cmpxchg##suffix(A *v, T o, T n)         \
	{                                                                \
		return cmpxchg##suffix(&v->counter, o, n);               \
	}                                                                \
	static inline bool prefix##_try_cmpxchg##suffix(A *v, T *o, T n) \
	{                                                                \
		return try_cmpxchg##suffix(&v->counter, o, n);           \
	}                                                                \
	static inline T prefix##_inc_return##suffix(A *v)                \
	{                                                                \
		return prefix##_add_return##suffix(1, v);                \
	}                                                                \
	static inline T prefix##_dec_return##suffix(A *v)                \
	{                                                                \
		return prefix##_sub_return##suffix(1, v);                \
	}                                                                \
	static inline T prefix##_fetch_inc##suffix(A *v)                 \
	{                                                                \
		return prefix##_fetch_add##suffix(1, v);                 \
	}                                                                \
	static inline T prefix##_fetch_dec##suffix(A *v)                 \
	{                                                                \
		return prefix##_fetch_sub##suffix(1, v);                 \
	}
#define LW_ATOMIC(prefix, A, T)                                       \
	static inline T prefix##_read(const A *v)                     \
	{                                                             \
		return READ_ONCE(v->counter);                         \
	}                                                             \
	static inline T prefix##_read_acquire(const A *v)             \
	{                                                             \
		return smp_load_acquire(&v->counter);                 \
	}                                                             \
	static inline void prefix##_set(A *v, T i)                    \
	{                                                             \
		WRITE_ONCE(v->counter, i);                            \
	}                                                             \
	static inline void prefix##_set_release(A *v, T i)            \
	{                                                             \
		smp_store_release(&v->counter, i);                    \
	}                                                             \
	LW_ORDERS(prefix, A, T, add, add, i)                          \
	LW_ORDERS(prefix, A, T, sub, sub, i)                          \
	LW_ORDERS(prefix, A, T, and, and, i)                          \
	LW_ORDERS(prefix, A, T, or, or, i)                            \
	LW_ORDERS(prefix, A, T, xor, xor, i)                          \
	LW_ORDERS(prefix, A, T, andnot, and, ~i)                      \
	LW_RETURNS(prefix, A, T, add, +)                              \
	LW_RETURNS(prefix, A, T, sub, -)                              \
	LW_SUFFIXED(prefix, A, T, )                                   \
	LW_SUFFIXED(prefix, A, T, _relaxed)                           \
	LW_SUFFIXED(prefix, A, T, _acquire)                           \
	LW_SUFFIXED(prefix, A, T, _release)                           \
	static inline void prefix##_inc(A *v)                         \
	{                                                             \
		prefix##_add(1, v);                                   \
	}                                                             \
	static inline void prefix##_dec(A *v)                         \
	{                                                             \
		prefix##_sub(1, v);                                   \
	}                                                             \
	static inline bool prefix##_inc_and_test(A *v)                \
	{                                                             \
		return prefix##_inc_return(v) == 0;                   \
	}                                                             \
	static inline bool prefix##_dec_and_test(A *v)                \
	{                                                             \
		return prefix##_dec_return(v) == 0;                   \
	}                                                             \
	static inline bool prefix##_sub_and_test(T i, A *v)           \
	{                                                             \
		return prefix##_sub_return(i, v) == 0;                \
	}                                                             \
	static inline bool prefix##_add_negative(T i, A *v)           \
	{                                                             \
		return prefix##_add_return(i, v) < 0;                 \
	}                                                             \
	static inline T prefix##_fetch_add_unless(A *v, T i, T u)     \
	{                                                             \
		T c = prefix##_read(v);                               \
                                                                      \
		while (c != u && !prefix##_try_cmpxchg(v, &c, c + i)) \
			;                                             \
		return c;                                             \
	}                                                             \
	static inline bool prefix##_add_unless(A *v, T i, T u)        \
	{                                                             \
		return prefix##_fetch_add_unless(v, i, u) != u;       \
	}                                                             \
	static inline bool prefix##_inc_not_zero(A *v)                \
	{                                                             \
		return prefix##_add_unless(v, 1, 0);                  \
	}                                                             \
	static inline T prefix##_dec_if_positive(A *v)                \
	{                                                             \
		T c = prefix##_read(v);                               \
                                                                      \
		while (c > 0 && !prefix##_try_cmpxchg(v, &c, c - 1))  \
			;                                             \
		return c - 1;                                         \
	}

LW_ATOMIC(atomic, atomic_t, int)
LW_ATOMIC(atomic64, atomic64_t, s64)
LW_ATOMIC(atomic_long, atomic_long_t, long)

#endif
