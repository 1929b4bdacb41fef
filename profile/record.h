/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What a process under `lockworks profile` writes down: a file in shared memory, so that it is
 * there however the process ends. crates/cli/src/profile/record.rs reads it.
 *
 * The table of mutexes is found by address, and grows only. Each has a list of the places in the
 * code that it was locked at, the last one first. All of a mutex but its address is written by who
 * holds it, so needs no atomics.
 */
#ifndef LW_PROFILE_RECORD_H
#define LW_PROFILE_RECORD_H

#include "operations.h"

#define LW_PROFILE_MAGIC   UINT64_C(0x31666f72506b6f4c)
#define LW_PROFILE_MUTEXES 65536
#define LW_PROFILE_SITES   131072
#define LW_PROFILE_MODULES 256

/* A mapping of code, as /proc/self/maps has it. */
struct lw_profile_module {
	uint64_t start, end, offset;
	char path[488];
};

struct lw_profile_mutex {
	lw_atomic(uint64_t) address; /* 0: free */
	uint64_t since;		     /* when it was acquired */
	uint32_t first_site;	     /* its number, from 1 */
	uint32_t holder, depth;	     /* depth 0: nobody, or somebody whom we have not seen */
	uint32_t last_thread, last_node;
	uint32_t reserved;
};

/* A mutex at a place. */
struct lw_profile_site {
	uint32_t mutex; /* its place in the table */
	uint32_t next_site;
	uint64_t caller; /* where the call returns to */
	uint64_t acquisitions, contended, after_wait;
	uint64_t waited_ns, waited_max_ns;
	uint64_t held_ns, held_max_ns;
	uint64_t from_same_thread, from_same_node, from_other_node;
	uint64_t threads[4]; /* a bit for each, by its number modulo 256 */
};

struct lw_profile {
	uint64_t magic, pid, nodes;
	uint64_t module_size, mutex_size, site_size;
	uint64_t most_modules, most_mutexes, most_sites;
	lw_atomic(uint64_t) modules, sites;
	lw_atomic(uint64_t) threads;		  /* that have locked */
	lw_atomic(uint64_t) lost, lost_contended; /* acquisitions for which there was no room */
	uint64_t reserved[2];
	struct lw_profile_module module[LW_PROFILE_MODULES];
	struct lw_profile_mutex mutex[LW_PROFILE_MUTEXES];
	struct lw_profile_site site[LW_PROFILE_SITES];
};

_Static_assert(sizeof(struct lw_profile_module) == 512, "as record.rs has it");
_Static_assert(sizeof(struct lw_profile_mutex) == 40, "as record.rs has it");
_Static_assert(sizeof(struct lw_profile_site) == 128, "as record.rs has it");

struct lw_profile_own {
	lw_atomic(struct lw_profile *) record; /* of this process; NULL: nothing is recorded */
};

extern struct lw_profile_own lw_profile_own __attribute__((visibility("hidden")));

/* This thread's number in the record, from 1; 0: none yet. */
extern __thread uint32_t lw_profile_thread
	__attribute__((tls_model("initial-exec"), visibility("hidden")));

/* The code at this address is of a module in the record from now on, if it is of any. */
void lw_profile_know(struct lw_profile *profile, uint64_t address);

#endif
