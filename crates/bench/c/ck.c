// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/* The spinlocks of Concurrency Kit, where it is installed (Debian: libck-dev). */
#include "bench.h"

#if __has_include(<ck_spinlock.h>)
#include <ck_spinlock.h>

#define CK "Concurrency Kit"

BENCH_LOCK(ck_mcs, CK, BENCH_FIFO, ck_spinlock_mcs_t, ck_spinlock_mcs_context_t,
	   ck_spinlock_mcs_init(s), (void)0, ck_spinlock_mcs_lock(s, t),
	   ck_spinlock_mcs_unlock(s, t))
BENCH_LOCK(ck_ticket, CK, BENCH_FIFO, ck_spinlock_ticket_t, struct bench_nothing,
	   ck_spinlock_ticket_init(s), (void)0, ck_spinlock_ticket_lock(s),
	   ck_spinlock_ticket_unlock(s))

/* The queue starts with a node of nobody's; afterwards nodes go from thread to thread. */
struct ck_clh_state {
	ck_spinlock_clh_t *tail;
	ck_spinlock_clh_t unowned __attribute__((aligned(128)));
};

BENCH_LOCK(ck_clh, CK, BENCH_FIFO, struct ck_clh_state, ck_spinlock_clh_t,
	   ck_spinlock_clh_init(&s->tail, &s->unowned), ck_spinlock_clh_t *mine = t,
	   ck_spinlock_clh_lock(&s->tail, mine), ck_spinlock_clh_unlock(&mine))
BENCH_LOCK(ck_fas, CK, BENCH_UNFAIR, ck_spinlock_fas_t, struct bench_nothing,
	   ck_spinlock_fas_init(s), (void)0, ck_spinlock_fas_lock(s), ck_spinlock_fas_unlock(s))
#endif

const struct bench_lock *const bench_ck_locks[] = {
#ifdef CK_SPINLOCK_H
	&bench_ck_mcs, &bench_ck_ticket, &bench_ck_clh, &bench_ck_fas,
#endif
	NULL,
};
