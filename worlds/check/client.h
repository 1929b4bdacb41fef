/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* What each thread of a check does, and what it tells the engine on its way. */
#ifndef LW_CHECK_CLIENT_H
#define LW_CHECK_CLIENT_H

#include "lockref_type.h"
#include "operations.h"

/* The first lock of the threads, one for each level of interruption, and the threads' second. */
#define LW_CHECK_LOCKS	     4
#define LW_CHECK_SECOND_LOCK (LW_CHECK_LOCKS - 1)

struct lw_check_client {
	const struct lw_lock_type *type;
	void *locks[LW_CHECK_LOCKS];
	uint32_t *data[LW_CHECK_LOCKS]; /* what each protects */
	uint32_t threads;
	uint32_t acquisitions;
	bool two_locks; /* threads take them in turns, not the first one only */
	bool trylock;	/* try first, every other time, and in interruptions where one may */
	bool patient;	/* but not for ever: threads may give up waiting */
	/* What locks[0] is, with `type` in it; NULL: nothing but a lock. */
	const struct lw_lockref_type *lockref;
	uint32_t *object; /* what references are to */
	/* A litmus test has no locks, but these. */
	const struct lw_litmus *litmus;
	struct lw_litmus_memory *variables;
};

/* One for each lock, and one for each level at which an interruption tries the first lock. */
#define LW_CHECK_LENT_NODES (2 * LW_CHECK_LOCKS)
/* This thread's i-th node to lend. */
void *lw_check_lent_node(uint32_t i);

enum lw_check_mark {
	LW_CHECK_BEGIN,	   /* about to acquire; the node is lent */
	LW_CHECK_ACQUIRED, /* the lock is ours */
	LW_CHECK_RELEASE,  /* about to release */
	LW_CHECK_RELEASED, /* or never acquired; the node is ours again */
};
void lw_check_note(enum lw_check_mark mark, uint32_t lock, uint32_t node);
/* A litmus test's result: one digit more of what this thread has seen. */
void lw_check_result(uint64_t digit);

/* This thread has seen a broken promise. */
void lw_check_broken(const char *promise);

/* What a thread does from its start to its end. */
void lw_check_thread(const struct lw_check_client *client, uint32_t thread);
/* The same, with references. */
void lw_check_lockref_thread(const struct lw_check_client *client, uint32_t thread);
/* The same, with a condition variable in the place of the second lock. */
void lw_check_cond_thread(const struct lw_check_client *client, uint32_t thread);
/* What interrupts it, before any of its operations; level from 1. */
void lw_check_interruption(const struct lw_check_client *client, uint32_t level);

#endif
