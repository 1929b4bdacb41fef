/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The threads of a check, and how they report their progress to the engine. */
#ifndef LW_CHECK_CLIENT_H
#define LW_CHECK_CLIENT_H

#include "lockref_type.h"
#include "operations.h"

/*
 * The first lock of threads, one lock for each level of interruption, their second lock. Their
 * third one is that of the deepest level.
 */
#define LW_CHECK_LOCKS	     4
#define LW_CHECK_SECOND_LOCK (LW_CHECK_LOCKS - 1)
#define LW_CHECK_THIRD_LOCK  (LW_CHECK_LOCKS - 2)
/* The place of a condition variable among the locks. */
#define LW_CHECK_COND 1

/*
 * The functions of an object of a source that is no lock, and is used by threads of its own; NULL
 * where it has none. A seqlock has both of its readers, and lw_lock_type.lock begins a write. A
 * condition variable has wait(), and lw_lock_type is that of its mutex. A resilient lock has
 * acquire(), which may fail.
 */
struct lw_check_functions {
	uint64_t (*read_begin)(void *lock);
	bool (*read_retry)(void *lock, uint64_t sequence);
	void (*wait)(void *lock, void *node, void *cond);
	void (*signal)(void *lock, void *node, void *cond);
	void (*broadcast)(void *lock, void *node, void *cond);
	int (*acquire)(void *lock);
};

struct lw_check_client {
	const struct lw_lock_type *type;
	void *locks[LW_CHECK_LOCKS];
	uint32_t *data[LW_CHECK_LOCKS]; /* the data that each lock protects */
	uint32_t threads;
	uint32_t acquisitions;
	uint32_t readers;    /* the last threads acquire as readers */
	uint32_t lock_count; /* the locks that threads take, in turns or together */
	bool trylock; /* every other acquisition, and those in interruptions, begin with a trylock
		       */
	bool cancel;  /* any wait may be cancelled at any moment */
	/* The type of locks[0] if it is a lockref, with a lock of `type` in it; else NULL. */
	const struct lw_lockref_type *lockref;
	uint32_t *object; /* the object that references are to */
	/* A litmus test, and its variables; it uses no locks. */
	const struct lw_litmus *litmus;
	struct lw_litmus_memory *variables;
	const struct lw_check_functions *functions; /* NULL: the object has those of `type` only */
	uint32_t tokens;			    /* of a semaphore; 0: it is none */
};

/* The engine chooses whether the limit is reached, so the structure has no members of use. */
struct lw_wait_limit {
	char none;
};
extern const struct lw_wait_limit lw_check_wait_limit;

/* One node for each lock, and one for each level at which an interruption tries the first lock. */
#define LW_CHECK_LENT_NODES (2 * LW_CHECK_LOCKS)
/* The i-th queue node that this thread lends to locks. */
void *lw_check_lent_node(uint32_t i);

enum lw_check_mark {
	LW_CHECK_BEGIN,	    /* the thread is about to acquire the lock, and lends the node */
	LW_CHECK_ACQUIRED,  /* the thread holds the lock */
	LW_CHECK_READS,	    /* the thread holds the lock, perhaps with other readers */
	LW_CHECK_RELEASE,   /* the thread is about to release the lock */
	LW_CHECK_RELEASED,  /* released, or never acquired; the lock no longer uses the node */
	LW_CHECK_DESTROYED, /* the thread is about to reuse the memory of the lock */
};
/* Report that this thread has reached `mark` with a lock, to which it lends a node. */
void lw_check_note(enum lw_check_mark mark, uint32_t lock, uint32_t node);
/* How far the code that this thread runs or has interrupted is with a lock. */
enum lw_check_had {
	LW_CHECK_NOTHING,
	LW_CHECK_TRIES, /* it acquires the lock, or has just released it */
	LW_CHECK_HELD,
};
uint32_t lw_check_had(uint32_t lock);
/* Append a digit to this thread's result of a litmus test. */
void lw_check_result(uint64_t digit);

/* Report that this thread has seen a broken promise. */
void lw_check_broken(const char *promise);

/* Run a thread that acquires and releases locks. */
void lw_check_thread(const struct lw_check_client *client, uint32_t thread);
/* Run a thread that gets and puts references to an object with a lockref. */
void lw_check_lockref_thread(const struct lw_check_client *client, uint32_t thread);
/* Run a thread that uses a condition variable, which takes the place of the second lock. */
void lw_check_cond_thread(const struct lw_check_client *client, uint32_t thread);
/* Run a thread that uses a seqlock of a source. */
void lw_check_seqlock_thread(const struct lw_check_client *client, uint32_t thread);
/* Run a thread that uses the reader-writer lock. */
void lw_check_rwlock_thread(const struct lw_check_client *client, uint32_t thread);
/* Run a thread that uses a resilient lock, and an interruption of such a thread. */
void lw_check_resilient_thread(const struct lw_check_client *client, uint32_t thread);
void lw_check_resilient_interruption(const struct lw_check_client *client, uint32_t level);
/* Run an interruption at a level, from 1. It may come before any operation of a thread. */
void lw_check_interruption(const struct lw_check_client *client, uint32_t level);
/* Run the child of a fork up to the point where its other threads begin. The thread has this slot.
 */
void lw_check_forked_child(uint32_t slot);

#endif
