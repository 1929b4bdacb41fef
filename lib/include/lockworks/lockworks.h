/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Lockworks: scalable locks.
 *
 * Each lock has the same three operations:
 *
 *   lw_X_lock(&lock)     wait until the lock is ours; acquire
 *   lw_X_trylock(&lock)  take it if that needs no waiting; acquire if true
 *   lw_X_unlock(&lock)   release; only the holder may
 *
 * and struct lw_mcs takes a second argument, a queue node that the caller lends from
 * lock to unlock. None is recursive, none fails and none allocates memory, but
 * that struct lw_hq maps 256 KiB for each NUMA node when it first needs them, and
 * does without where that fails. All zero bytes are an unlocked lock, so static
 * and zeroed memory needs no initialiser; but struct lw_hq does (LW_HQ_INIT), or it
 * is a plain queued spinlock for good, and Linux' mutexes do (LW_MUTEX37_INIT, LW_MUTEX310_INIT).
 * No lock needs to be destroyed.
 *
 *   type          bytes  order of waiters            from
 *   struct lw_tas            1  none, may starve            Rudolph and Segall 1984
 *   union lw_ticket         4  FIFO                        Reed and Kanodia 1979
 *   struct lw_mcs            8  FIFO                        Mellor-Crummey and Scott 1991
 *   struct lw_qspinlock      4  FIFO among the queued       Linux 4.2, Long and Zijlstra
 *   struct lw_cna            4  same node first, bounded    Dice and Kogan 2019, Linux v13
 *   struct lw_hq             4  same node first, bounded    HQ-spinlock series of 2025/26
 *   struct lw_mutex          4  arrivals first, then the    Long; Kashyap and others, 2019
 *                               same node, both bounded
 *   struct lw_pv             4  FIFO, arrivals go first     Long, pvqspinlock, 2014 and 2015
 *   struct lw_unfair         4  who runs goes first         Long, the same series
 *   struct lw_pv42           4  FIFO among the queued       Linux 4.2, for comparison
 *   struct lw_pvticket       4  FIFO                        Linux 4.1, for comparison
 *   struct lw_mutex37       32  who runs goes first         Linux 3.7, for comparison
 *   struct lw_mutex310      32  the same                    Linux 3.10, for comparison
 *   struct lw_byte           1  none, may starve            Linux in guests, for comparison
 *
 * ALL BUT pv, unfair, pv42, pvticket AND THE MUTEXES SPIN. A waiter never sleeps then, so with more
 * runnable threads than CPUs a waiter or the next in line may wait for a time slice at
 * every hand-off. The FIFO ones collapse, by a factor of hundreds: use them where each
 * thread has a CPU of its own, and struct lw_mutex where threads may outnumber CPUs. Their waiters
 * sleep on a futex, the only system call that they make once a thread has its slot
 * (lw_thread_attach()).
 *
 * Signal handlers may use locks, as long as they take none that the thread they
 * interrupt may hold (of lw_mutex37 and lw_mutex310 none that it may use at all); so
 * may constructors, key destructors and any number of threads. Where the queue nodes run out
 * (handlers nested more than four deep while queued, more than 16,127 threads), a waiter tries
 * until the queue is empty, outside of any order.
 *
 * A lock's waiters queue by the number of their slot in this process's one copy of
 * the library: no lock may lie in memory shared between processes (struct lw_tas,
 * struct lw_byte and union lw_ticket may), and the static and the shared library do not go
 * together. All threads use a struct lw_hq at the same address: waiters find their queues by it.
 *
 * In the child of a fork only the forking thread goes on. Locks that it holds
 * are its own still. A lock that another thread held or waited for at the fork
 * must be made anew in the child before it is used there, for that thread will
 * neither release it nor leave its queue; but struct lw_mutex, struct lw_pv, struct
 * lw_unfair and struct lw_pv42 need not be for having been waited for (lw_unfair only if
 * nobody was just leaving its queue, which takes some nanoseconds). A struct lw_cond for
 * which others waited must be made anew there: its queue was on their stacks. Where a
 * signal handler forks while the thread waits for a lock, that does not do for a struct
 * lw_hq in the child: set lw_set_numa_spinlock(LW_NUMA_OFF) there before others are
 * contended for.
 */
#ifndef LOCKWORKS_H
#define LOCKWORKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The layout of a lock word needs structures without a name, as in C11 but not C++. */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wpedantic"
#include "byte.h"
#include "cna.h"
#include "cond.h"
#include "events.h"
#include "hq.h"
#include "lock_type.h"
#include "lockref_type.h"
#include "lockrefs.h"
#include "mcs.h"
#include "mutex.h"
#include "mutex37.h"
#include "nearness.h"
#include "wait_limit.h"
#include "pv.h"
#include "pvticket.h"
#include "qspinlock.h"
#include "tas.h"
#include "ticket.h"
#include "tunables.h"
#include "unfair.h"
#pragma GCC diagnostic pop

#define LW_VERSION "0.1.0"

/* Static initialisers: an unlocked lock. */
/* clang-format off */
#define LW_TAS_INIT	  {{0}}
#define LW_BYTE_INIT	  {{{0}}}
#define LW_TICKET_INIT	  {{0}}
#define LW_MCS_INIT	  {{0}}
#define LW_QSPINLOCK_INIT {{{0}}}
#define LW_CNA_INIT	  {{{0}}}
#define LW_HQ_INIT	  {{{LW_HQ}}}
#define LW_PVTICKET_INIT  {{{0}}}
#define LW_PV_INIT	  {{{0}}}
#define LW_PV42_INIT	  {{{0}}}
#define LW_UNFAIR_INIT	  {{{0}}}
#define LW_MUTEX_INIT	  {{{0}}}
#define LW_COND_INIT	  {{{{0}}}, {0}, {0}}
#define LW_MUTEX37_INIT	  {{{1}, {{0}}, {0}, {0}, {0}}}
#define LW_MUTEX310_INIT  {{{1}, {{0}}, {0}, {0}, {0}}}
#define LW_CANCEL_INIT	  {{0}, {0}}
#define LW_LOCKREF_HQ_INIT(n) LW_LOCKREF_INIT_WITH(LW_HQ, n)
/* clang-format on */

#ifdef __cplusplus
#define LW_STATIC_ASSERT static_assert
#else
#define LW_STATIC_ASSERT _Static_assert
#endif
/* What programs are compiled with, and so stays as long as the name of the shared library. */
#define LW_ABI(type, bytes, alignment)                                              \
	LW_STATIC_ASSERT(sizeof(type) == (bytes), #type " takes " #bytes " bytes"); \
	LW_STATIC_ASSERT(__alignof__(type) == (alignment), #type " is aligned to " #alignment)
LW_ABI(struct lw_tas, 1, 1);
LW_ABI(struct lw_byte, 1, 1);
LW_ABI(union lw_ticket, 4, 4);
LW_ABI(struct lw_mcs, sizeof(void *), __alignof__(void *));
LW_ABI(struct lw_mcs_node, 2 * sizeof(void *), __alignof__(void *));
LW_ABI(struct lw_qspinlock, 4, 4);
LW_ABI(struct lw_cna, 4, 4);
LW_ABI(struct lw_hq, 4, 4);
LW_ABI(struct lw_pvticket, 4, 4);
LW_ABI(struct lw_pv42, 4, 4);
LW_ABI(struct lw_pv, 4, 4);
LW_ABI(struct lw_unfair, 4, 4);
LW_ABI(struct lw_mutex, 4, 4);
LW_ABI(struct lw_mutex37, 32, 8);
LW_ABI(struct lw_mutex310, 32, 8);
LW_ABI(struct lw_cond, 8 + 2 * sizeof(void *), __alignof__(void *));
LW_ABI(struct lw_cancel, 8, 4);
LW_ABI(union lw_lockref, 8, 8);
#define LW_LOCKREF(id, ...) LW_ABI(union lw_lockref_##id, 8, 8);
#include "lockref_list.h"
#undef LW_ABI
#undef LW_STATIC_ASSERT

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

/* Version of the library in use, as LW_VERSION is that of this header. */
const char *lw_version(void);

/*
 * Lock types
 *
 * All locks behind one interface, struct lw_lock_type in lock_type.h, for
 * programs that choose one at run time. The table ends with NULL and includes
 * `busted`, which excludes nobody (LW_BROKEN), to test test programs with.
 */
extern const struct lw_lock_type *const lw_lock_types[];

/* The lock type of that name, or NULL. */
const struct lw_lock_type *lw_lock_type_find(const char *name);

/*
 * Lockrefs
 *
 * A lock and a count of references in 8 bytes: union lw_lockref_X contains the
 * lock lw_X, for X tas, ticket, qspinlock, cna or hq. While nobody holds the
 * lock, references are got and put by one compare-and-swap. lockref.h has the operations,
 * lw_lockref_X_get(&ref) and so on. lw_lockref_X_init(&ref, n) makes one with n references,
 * and so does LW_LOCKREF_INIT(n); zero bytes are one with none. But union lw_lockref_hq has
 * LW_LOCKREF_HQ_INIT(n), as its lock has LW_HQ_INIT. LW_DEFINE_LOCKREF(id, type, word,
 * unlocked) defines such a type around a lock of your own. This table, which ends with NULL, has
 * all behind one interface, that of lockref_type.h.
 */
extern const struct lw_lockref_type *const lw_lockref_types[];

/*
 * Tunables
 *
 * They hold for the whole process and may change at any time, also while locks
 * are contended. The environment sets them when the program starts; a value that
 * it may not have is refused with a line on standard error, and the default
 * stays. The functions give 0, or EINVAL for such a value, and change nothing
 * then.
 */

/* LOCKWORKS_NUMA_SPINLOCK=auto|on|off */
int lw_set_numa_spinlock(enum lw_numa_mode mode);
enum lw_numa_mode lw_numa_spinlock(void);
/* What the mode comes to on this machine. */
bool lw_numa_spinlock_active(void);

/*
 * LOCKWORKS_NUMA_SPINLOCK_THRESHOLD=1..100: milliseconds for which struct lw_cna may
 * pass over waiters of other nodes before it turns to one of them; so with n
 * nodes, one waits for up to n - 1 times as long. 10 by default (bounds and
 * default are in tunables.h). Time is told by a coarse clock, whose ticks are 1 to 10 ms apart.
 */
int lw_set_numa_spinlock_threshold(unsigned int ms);
unsigned int lw_numa_spinlock_threshold(void);

/*
 * LOCKWORKS_SHUFFLE_REDUCTION=on|off: while nobody is passed over, struct lw_cna looks
 * for somebody to pass over at one hand-off in 128 only. On by default.
 */
void lw_set_shuffle_reduction(bool on);
bool lw_shuffle_reduction(void);

/* LOCKWORKS_PRIORITY_WAITERS=on|off: struct lw_cna never passes over priority threads. On by
 * default. */
void lw_set_priority_waiters(bool on);
bool lw_priority_waiters(void);

/*
 * Of single locks, by name: tunables_list.h has them with bounds, defaults and meaning;
 * that of LOCKWORKS_HQLOCK_FAIRNESS_THRESHOLD, for one, is
 * LW_TUNABLE_hqlock_fairness_threshold here (enum lw_tunable_id). lw_tunables has one
 * entry for each. A variable that begins like these but is none is told of as well.
 */
struct lw_tunable_description {
	const char *name;
	uint64_t default_value;
	uint64_t kernel_default; /* in a kernel, and where one is simulated or checked */
	uint64_t maximum;	 /* the least is 0 */
	const char *meaning;
};
extern const struct lw_tunable_description lw_tunables[LW_TUNABLE_COUNT];

int lw_set_tunable(enum lw_tunable_id id, uint64_t value);
/* 0 if there is no such tunable. */
uint64_t lw_tunable_value(enum lw_tunable_id id);

/*
 * Waiting that ends
 *
 * As lw_X_lock(), but until a time of `clock`, CLOCK_MONOTONIC or CLOCK_REALTIME, or until another
 * thread has called lw_cancel(), or a signal handler; NULL stands for never. They give
 *
 *   0          the lock is acquired; so it is in any case if that needs no waiting
 *   ETIMEDOUT  the time has come
 *   ECANCELED  it has been cancelled, before or meanwhile, whether the time has come or not
 *   EINVAL     the clock is another, or the time none: its nanoseconds are
 *              not from 0 to 999,999,999
 *
 * A struct lw_cancel is for one waiter at a time, stays cancelled, and must not go before
 * the last call of lw_cancel() has returned. Waiting is no cancellation point: who is
 * waiting when pthread_cancel() is called waits on.
 */
int lw_mutex_lock_until(struct lw_mutex *mutex, clockid_t clock, const struct timespec *deadline,
			struct lw_cancel *cancel);
int lw_pv_lock_until(struct lw_pv *lock, clockid_t clock, const struct timespec *deadline,
		     struct lw_cancel *cancel);
int lw_unfair_lock_until(struct lw_unfair *lock, clockid_t clock, const struct timespec *deadline,
			 struct lw_cancel *cancel);
void lw_cancel(struct lw_cancel *cancel);

/*
 * Condition variables
 *
 * Call with `mutex` locked: releases it, waits until signalled, acquires it again. As with all
 * such, look at the condition again afterwards; there are no wake-ups for no reason, but others may
 * have been quicker to the mutex. lw_cond_wait_until() also returns when a time of `clock` has come
 * (NULL: never): ETIMEDOUT; 0 when signalled; EINVAL, at once and with the mutex still locked, as
 * above.
 *
 * lw_cond_signal(&cond) is for the one who has waited longest, lw_cond_broadcast(&cond) for all who
 * wait: no one who comes later gets what is meant for them. With nobody waiting either is one load.
 * All threads may use different mutexes. Whoever signals need hold none, but must have held the
 * waiters' since it made the condition true: a signal orders no memory, the mutex does. Zero bytes
 * or LW_COND_INIT are a condition variable for which nobody waits. lw_cond_destroy() comes before
 * its memory goes, and may as soon as nobody waits who has not been signalled, though they have yet
 * to return.
 */
void lw_cond_wait(struct lw_cond *cond, struct lw_mutex *mutex);
int lw_cond_wait_until(struct lw_cond *cond, struct lw_mutex *mutex, clockid_t clock,
		       const struct timespec *deadline);

/*
 * Threads
 */

/*
 * Take this thread's slot, its queue nodes, now rather than at its first
 * contended acquisition. Gives its number, from 1; 0 when none is left or the
 * thread is exiting. It is returned when the thread exits.
 */
unsigned int lw_thread_attach(void);

enum lw_thread_priority {
	LW_PRIORITY_AUTO, /* if its scheduling class is a real-time one; the default */
	LW_PRIORITY_ON,
	LW_PRIORITY_OFF,
};

/*
 * Is this thread a priority thread? `auto` looks its scheduling class up now;
 * otherwise that happens at its first contended acquisition, so call this after
 * a later change of class. Gives 0, or EINVAL.
 */
int lw_thread_set_priority(enum lw_thread_priority priority);

/*
 * Statistics
 */

/*
 * What the slow paths of the queued locks have counted since the program
 * started, one number for each event of events.h, in its order. Fast paths count
 * nothing. Exact while no lock is in use. A forked child goes on from its
 * parent's.
 */
void lw_statistics(uint64_t counts[LW_EVENT_COUNT]);
/* Name and meaning of an event; NULL from LW_EVENT_COUNT on. */
const char *lw_event_name(unsigned int event);
const char *lw_event_meaning(unsigned int event);
/* Is its number not a sum, but the highest value that came? */
bool lw_event_is_maximum(unsigned int event);
/* From now on the highest values are those that come from now on. While no lock is in use. */
void lw_statistics_restart_maxima(void);

/*
 * Topology
 *
 * What struct lw_cna and struct lw_hq take for a node: a set of CPUs that are near each other.
 * Numbers run from 0 without gaps, whatever those of the NUMA nodes. Threads are told apart by the
 * CPU on which they queue.
 *
 *   LOCKWORKS_NEAR=node|llc      a NUMA node (default) or a last-level cache
 *   LOCKWORKS_TOPOLOGY=0-3,8:4-7 as said here: node 0 has CPUs 0 to 3 and 8,
 *                                node 1 has 4 to 7, all others are in node 0
 */

/* How many nodes there are, at least 1. */
unsigned int lw_topology_nodes(void);
/* Node of a CPU; 0 for one that the system did not name. */
unsigned int lw_topology_node_of_cpu(unsigned int cpu);
/* Node that this thread runs on now. */
unsigned int lw_current_node(void);
/* Why all CPUs count as one node although the system may have more; NULL when all is well. */
const char *lw_topology_warning(void);

/*
 * Read the topology anew, with that meaning of near, in place of what the
 * environment said. Gives 0, or EINVAL. Not for signal handlers.
 */
int lw_set_near(enum lw_near near);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif
#endif
