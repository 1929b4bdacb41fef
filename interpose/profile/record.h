/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The record that a process under `lockworks profile` writes. It is a file in shared memory, so it
 * remains however the process ends. crates/profile/src/record.rs reads it.
 *
 * A page of the file is made before it is first used. A process that writes to a page for which
 * there is no room in the file system would be killed, so what belongs there is lost instead.
 *
 * A process that cannot have a record sends the error, a uint32_t, as a datagram to the command.
 * The abstract address of that socket is the directory of the records.
 *
 * The table of locks is a hash table by address and mode; entries are never removed. An rwlock has
 * two entries, one for its readers and one for its writers. Each entry has a list of sites: the
 * places in the code that acquire the lock in this mode.
 *
 * Only the holder of a mutex, or the writer of an rwlock, writes its entry and its sites, except
 * for the key. So these need no atomics, and the most recent site is the first. Readers share an
 * entry and its sites: they add to counters and to the list atomically.
 *
 * A thread that begins to wait takes an entry in the table of waits, and frees it when the wait has
 * ended. So a wait that is in progress when the process ends is in the record too.
 *
 * One waiter of a lock, if it waits for long, looks what the holder does, and adds the time to the
 * entry of this cause in the table of causes. The time of the others that wait for long is added to
 * a cause of its own, which the command distributes as the causes that were seen.
 *
 * The waits for a condition at a place have an entry in the table of conditions, and so have its
 * signals at a place. Threads add to an entry atomically.
 *
 * Times are those of lw_profile_now(). The record has one of them beside the time of
 * CLOCK_MONOTONIC, so the command can convert them by such a pair of a later time.
 *
 * Of some acquisitions, the record has copies of the stack, one of the acquisition and one of the
 * release: of the first at each site, and of ever fewer of the contended ones (stacks.c).
 *
 * If a timeline is asked for, each release adds an event to a ring, which so has the most recent
 * acquisitions.
 */
#ifndef LW_PROFILE_RECORD_H
#define LW_PROFILE_RECORD_H

#include <stddef.h>
#include <time.h>

#include "operations.h"

#define LW_PROFILE_MAGIC      0x396b6f4c
#define LW_PROFILE_LOCKS      65536
#define LW_PROFILE_SITES      131072
#define LW_PROFILE_MODULES    4096
#define LW_PROFILE_WAITS      1024
#define LW_PROFILE_CAUSES     8192
#define LW_PROFILE_EVENTS     65536
#define LW_PROFILE_CONDITIONS 4096
#define LW_PROFILE_STACKS     2048

/*
 * The number of empty files of the size of a record that the command makes, by the names "spare-0"
 * and so on. A process that may not make so large a file takes one of them.
 */
#define LW_PROFILE_SPARES 64

/* The mode in which a lock is acquired. The key of a lock has its address and, last, its mode. */
enum lw_profile_mode { LW_PROFILE_MUTEX, LW_PROFILE_READ, LW_PROFILE_WRITE };
#define LW_PROFILE_MODE_BITS 2
#define LW_PROFILE_MODE_MASK ((1 << LW_PROFILE_MODE_BITS) - 1)

/* The kind of an rwlock that processes share. glibc gives mutexes this bit. */
#define LW_PROFILE_SHARED 128

/* A mapping of code, as in /proc/self/maps. */
struct lw_profile_module {
	uint64_t start, end, offset;
	char path[488];
};

/* A lock in one mode. Readers share it: of them it knows one holder, if there is one. */
struct lw_profile_lock {
	lw_atomic(uint64_t) key;	 /* 0: free */
	lw_atomic(uint64_t) hold;	 /* the site, and the kernel's ID of the holder; 0: free */
	lw_atomic(uint64_t) since;	 /* time of the acquisition */
	uint64_t begun;			 /* when the holder began to wait; 0: it did not */
	lw_atomic(uint32_t) first_site;	 /* number of a site, from 1; 0: none */
	uint32_t holder, depth;		 /* depth 0: free, or held since before we recorded */
	lw_atomic(uint32_t) looker;	 /* the kernel's ID of the waiter that looks; 0: none */
	uint32_t last_thread, last_node; /* of the holder before; thread 0: there was none */
	lw_atomic(uint32_t) kind;	 /* as glibc stores that of a mutex, or LW_PROFILE_SHARED */
	uint32_t stack;			 /* number of the copy of the holder's stack; 0: none */
} lw_aligned(64);

struct lw_profile_counter {
	lw_atomic(uint64_t) n;
};

/* The acquisitions of one lock in one mode at one place in the code. */
struct lw_profile_site {
	uint32_t lock; /* index in the table of locks */
	uint32_t next_site;
	uint64_t caller; /* return address of the call; 0: this site is not complete */
	struct lw_profile_counter acquisitions, contended, after_condition;
	struct lw_profile_counter waited, waited_max;
	struct lw_profile_counter held, held_max;
	uint64_t from_same_thread, from_same_node, from_other_node; /* not of readers */
	/* A bit for each thread, by its number modulo 256. */
	struct lw_profile_counter threads[4];
} lw_aligned(64);

/* A wait in progress. */
struct lw_profile_wait {
	lw_atomic(uint64_t) key;    /* 0: free */
	lw_atomic(uint64_t) caller; /* return address of the call */
	lw_atomic(uint64_t) begun;
	lw_atomic(uint64_t) thread; /* number of the thread that waits */
	lw_atomic(uint64_t) tid;    /* the kernel's ID of it */
};

/* The occupation of a lock's holder while another thread waited for the lock, or of the waiter. */
enum lw_profile_what {
	LW_PROFILE_RAN,	      /* in a long section */
	LW_PROFILE_PREEMPTED, /* could run, but had no CPU */
	LW_PROFILE_THROTTLED, /* the CPU quota of its control group was used up */
	LW_PROFILE_SLEPT,     /* in a system call; the detail is its number */
	LW_PROFILE_FAULTED,   /* waited for a page; the detail is the address of the instruction */
	LW_PROFILE_NESTED,    /* waited for another lock; the detail is the return address there */
	LW_PROFILE_IN_TURN,   /* the lock was free, or threads had it in turn, none for long */
	LW_PROFILE_LATE,      /* the same, and the waiter could run, but had no CPU */
	LW_PROFILE_UNSEEN,    /* the kernel does not say; the detail is its error */
	LW_PROFILE_UNWATCHED, /* nobody looked: another waiter did, or there were many looks */
};

/* The time that threads waited long for a lock at one place for one cause. */
struct lw_profile_cause {
	lw_atomic(uint32_t) state; /* 0: free, 1: not complete yet, 2: complete */
	uint32_t what;
	uint64_t key, caller; /* the lock, and the return address of the waiters' call */
	uint64_t holder;      /* the return address of the holder's call; 0: not known */
	uint64_t detail;
	lw_atomic(uint64_t) ns;
	lw_atomic(uint64_t) waits; /* a wait counts at its first cause only */
};

/* The waits for a condition at a place, or its signals there. */
struct lw_profile_condition {
	lw_atomic(uint32_t) state; /* 0: free, 1: not complete yet, 2: complete */
	uint32_t is_signal;
	uint64_t cond, caller; /* the return address of the calls */
	lw_atomic(uint64_t) calls;
	/* Of waits only: those that ended at their deadline, and the wake-ups after which the
	 * thread waited again without unlocking the mutex. */
	lw_atomic(uint64_t) timed_out, for_nothing;
	lw_atomic(uint64_t) waited, waited_max;
};

/* An acquisition that has ended. */
struct lw_profile_event {
	uint64_t key, caller;
	uint64_t begun;		     /* when the thread began to wait; 0: it did not */
	uint64_t acquired, released; /* when */
	uint32_t thread, node;
};

/* The registers of a thread, and what its stack has from the stack pointer on. */
struct lw_profile_frames {
	uint64_t code, stack, frame; /* instruction, stack pointer, frame pointer */
	uint64_t words;		     /* that were copied; 0: nothing */
	uint64_t word[507];
};

/* The stacks of an acquisition and of its release. */
struct lw_profile_stack {
	lw_atomic(uint64_t) site; /* number of the site, from 1; 0: not complete */
	uint64_t waited;	  /* wait time; 0: it was not contended */
	uint64_t stands_for;	  /* acquisitions of the site */
	struct lw_profile_frames acquired, released;
};

struct lw_profile {
	uint64_t magic, size; /* size of this structure */
	uint64_t pid, nodes;
	uint64_t has_tsc; /* whether times are those of the time stamp counter */
	/* The time of the start, by lw_profile_now() and by CLOCK_MONOTONIC. */
	uint64_t time, at_ns;
	lw_atomic(uint64_t) modules, locks, sites; /* entries that were taken */
	lw_atomic(uint64_t) threads;		   /* that have acquired a lock */
	lw_atomic(uint64_t) lost, lost_contended;  /* acquisitions that did not fit */
	lw_atomic(uint64_t) lost_causes;	   /* looks at holders that did not fit */
	lw_atomic(uint64_t) lost_conditions;	   /* waits for conditions, or signals */
	lw_atomic(uint64_t) spun;		   /* time waited for spinlocks */
	lw_atomic(uint64_t) events;		   /* that were added to the ring */
	lw_atomic(uint64_t) stacks;		   /* copies that were asked for */
	/* Time of the exit; 0: ended by exec or a signal. */
	lw_atomic(uint64_t) ended;
	struct lw_profile_wait wait[LW_PROFILE_WAITS];
	struct lw_profile_cause cause[LW_PROFILE_CAUSES];
	struct lw_profile_module module[LW_PROFILE_MODULES];
	struct lw_profile_lock lock[LW_PROFILE_LOCKS];
	struct lw_profile_site site[LW_PROFILE_SITES];
	struct lw_profile_event event[LW_PROFILE_EVENTS];
	struct lw_profile_condition condition[LW_PROFILE_CONDITIONS];
	struct lw_profile_stack stack[LW_PROFILE_STACKS];
};

struct lw_profile_own {
	lw_atomic(struct lw_profile *) record; /* of this process; NULL: it records nothing */
	bool has_events;		       /* each release adds one */
	bool has_tsc;			       /* times are those of the time stamp counter */
	uint64_t slow_ns;		       /* a wait is slow from here on */
};

extern struct lw_profile_own lw_profile_own __attribute__((visibility("hidden")));

/* The number of this thread in the record, from 1; 0: none yet. */
extern __thread uint32_t lw_profile_thread
	__attribute__((tls_model("initial-exec"), visibility("hidden")));

/* The kernel's ID of this thread; 0: it has no number yet. */
extern __thread uint32_t lw_profile_tid
	__attribute__((tls_model("initial-exec"), visibility("hidden")));

/*
 * Returns whether these bytes of the record can be used. Makes their pages, unless there is no room
 * for them. Before Linux 5.14 it cannot, and returns true.
 */
bool lw_profile_has(const struct lw_profile *profile, const void *at, size_t size);

/* Returns the number of this thread in the record. The first call gives it number and ID. */
uint32_t lw_profile_self(struct lw_profile *profile);

/* Returns the key by which the record finds a lock in a mode. It is never 0. */
static inline uint64_t lw_profile_key(const void *lock, enum lw_profile_mode mode)
{
	return (uint64_t)(uintptr_t)lock << LW_PROFILE_MODE_BITS | mode;
}

/* Returns the time by this clock, in nanoseconds. */
static inline uint64_t lw_profile_clock_ns(clockid_t clock)
{
	struct timespec now;

	clock_gettime(clock, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

/*
 * Returns the time: of the time stamp counter where the kernel keeps its own time by that, because
 * it is read in less than half of the time; else in nanoseconds.
 */
static inline uint64_t lw_profile_now(void)
{
#ifdef __x86_64__
	if (lw_profile_own.has_tsc)
		return __builtin_ia32_rdtsc();
#endif
	return lw_profile_clock_ns(CLOCK_MONOTONIC);
}

/*
 * Returns the time from `since` to `until`. They may be times of two CPUs, or read out of order,
 * and so by some nanoseconds the wrong way round.
 */
static inline uint64_t lw_profile_elapsed(uint64_t since, uint64_t until)
{
	return until > since ? until - since : 0;
}

/* Adds the module that contains this address to the record, unless it is in the record already. */
void lw_profile_add_module_of(struct lw_profile *profile, uint64_t address);

#endif
