// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * The reader-writer lock in Linux. This is a part of numa_spinlock.c: the writers queue in the
 * mutex that is there.
 */
#include <linux/cpumask.h>

#include "lockworks_rwlock.h"
#include "rwlock.c"

/* The announcements of a CPU's readers. */
struct lw_kernel_reads {
	struct lw_read reads[LW_READS_PER_SLOT];
};
static DEFINE_PER_CPU_ALIGNED(struct lw_kernel_reads, lw_kernel_reads);

static __always_inline struct lw_read *lw_kernel_own_reads(void)
{
	return this_cpu_ptr(&lw_kernel_reads)->reads;
}

/* A number between those of CPUs may be that of none. It has no memory, and stands for this CPU. */
static __always_inline struct lw_read *lw_kernel_reads_of(unsigned int cpu)
{
	return cpu_possible(cpu) ? per_cpu(lw_kernel_reads, cpu).reads : lw_kernel_own_reads();
}
