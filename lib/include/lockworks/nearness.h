/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The settings of nearness: which CPUs count as near each other, and whether locks prefer near
 * waiters. lockworks.h says how to set them.
 */
#ifndef LW_NEARNESS_H
#define LW_NEARNESS_H

/* Whether the NUMA-aware locks keep waiters of one NUMA node together. */
enum lw_numa_mode {
	LW_NUMA_AUTO, /* if the machine has two NUMA nodes or more; the default */
	LW_NUMA_ON,
	LW_NUMA_OFF,
};

/* Which CPUs make up one NUMA node. */
enum lw_near {
	LW_NEAR_NODE, /* those of a NUMA node of the system; the default */
	LW_NEAR_LLC,  /* those that share a last-level cache */
};

#endif
