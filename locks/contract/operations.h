/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The first half of the contract: everything that a lock may do to shared memory. The second half
 * is in surroundings.h: everything that a lock may know of its surroundings. Each world defines the
 * operations of both in its world.h and world_surroundings.h, which the compiler finds by include
 * path:
 *
 *   user    C11 atomics, thread slots, futex, getcpu
 *   kernel  the Linux atomics, per-CPU data
 *   sim     calls into a NUMA machine simulator with virtual time
 *   check   calls into a model checker with a weak memory model
 *
 * Shared variables have the type lw_atomic(T), so that any access without these operations does not
 * compile. `order` is one of
 *
 *   relaxed, acquire, release, acq_rel, seq_cst
 *   dependency   orders what is reached *through* the loaded value. kernel: the address dependency
 *                itself; everywhere else: acquire.
 *
 * user and check take every order as C11 defines it. kernel may strengthen it. sim uses it to
 * decide which stores of a weakly ordered machine wait for which.
 */
#ifndef LW_OPERATIONS_H
#define LW_OPERATIONS_H

#include "world.h"

/*
 * lw_constant(value, checked)
 *	A constant of a lock. check: `checked`, which is low, so that a check has few states. A
 *	number of polls is 1 or 0 there, because any poll may be the last.
 */
#if !defined(lw_constant)
#error "world.h lacks constants"
#endif

/*
 * Memory
 *
 * lw_load(p, order)
 *	Load *p.
 * lw_store(p, value, order)
 *	Store `value` to *p. sim: posted through the store buffer, so that the writer does not
 *	stall.
 * lw_xchg(p, value, order)
 *	Exchange: store `value` and return the old value.
 * lw_try_cmpxchg(p, expected, value, order)
 *	Compare and swap: if *p equals *expected, store `value` and return true. Otherwise copy *p
 *	to *expected (relaxed) and return false. Never fails spuriously.
 * lw_fetch_or(p, bits, order), lw_fetch_and(p, bits, order), lw_fetch_add(p, value, order)
 *	Or, and, add. They return the old value.
 * lw_field_load(word, field, order), lw_field_store(word, field, value, order),
 * lw_field_xchg(word, field, value, order), lw_field_fetch_or(word, field, bits, order),
 * lw_field_fetch_and(word, field, bits, order),
 * lw_field_try_cmpxchg(word, field, expected, value, order)
 *	The same operations on one named piece of a lock word (lock_word.h). In every world each is
 *	a single atomic step that does not change the other pieces.
 * lw_fence(order)
 * lw_release_is_split()
 *	True where a lock word is read and then released by a store, because that costs less than a
 *	compare-and-swap that does both in one step. user: yes. check: as configured.
 * lw_waiters_park()
 *	May a waiter yield its CPU, or be preempted while it is the next to acquire a lock? Where it
 *	may not, a lock can rely on it to run. user: yes. kernel: no. check: yes. sim: if there are
 *	more threads than CPUs.
 * lw_writers_park()
 *	May a writer park while it waits for readers? They do not know its slot. kernel: no.
 *	Elsewhere lw_waiters_park().
 * lw_barrier()
 *	Order against an interrupt or signal handler on this CPU or thread only. check: nothing,
 *	since such an interruption may come before every operation.
 * lw_prefetch(p), lw_prefetch_write(p)
 *	This CPU will soon read *p, or write to it: fetch its cache line for that. A hint.
 */
#if !defined(lw_load) || !defined(lw_store) || !defined(lw_xchg) || !defined(lw_try_cmpxchg) || \
	!defined(lw_fetch_or) || !defined(lw_fetch_and) || !defined(lw_fetch_add)
#error "world.h lacks an operation on memory"
#endif
#if !defined(lw_field_load) || !defined(lw_field_store) || !defined(lw_field_xchg) || \
	!defined(lw_field_fetch_or) || !defined(lw_field_fetch_and) ||                \
	!defined(lw_field_try_cmpxchg)
#error "world.h lacks an operation on a piece of a lock word"
#endif
#if !defined(lw_fence) || !defined(lw_release_is_split) || !defined(lw_waiters_park) || \
	!defined(lw_writers_park) || !defined(lw_barrier) || !defined(lw_prefetch) ||   \
	!defined(lw_prefetch_write)
#error "world.h lacks an operation that orders memory, or one that prefetches"
#endif

/*
 * Waiting: the condition is data, so that sim and check can block until it is true.
 *
 * lw_await_eq(p, mask, value, order)
 *	Wait until (*p & mask) == value. Returns the value of *p that ended the wait.
 * lw_await_ne(p, mask, value, order)
 *	Wait until (*p & mask) != value. Returns the value of *p that ended the wait.
 * lw_await_eq_soon(p, mask, value, order), lw_await_ne_soon(p, mask, value, order)
 *	The same, for a change that another thread makes in its next few steps. user: parks for a
 *	short time after many polls, because that thread may not run while this one polls, for
 *	example under SCHED_FIFO.
 * lw_await_ne_bounded(p, mask, value, budget)
 *	lw_await_ne(), relaxed, for a bounded time: `budget` polls (user, kernel), the time of
 *	`budget` polls (sim), or any time (check). Returns the value of the last poll.
 * lw_await_ne_backoff(p, mask, value, budget)
 *	lw_await_ne_bounded(), for a line that its writer uses all the time. user, kernel: the
 *	pauses between polls grow up to a limit, for `budget` pauses in all.
 * lw_pause(n)
 *	`n` pauses between two attempts at something that cannot be awaited. user, kernel: loads
 *	that follow begin after them, even those that the processor makes ahead while it guesses
 *	that the pauses are over. Such a load would take the cache line from the thread
 *	that uses it.
 * lw_pause_long()
 *	One pause, for a thread that has made many attempts. user: sleeps for 50 microseconds for
 *	each thread that does so now.
 * lw_park(p, value, limit)
 *	Park: yield the CPU while *p == value, until woken or until the wait limit. May return
 *	early, so the caller checks again. `p` is an lw_atomic(uint32_t). user: a futex. kernel:
 *	halts the virtual CPU. sim: yields the CPU. check: blocks, and wakes spuriously.
 * lw_park_bounded(p, value, limit, nth)
 *	lw_park(), for a waiter that a release may miss if lw_release_is_split(). user: for 2^nth
 *	milliseconds at most; true if that time has passed. check: any time, if the release is
 *	split.
 * lw_unpark(p, slot)
 *	Wake one thread that is parked on p; kernel: the CPU of `slot`. Does not access *p.
 * lw_cpu_mark()
 *	A mark of the CPU that runs this thread: an odd number from 1 to 253, which few CPUs share.
 *	user: if the C library does not register rseq, a mark of the thread. kernel, check: 1.
 * lw_was_here(mark)
 *	Is `mark` that of this CPU, without its bit 0? kernel: yes. check: both answers.
 * lw_may_run(mark)
 *	May the thread run that took `mark` a while ago? user, sim: not if this thread runs on that
 *	CPU, or if it is LW_CPU_MARK_NONE. kernel: yes. check: both answers.
 * lw_slice_request()
 *	This thread has acquired a lock. Ask the scheduler that it leaves the CPU to this thread for
 *	some microseconds more if the time slice ends before lw_slice_end(). Does nothing if that is
 *	asked already. user: a byte of rseq, if the tunable mutex_slice is set. kernel, check:
 *	nothing.
 * lw_slice_end()
 *	It has released the lock. Give the CPU back if the time slice was extended.
 */
#if !defined(lw_await_eq) || !defined(lw_await_ne) || !defined(lw_await_eq_soon) || \
	!defined(lw_await_ne_soon) || !defined(lw_await_ne_bounded) ||              \
	!defined(lw_await_ne_backoff)
#error "world.h lacks an operation that awaits a value"
#endif
#if !defined(lw_cpu_mark) || !defined(lw_was_here) || !defined(lw_may_run)
#error "world.h lacks an operation on marks of CPUs"
#endif
#define LW_CPU_MARK_NONE 0xffu /* no CPU has it */
#if !defined(lw_pause) || !defined(lw_pause_long) || !defined(lw_park) ||                 \
	!defined(lw_park_bounded) || !defined(lw_unpark) || !defined(lw_slice_request) || \
	!defined(lw_slice_end)
#error "world.h lacks an operation that pauses, parks, wakes or extends time slices"
#endif

/*
 * Data that a lock protects. Tests and workloads access it, and locks never do.
 *
 * lw_plain_read(p), lw_plain_write(p, value)
 *	sim: a load or store that takes time. check: a data race here is an error.
 */
#if !defined(lw_plain_read) || !defined(lw_plain_write)
#error "world.h lacks an operation on plain data"
#endif

#endif
