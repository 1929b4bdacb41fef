/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Lockworks: scalable locks for C.
 *
 * Operations
 *
 *   lw_X_lock(&lock)     waits until the lock is free, and acquires it
 *   lw_X_trylock(&lock)  acquires the lock if that needs no waiting; returns whether it did
 *   lw_X_unlock(&lock)   releases the lock, which the calling thread must hold
 *
 * Acquisitions have acquire order, releases have release order. struct lw_mcs takes a second
 * argument: a queue node, which the caller lends from lock to unlock.
 *
 * No lock is recursive, except that a thread may read a struct lw_rwlock again. No operation fails,
 * and no lock needs to be destroyed. No operation allocates memory, with one exception: struct
 * lw_hq maps 256 KiB for each NUMA node when it first needs them, and works without them if that
 * fails.
 *
 * Initialisation
 *
 * Zero bytes are an unlocked lock, so static and zeroed memory needs no initialiser. The exception
 * is struct lw_hq, which needs LW_HQ_INIT; with zero bytes it stays a plain queued spinlock for
 * good.
 *
 * Locks
 *
 *   type                 bytes  order of waiters            source
 *   struct lw_tas            1  none, may starve            Rudolph and Segall 1984
 *   union lw_ticket          4  FIFO                        Reed and Kanodia 1979
 *   struct lw_mcs            8  FIFO                        Mellor-Crummey and Scott 1991
 *   struct lw_qspinlock      4  FIFO among the queued       Linux 4.2, Long and Zijlstra
 *   struct lw_cna            4  same node first, bounded    Dice and Kogan 2019, Linux v13
 *   struct lw_hq             4  same node first, bounded    HQ-spinlock series of 2025/26
 *   struct lw_mutex          4  arrivals first, then the    Long; Kashyap and others, 2019
 *                               same node, both bounded
 *   struct lw_rwlock         8  as mutex; readers together  Dice and Kogan, BRAVO, 2019
 *   struct lw_pv             4  FIFO, arrivals may steal    Long, pvqspinlock, 2014 and 2015
 *   struct lw_unfair         4  running waiters first       Long, the same series
 *
 * Spinning
 *
 * ALL LOCKS SPIN EXCEPT mutex, rwlock, pv AND unfair. Waiters of a lock that spins never sleep.
 * With more runnable threads than CPUs, every hand-off may then wait for a time slice, because the
 * next waiter is not running. FIFO locks become hundreds of times slower. Use locks that spin if
 * each thread has a CPU of its own, and struct lw_mutex if threads may outnumber CPUs. Waiters that
 * sleep park on a futex. That is the only system call that they make once their thread has its slot
 * (lw_thread_attach()).
 *
 * Where locks may be used
 *
 * Any number of threads may use locks, also in constructors and key destructors. Signal handlers
 * may use them too, but no lock that the interrupted thread may hold.
 *
 * There are no free queue nodes with more than 16,127 threads, and in handlers that nest more than
 * four deep while their threads queue. A waiter without a queue node tries until the queue is
 * empty. Such waiters are served in no order.
 *
 * Waiters queue by the number of their slot, which belongs to one copy of the library. So no lock
 * may be in memory that processes share, except struct lw_tas and union lw_ticket. A
 * program must not have both the static and the shared library. All threads must use a struct
 * lw_hq at the same address, because waiters find their queues by it.
 *
 * Fork
 *
 * In the child of a fork only the forking thread goes on. It still holds the locks that it held. A
 * lock that another thread held at the fork must be initialised again in the child before it is
 * used there. So must a struct lw_mcs, union lw_ticket or struct lw_rwlock for which another thread
 * waited, and a struct lw_unfair, if a thread was leaving its queue at that moment, which takes
 * some nanoseconds. A struct lw_cond must if other threads waited for it, because its queue was on
 * their stacks.
 *
 * A signal handler may fork while its thread waits for a lock, or releases it. That lock must be
 * initialised again in the child. If the thread waited for a struct lw_hq, that does not suffice:
 * call lw_set_numa_spinlock(LW_NUMA_OFF) there before other locks of that type are contended.
 */
#ifndef LOCKWORKS_H
#define LOCKWORKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The layout of a lock word needs structures without a name, as in C11 but not C++. */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wpedantic"
#include "cna.h"
#include "cond.h"
#include "events.h"
#include "hq.h"
#include "lock_type.h"
#include "lockref_type.h"
#include "lockrefs.h"
#include "mcs.h"
#include "mutex.h"
#include "nearness.h"
#include "wait_limit.h"
#include "pv.h"
#include "qspinlock.h"
#include "rwlock.h"
#include "tas.h"
#include "ticket.h"
#include "tunables.h"
#include "unfair.h"
#pragma GCC diagnostic pop

/* The version of this header. */
#define LW_VERSION "0.1.0"

/* Static initialisers. Each is an unlocked lock. */
/* clang-format off */
#define LW_TAS_INIT	  {{0}}
#define LW_TICKET_INIT	  {{0}}
#define LW_MCS_INIT	  {{0}}
#define LW_QSPINLOCK_INIT {{{0}}}
#define LW_CNA_INIT	  {{{0}}}
#define LW_HQ_INIT	  {{{LW_HQ}}}
#define LW_PV_INIT	  {{{0}}}
#define LW_UNFAIR_INIT	  {{{0}}}
#define LW_MUTEX_INIT	  {{{0}}}
#define LW_RWLOCK_INIT	  {{{{0}}}, {0}}
#define LW_COND_INIT	  {{{{0}}}, {0}, {0}, {0}}
#define LW_CANCEL_INIT	  {{0}, {0}}
#define LW_LOCKREF_HQ_INIT(n) LW_LOCKREF_INIT_WITH(LW_HQ, n)
/* clang-format on */

#ifdef __cplusplus
#define LW_STATIC_ASSERT static_assert
#else
#define LW_STATIC_ASSERT _Static_assert
#endif
/*
 * The sizes and alignments that programs are compiled with. They may change only together with the
 * name of the shared library.
 */
#define LW_ABI(type, bytes, alignment)                                              \
	LW_STATIC_ASSERT(sizeof(type) == (bytes), #type " takes " #bytes " bytes"); \
	LW_STATIC_ASSERT(__alignof__(type) == (alignment), #type " is aligned to " #alignment)
LW_ABI(struct lw_tas, 1, 1);
LW_ABI(union lw_ticket, 4, 4);
LW_ABI(struct lw_mcs, sizeof(void *), __alignof__(void *));
LW_ABI(struct lw_mcs_node, 2 * sizeof(void *), __alignof__(void *));
LW_ABI(struct lw_qspinlock, 4, 4);
LW_ABI(struct lw_cna, 4, 4);
LW_ABI(struct lw_hq, 4, 4);
LW_ABI(struct lw_pv, 4, 4);
LW_ABI(struct lw_unfair, 4, 4);
LW_ABI(struct lw_mutex, 4, 4);
LW_ABI(struct lw_rwlock, 8, 4);
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

/* Returns the version of the library that the program runs with. LW_VERSION is this header's. */
const char *lw_version(void);

/*
 * Lock types
 *
 * struct lw_lock_type in lock_type.h is one interface to all locks, for programs that choose one at
 * run time.
 */

/*
 * All lock types; NULL ends the table. It includes `busted` (LW_BROKEN), which excludes nobody:
 * test programs can show with it that they notice.
 */
extern const struct lw_lock_type *const lw_lock_types[];

/* Returns the lock type called `name`, or NULL if there is none. */
const struct lw_lock_type *lw_lock_type_find(const char *name);

/*
 * Lockrefs
 *
 * A lockref is a lock and a reference count in 8 bytes. union lw_lockref_X contains the lock lw_X,
 * where X is tas, ticket, qspinlock, cna or hq. While the lock is free, one compare-and-swap gets
 * or puts a reference. lockref.h has the operations: lw_lockref_X_get(&ref) and others.
 *
 * lw_lockref_X_init(&ref, n) and the initialiser LW_LOCKREF_INIT(n) make a lockref with n
 * references. Zero bytes are a lockref without any. union lw_lockref_hq needs LW_LOCKREF_HQ_INIT(n)
 * instead, as its lock needs LW_HQ_INIT.
 *
 * LW_DEFINE_LOCKREF(id, type, word, unlocked) defines a lockref around a lock of your own.
 */

/* All lockref types, with the interface of lockref_type.h; NULL ends the table. */
extern const struct lw_lockref_type *const lw_lockref_types[];

/*
 * Tunables
 *
 * Tunables hold for the whole process. They may change at any time, also while locks are contended.
 * The environment sets them when the program starts. The library refuses a value that is not
 * allowed with a line on standard error, and keeps the default. The functions return 0, or EINVAL
 * for such a value, and then change nothing.
 */

/*
 * Sets whether struct lw_cna, struct lw_hq and struct lw_mutex keep waiters of one NUMA node
 * together; nearness.h has the modes. Otherwise NUMA nodes make no difference to them. Environment:
 * LOCKWORKS_NUMA_SPINLOCK=auto|on|off.
 */
int lw_set_numa_spinlock(enum lw_numa_mode mode);
/* Returns the mode that is set. */
enum lw_numa_mode lw_numa_spinlock(void);
/* Returns whether, in that mode, these locks keep waiters of one NUMA node together here. */
bool lw_numa_spinlock_active(void);

/*
 * Sets how long struct lw_cna may pass over waiters of other NUMA nodes before it turns to one of
 * them, in milliseconds: 1 to 100, by default 10. With n nodes a waiter may wait n - 1 times as
 * long. A coarse clock measures this time, with ticks of 1 to 10 ms.
 * Environment: LOCKWORKS_NUMA_SPINLOCK_THRESHOLD=1..100.
 */
int lw_set_numa_spinlock_threshold(unsigned int ms);
/* Returns that time in milliseconds. */
unsigned int lw_numa_spinlock_threshold(void);

/*
 * Sets whether struct lw_cna searches its queue for waiters to pass over at only one hand-over in
 * 128, while no waiter is passed over. On by default.
 * Environment: LOCKWORKS_SHUFFLE_REDUCTION=on|off.
 */
void lw_set_shuffle_reduction(bool on);
/* Returns whether that is on. */
bool lw_shuffle_reduction(void);

/*
 * Sets whether struct lw_cna never passes over priority threads. On by default.
 * Environment: LOCKWORKS_PRIORITY_WAITERS=on|off.
 */
void lw_set_priority_waiters(bool on);
/* Returns whether that is on. */
bool lw_priority_waiters(void);

/*
 * A tunable of a single lock. tunables_list.h lists them all. The tunable mutex_spin, for example,
 * is LW_TUNABLE_mutex_spin in enum lw_tunable_id and LOCKWORKS_MUTEX_SPIN in the environment. The
 * library reports a variable that begins like a tunable's but is none.
 */
struct lw_tunable_description {
	const char *name;
	uint64_t default_value;
	uint64_t kernel_default; /* in a kernel, and where a kernel is simulated or checked */
	uint64_t maximum;	 /* the minimum is 0 */
	const char *meaning;
};

/* The descriptions of all tunables, in the order of enum lw_tunable_id. */
extern const struct lw_tunable_description lw_tunables[LW_TUNABLE_COUNT];

/* Sets a tunable. Returns EINVAL if there is no such tunable or `value` is above its maximum. */
int lw_set_tunable(enum lw_tunable_id id, uint64_t value);
/* Returns the value of a tunable; 0 if there is no such tunable. */
uint64_t lw_tunable_value(enum lw_tunable_id id);

/*
 * Waits with a limit
 */

/*
 * lw_X_lock_until() acquires the lock as lw_X_lock() does, but stops waiting at `deadline` or when
 * another thread, or a signal handler, cancels the wait. Acquire order if it returns 0.
 *
 *   clock     of the deadline: CLOCK_MONOTONIC or CLOCK_REALTIME
 *   deadline  a time of `clock`; NULL: there is none
 *   cancel    what lw_cancel() cancels; NULL: the wait cannot be cancelled
 *
 * It returns
 *
 *   0          the lock is acquired; always so if that needed no waiting
 *   ETIMEDOUT  the deadline has passed
 *   ECANCELED  the wait was cancelled, before it began or meanwhile; also if the deadline has
 *              passed as well
 *   EINVAL     `clock` is neither of the two, or the nanoseconds of `deadline` are not from 0 to
 *              999,999,999
 *
 * These waits are no cancellation points: pthread_cancel() does not end them.
 */
int lw_mutex_lock_until(struct lw_mutex *mutex, clockid_t clock, const struct timespec *deadline,
			struct lw_cancel *cancel);
/* As lw_mutex_lock_until(). */
int lw_pv_lock_until(struct lw_pv *lock, clockid_t clock, const struct timespec *deadline,
		     struct lw_cancel *cancel);
/* As lw_mutex_lock_until(). */
int lw_unfair_lock_until(struct lw_unfair *lock, clockid_t clock, const struct timespec *deadline,
			 struct lw_cancel *cancel);

/* As lw_mutex_lock_until(). */
int lw_rwlock_lock_until(struct lw_rwlock *lock, clockid_t clock, const struct timespec *deadline,
			 struct lw_cancel *cancel);
/* As lw_mutex_lock_until(), for a reader. */
int lw_rwlock_read_lock_until(struct lw_rwlock *lock, clockid_t clock,
			      const struct timespec *deadline, struct lw_cancel *cancel);

/*
 * Cancels the wait that uses `cancel`, at once or when it begins. A struct lw_cancel serves one
 * waiter at a time and stays cancelled. Its memory must last until the last call of lw_cancel()
 * has returned. Safe in signal handlers.
 */
void lw_cancel(struct lw_cancel *cancel);

/*
 * Condition variables
 *
 * Zero bytes or LW_COND_INIT are a condition variable for which no thread waits. Threads that wait
 * for the same condition variable may use different mutexes.
 *
 *   lw_cond_signal(&cond)     signals the thread that has waited longest
 *   lw_cond_broadcast(&cond)  signals all threads that wait
 *   lw_cond_destroy(&cond)    ends the use of the condition variable, before its memory is freed
 *
 * A thread that begins to wait later never receives an earlier signal. With no waiter a signal or
 * broadcast costs one load. The signalling thread need not hold a mutex, but must have held the
 * waiters' mutex since it made the condition true: a signal orders no memory, the mutex does.
 *
 * A condition variable may be destroyed as soon as every thread that waited for it has been
 * signalled, even if they have not returned yet.
 */

/*
 * Releases `mutex`, which the calling thread must hold, waits for a signal, and acquires `mutex`
 * again. There are no spurious wake-ups, but other threads may have acquired the mutex first: test
 * the condition again in a loop.
 */
void lw_cond_wait(struct lw_cond *cond, struct lw_mutex *mutex);

/*
 * Waits as lw_cond_wait() does, until `deadline`, a time of `clock`; NULL: no deadline. Returns 0
 * after a signal and ETIMEDOUT after the deadline. Returns EINVAL at once, with the mutex still
 * held, for a clock or deadline that lw_mutex_lock_until() refuses.
 */
int lw_cond_wait_until(struct lw_cond *cond, struct lw_mutex *mutex, clockid_t clock,
		       const struct timespec *deadline);

/*
 * Threads
 */

/*
 * Takes this thread's slot and its queue nodes now, rather than at its first contended acquisition.
 * The thread returns them when it exits. Returns the number of the slot, from 1; 0 if no slot is
 * free or the thread is exiting.
 */
unsigned int lw_thread_attach(void);

/* Whether a thread is a priority thread. */
enum lw_thread_priority {
	LW_PRIORITY_AUTO, /* if its scheduling class is a real-time class; the default */
	LW_PRIORITY_ON,
	LW_PRIORITY_OFF,
};

/*
 * Sets whether this thread is a priority thread. LW_PRIORITY_AUTO looks up its scheduling class
 * now. Without this call, that happens at the thread's first contended acquisition, so call it
 * after a later change of class. A thread of a real-time class parks at once where it would spin,
 * whatever its priority here. Returns 0, or EINVAL if there is no such priority.
 */
int lw_thread_set_priority(enum lw_thread_priority priority);

/*
 * Statistics
 *
 * The slow paths of the queued locks count events from the start of the program; fast paths count
 * nothing. events.h lists the events. A forked child goes on from its parent's counts.
 */

/* Writes the count of each event, in the order of events.h. Exact while no lock is in use. */
void lw_statistics(uint64_t counts[LW_EVENT_COUNT]);
/* Returns the name of an event; NULL from LW_EVENT_COUNT on. */
const char *lw_event_name(unsigned int event);
/* Returns what an event means, in a few words; NULL from LW_EVENT_COUNT on. */
const char *lw_event_meaning(unsigned int event);
/* Returns whether the number of an event is the highest value so far, rather than a count. */
bool lw_event_is_maximum(unsigned int event);
/* Sets all highest values to 0. Call it while no lock is in use. */
void lw_statistics_restart_maxima(void);

/*
 * Topology
 *
 * struct lw_cna and struct lw_hq tell threads apart by the node of the CPU on which they queue. A
 * node is a set of CPUs that are near each other: a NUMA node, or the CPUs that share a last-level
 * cache. Nodes are numbered from 0 without gaps, whatever numbers the system uses.
 *
 *   LOCKWORKS_NEAR=node|llc       a node is a NUMA node (default) or a last-level cache
 *   LOCKWORKS_TOPOLOGY=0-3,8:4-7  the nodes themselves: node 0 has CPUs 0 to 3 and 8, node 1 has
 *                                 CPUs 4 to 7; all other CPUs are in node 0
 */

/* Returns the number of nodes, at least 1. */
unsigned int lw_topology_nodes(void);
/* Returns the node of a CPU; 0 for a CPU that the system did not list. */
unsigned int lw_topology_node_of_cpu(unsigned int cpu);
/* Returns the node of the CPU that this thread runs on now. */
unsigned int lw_current_node(void);
/* Returns why all CPUs count as one node although the system may have more; otherwise NULL. */
const char *lw_topology_warning(void);

/*
 * Reads the topology again, with a node as `near` says; nearness.h has the values. The result
 * replaces what the environment said. Returns 0, or EINVAL if there is no such value. Not safe in
 * signal handlers.
 */
int lw_set_near(enum lw_near near);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif
#endif
