/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The topology: a table from CPU to domain. A domain is a set of CPUs that are near each other:
 * what the contract calls a NUMA node, though it may be the CPUs that share a last-level cache.
 */
#ifndef LW_USER_TOPOLOGY_H
#define LW_USER_TOPOLOGY_H

#include <lockworks/nearness.h>

#include "operations.h"

/* The greatest number of CPUs for which Linux can be built. Any CPU beyond them is in domain 0. */
#define LW_USER_MAX_CPUS 8192
/* Where the system describes its CPUs and NUMA nodes. */
#define LW_USER_SYSFS "/sys/devices/system"

struct lw_user_topology {
	lw_atomic(uint32_t) domains; /* 0: not read yet */
	lw_atomic(uint16_t) domain_of_cpu[LW_USER_MAX_CPUS];
};

extern struct lw_user_topology lw_user_topology __attribute__((visibility("hidden")));

/*
 * Reads the topology from LOCKWORKS_TOPOLOGY or the system, unless that has begun already. Returns
 * the number of domains; 0 while another thread, or a thread that a signal handler interrupts,
 * reads it for the first time.
 */
uint32_t lw_user_topology_start(void);
/* Reads the topology from the sysfs tree at `root`, normally LW_USER_SYSFS. */
void lw_user_topology_read(const char *root, enum lw_near near);
/*
 * Sets the topology from a text as in LOCKWORKS_TOPOLOGY. Returns false, and changes nothing, if
 * the text is malformed.
 */
bool lw_user_topology_parse(const char *text);
/* Returns why all CPUs are in one domain though the system may have more, or NULL. */
const char *lw_user_topology_problem(void);

/* Returns the domain of a CPU; 0 if it is unknown. */
uint16_t lw_user_domain_of_cpu(unsigned int cpu);
/* The contract's lw_numa_node(): the domain of the CPU that this thread runs on now. */
uint16_t lw_user_numa_node(void);

/* Returns the number of domains, like lw_user_topology_start(). */
static inline uint32_t lw_user_domains(void)
{
	uint32_t domains = lw_load(&lw_user_topology.domains, relaxed);

	return domains ? domains : lw_user_topology_start();
}

#endif
