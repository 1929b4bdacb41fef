// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/* The locks of Lockworks, inlined from the headers that C programs include. */
#include <lockworks/lockworks.h>

#include "bench.h"

#define OURS "Lockworks"

BENCH_PLAIN(struct, lw_qspinlock, OURS, BENCH_FIFO)
BENCH_PLAIN(struct, lw_cna, OURS, BENCH_BOUNDED)
BENCH_LOCK(lw_hq, OURS, BENCH_BOUNDED, struct lw_hq, struct bench_nothing,
	   *s = (struct lw_hq)LW_HQ_INIT, (void)0, lw_hq_lock(s), lw_hq_unlock(s))
BENCH_PLAIN(struct, lw_mutex, OURS, BENCH_BOUNDED)
BENCH_PLAIN(struct, lw_pv, OURS, BENCH_BOUNDED)
BENCH_PLAIN(struct, lw_unfair, OURS, BENCH_UNFAIR)
BENCH_PLAIN(struct, lw_tas, OURS, BENCH_UNFAIR)
BENCH_PLAIN(union, lw_ticket, OURS, BENCH_FIFO)
BENCH_LOCK(lw_mcs, OURS, BENCH_FIFO, struct lw_mcs, struct lw_mcs_node, (void)0, (void)0,
	   lw_mcs_lock(s, t), lw_mcs_unlock(s, t))

const struct bench_lock *const bench_our_locks[] = {
	&bench_lw_qspinlock, &bench_lw_cna, &bench_lw_hq,     &bench_lw_mutex, &bench_lw_pv,
	&bench_lw_unfair,    &bench_lw_tas, &bench_lw_ticket, &bench_lw_mcs,   NULL,
};
