/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What one thread does to see that a lock excludes: the same in every world. It
 * knows the lock by its type only, and the data that the locks protect by
 * lw_plain_read and lw_plain_write.
 */
#ifndef LW_CLIENT_H
#define LW_CLIENT_H

#include "lock_type.h"
#include "operations.h"

#define LW_CLIENT_LOCKS 6
/* Queue nodes lent to a thread: one a lock, one for attempts that must fail. */
#define LW_CLIENT_NODES (LW_CLIENT_LOCKS + 1)

/* What one lock protects, on two lines, so that stores out of order show. */
struct lw_client_record {
	uint64_t owner; /* thread + 1; 0 while the lock is free */
	uint64_t count;
	uint64_t gap[6];
	uint64_t copy; /* of count */
} lw_aligned(64);

/* Memory that threads share, all zero at first. */
struct lw_client_memory {
	lw_atomic(uint32_t) finished; /* threads */
	struct lw_client_record records[LW_CLIENT_LOCKS];
};

struct lw_client {
	const struct lw_lock_type *type;
	void *locks[LW_CLIENT_LOCKS]; /* unlocked; each on a line of its own */
	struct lw_client_memory *memory;
	void *nodes; /* LW_CLIENT_NODES a thread, lw_client_node_stride() apart, 64-aligned */
	unsigned int threads;
	unsigned int depth; /* so many of the locks are used, and nested */
	unsigned int rounds;
	/* Called, unless NULL, inside critical sections to let others in, if the lock does so, */
	void (*inside)(void);
	/* and after each round, to vary who meets whom. */
	void (*outside)(void);
};

/* For those who allocate it without knowing C. */
extern const size_t lw_client_memory_size;

static inline size_t lw_client_node_stride(const struct lw_lock_type *type)
{
	return (type->node_size + 63) / 64 * 64;
}

/*
 * What `thread`, from 0, does; gives how many violations it has seen. The last
 * one to finish also sees whether the counters add up.
 */
unsigned int lw_client_thread(const struct lw_client *client, unsigned int thread);

#endif
