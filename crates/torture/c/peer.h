/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* A peer: a lock of another library. It has the loops of bench.h, and its two operations for
 * callers that have loops of their own. */
#ifndef LW_PEER_H
#define LW_PEER_H

#include "bench.h"

struct peer {
	const struct bench_lock *bench;
	void (*lock)(void *state, void *thread);
	void (*unlock)(void *state, void *thread);
	/* The same for readers, which hold the lock together. NULL: it has none. */
	void (*read_lock)(void *state);
	void (*read_unlock)(void *state);
};

/* Define a peer, with the arguments of BENCH_LOCK, and perhaps the functions for readers. In the
 * single operations, BEGIN runs before each LOCK. */
#define PEER(id, origin, order, state_type, thread_type, INIT, BEGIN, LOCK, UNLOCK, ...)  \
	BENCH_LOCK(id, origin, order, state_type, thread_type, INIT, BEGIN, LOCK, UNLOCK) \
	static void id##_peer_lock(void *state, void *thread)                             \
	{                                                                                 \
		state_type *s = (state_type *)state;                                      \
		thread_type *t = (thread_type *)thread;                                   \
		(void)t;                                                                  \
		BEGIN;                                                                    \
		LOCK;                                                                     \
	}                                                                                 \
	static void id##_peer_unlock(void *state, void *thread)                           \
	{                                                                                 \
		state_type *s = (state_type *)state;                                      \
		thread_type *t = (thread_type *)thread;                                   \
		(void)s;                                                                  \
		(void)t;                                                                  \
		UNLOCK;                                                                   \
	}                                                                                 \
	static const struct peer id##_peer = {.bench = &bench_##id,                       \
					      .lock = id##_peer_lock,                     \
					      .unlock = id##_peer_unlock,                 \
					      __VA_ARGS__};

#endif
