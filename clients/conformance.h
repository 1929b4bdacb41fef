/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The conformance client: the code with which each thread tests whether a lock excludes the others.
 *
 * Programs, kernels, the simulator and the model checker all compile this one file. It knows the
 * lock by its struct lw_lock_type only. It reads and writes the data that the locks protect with
 * lw_plain_read() and lw_plain_write(), so each world can watch these accesses.
 */
#ifndef LW_CONFORMANCE_H
#define LW_CONFORMANCE_H

#include "lock_type.h"
#include "operations.h"

/* The greatest number of locks that a thread holds at the same time. */
#define LW_CLIENT_LOCKS 6
/* Queue nodes lent to each thread: one for each lock, one for trylocks that must fail. */
#define LW_CLIENT_NODES (LW_CLIENT_LOCKS + 1)

/* The data that one lock protects. It lies on two cache lines, so that reordered stores show. */
struct lw_client_record {
	uint64_t owner; /* number of the holder + 1; 0 while the lock is free */
	uint64_t count; /* of acquisitions */
	uint64_t gap[6];
	uint64_t copy; /* of count, made before each release */
} lw_aligned(64);

/* Memory shared by all threads of a client. It must be zeroed before the threads start. */
struct lw_client_memory {
	lw_atomic(uint32_t) finished; /* threads that have done all their rounds */
	struct lw_client_record records[LW_CLIENT_LOCKS];
};

/* One run of the client: the lock under test, its memory, and how much the threads do. */
struct lw_client {
	const struct lw_lock_type *type;
	void *locks[LW_CLIENT_LOCKS]; /* unlocked; each on a cache line of its own */
	struct lw_client_memory *memory;
	/* LW_CLIENT_NODES for each thread, lw_client_node_stride() apart, aligned to 64 bytes */
	void *nodes;
	unsigned int threads;
	unsigned int depth; /* how many of the locks are used and nested */
	unsigned int rounds;
	/* Called inside each critical section, to let other threads run. NULL: not called. */
	void (*inside)(void);
	/* Called after each round, to vary which threads contend. NULL: not called. */
	void (*outside)(void);
};

/* Distance between two queue nodes in lw_client.nodes, in bytes: a multiple of 64. */
static inline size_t lw_client_node_stride(const struct lw_lock_type *type)
{
	return (type->node_size + 63) / 64 * 64;
}

/*
 * Runs all rounds of thread number `thread`, which counts from 0. Returns the number of violations
 * that this thread saw. The thread that finishes last also checks the final counts.
 */
unsigned int lw_client_thread(const struct lw_client *client, unsigned int thread);

#endif
