// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/* The spinlocks of Concurrency Kit (Debian: libck-dev). */
#include <ck_spinlock.h>

#include "peer.h"

#define CK "Concurrency Kit"

PEER(ck_mcs, CK, BENCH_FIFO, ck_spinlock_mcs_t, ck_spinlock_mcs_context_t, ck_spinlock_mcs_init(s),
     (void)0, ck_spinlock_mcs_lock(s, t), ck_spinlock_mcs_unlock(s, t))
PEER(ck_ticket, CK, BENCH_FIFO, ck_spinlock_ticket_t, struct bench_nothing,
     ck_spinlock_ticket_init(s), (void)0, ck_spinlock_ticket_lock(s), ck_spinlock_ticket_unlock(s))

/* A CLH lock and the queue node with which its queue begins. A release leaves a thread with its
 * predecessor's node, so that nodes move from thread to thread. */
struct ck_clh_state {
	ck_spinlock_clh_t *tail;
	ck_spinlock_clh_t unowned __attribute__((aligned(128)));
};

/* The memory that one thread lends: its first node, and a pointer to the node that it has now. Only
 * this thread uses the pointer; other threads may be using the node. */
struct ck_clh_thread {
	ck_spinlock_clh_t first __attribute__((aligned(128)));
	/* NULL before the first acquisition. */
	ck_spinlock_clh_t *mine __attribute__((aligned(128)));
};

PEER(ck_clh, CK, BENCH_FIFO, struct ck_clh_state, struct ck_clh_thread,
     ck_spinlock_clh_init(&s->tail, &s->unowned), t->mine = t->mine ? t->mine : &t->first,
     ck_spinlock_clh_lock(&s->tail, t->mine), ck_spinlock_clh_unlock(&t->mine))
PEER(ck_fas, CK, BENCH_UNFAIR, ck_spinlock_fas_t, struct bench_nothing, ck_spinlock_fas_init(s),
     (void)0, ck_spinlock_fas_lock(s), ck_spinlock_fas_unlock(s))

const struct peer *const peer_ck[] = {
	&ck_mcs_peer, &ck_ticket_peer, &ck_clh_peer, &ck_fas_peer, NULL,
};
