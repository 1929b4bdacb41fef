/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The record that a process under `lockworks profile` writes. It is a file in shared memory, so it
 * remains however the process ends. crates/cli/src/profile/record.rs reads it.
 *
 * The table of mutexes is a hash table by address; entries are never removed. Each mutex has a list
 * of sites: the places in the code that acquire it, the most recent one first. Only the holder of a
 * mutex writes its entry and its sites, except for the address, so these need no atomics.
 *
 * A thread that begins to wait takes an entry in the table of waits, and frees it when the wait has
 * ended. So a wait that is in progress when the process ends is in the record too.
 *
 * If a timeline is asked for, each release adds an event to a ring, which so has the most recent
 * acquisitions.
 */
#ifndef LW_PROFILE_RECORD_H
#define LW_PROFILE_RECORD_H

#include <stddef.h>

#include "operations.h"

#define LW_PROFILE_MAGIC   UINT64_C(0x33666f72506b6f4c)
#define LW_PROFILE_MUTEXES 65536
#define LW_PROFILE_SITES   131072
#define LW_PROFILE_MODULES 256
#define LW_PROFILE_RWLOCKS 64
#define LW_PROFILE_WAITS   1024
#define LW_PROFILE_EVENTS  65536

/* A mapping of code, as in /proc/self/maps. */
struct lw_profile_module {
	uint64_t start, end, offset;
	char path[488];
};

struct lw_profile_mutex {
	lw_atomic(uint64_t) address; /* 0: free */
	uint64_t since;		     /* time of the acquisition, in nanoseconds */
	uint64_t begun;		     /* when the holder began to wait; 0: it did not */
	uint32_t first_site;	     /* number of a site, from 1; 0: none */
	uint32_t holder, depth;	     /* depth 0: free, or held since before we recorded */
	uint32_t last_thread, last_node;
	uint32_t kind; /* as glibc stores it */
};

/* The acquisitions of one mutex at one place in the code. */
struct lw_profile_site {
	uint32_t mutex; /* index in the table of mutexes */
	uint32_t next_site;
	uint64_t caller; /* return address of the call */
	uint64_t acquisitions, contended, after_wait;
	uint64_t waited_ns, waited_max_ns;
	uint64_t held_ns, held_max_ns;
	uint64_t from_same_thread, from_same_node, from_other_node;
	uint64_t threads[4]; /* a bit for each thread, by its number modulo 256 */
};

/* The acquisitions of all rwlocks on CPUs of this number modulo LW_PROFILE_RWLOCKS. */
struct lw_profile_rwlocks {
	lw_atomic(uint64_t) acquisitions, contended, waited_ns;
	uint64_t reserved[5]; /* so that CPUs do not share a cache line */
};

/* A wait in progress. */
struct lw_profile_wait {
	lw_atomic(uint64_t) address; /* of the mutex or rwlock; 0: free */
	lw_atomic(uint64_t) caller;  /* return address of the call; 0: it waits for an rwlock */
	lw_atomic(uint64_t) begun;
	lw_atomic(uint64_t) thread; /* number of the thread that waits */
};

/* An acquisition that has ended. */
struct lw_profile_event {
	uint64_t address, caller;
	uint64_t begun;		     /* when the thread began to wait; 0: it did not */
	uint64_t acquired, released; /* when */
	uint32_t thread, node;
};

struct lw_profile {
	uint64_t magic, pid, nodes;
	uint64_t module_size, mutex_size, site_size;
	uint64_t most_modules, most_mutexes, most_sites;
	lw_atomic(uint64_t) modules, sites;
	lw_atomic(uint64_t) threads;		  /* that have acquired a mutex */
	lw_atomic(uint64_t) lost, lost_contended; /* acquisitions that did not fit */
	lw_atomic(uint64_t)
		ended; /* time of the exit, in nanoseconds; 0: ended by exec or a signal */
	lw_atomic(uint64_t) events; /* that were added to the ring */
	struct lw_profile_rwlocks rwlocks[LW_PROFILE_RWLOCKS];
	struct lw_profile_wait wait[LW_PROFILE_WAITS];
	struct lw_profile_module module[LW_PROFILE_MODULES];
	struct lw_profile_mutex mutex[LW_PROFILE_MUTEXES];
	struct lw_profile_site site[LW_PROFILE_SITES];
	struct lw_profile_event event[LW_PROFILE_EVENTS];
};

_Static_assert(offsetof(struct lw_profile, rwlocks) == 128, "as record.rs has it");
_Static_assert(offsetof(struct lw_profile, module) ==
		       128 + LW_PROFILE_RWLOCKS * 64 + LW_PROFILE_WAITS * 32,
	       "as record.rs has it");
_Static_assert(sizeof(struct lw_profile_module) == 512, "as record.rs has it");
_Static_assert(sizeof(struct lw_profile_mutex) == 48, "as record.rs has it");
_Static_assert(sizeof(struct lw_profile_site) == 128, "as record.rs has it");
_Static_assert(sizeof(struct lw_profile_event) == 48, "as record.rs has it");

struct lw_profile_own {
	lw_atomic(struct lw_profile *) record; /* of this process; NULL: it records nothing */
	bool has_events;		       /* each release adds one */
};

extern struct lw_profile_own lw_profile_own __attribute__((visibility("hidden")));

/* The number of this thread in the record, from 1; 0: none yet. */
extern __thread uint32_t lw_profile_thread
	__attribute__((tls_model("initial-exec"), visibility("hidden")));

/* Returns the number of this thread in the record, which it gets with the first call. */
uint32_t lw_profile_self(struct lw_profile *profile);

/* Returns the time, in nanoseconds. */
uint64_t lw_profile_now(void);

/*
 * Records that this thread begins to wait for a mutex or rwlock. Returns the entry, for
 * lw_profile_wait_end(); NULL: there is no room.
 */
struct lw_profile_wait *lw_profile_wait_begin(struct lw_profile *profile, const void *lock,
					      const void *caller, uint64_t begun);
void lw_profile_wait_end(struct lw_profile_wait *wait);

/* Adds the module that contains this address to the record, unless it is in the record already. */
void lw_profile_add_module_of(struct lw_profile *profile, uint64_t address);

#endif
