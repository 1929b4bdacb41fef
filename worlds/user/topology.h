/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Which CPUs are near each other: a table from CPU to domain, a NUMA node or last-level cache. */
#ifndef LW_USER_TOPOLOGY_H
#define LW_USER_TOPOLOGY_H

#include <lockworks/lockworks.h>

/* As many as Linux can be built for. CPUs beyond are taken to be in domain 0. */
#define LW_USER_MAX_CPUS 8192

struct lw_user_topology {
	lw_atomic(uint32_t) domains; /* 0: not read yet */
	lw_atomic(uint16_t) domain_of_cpu[LW_USER_MAX_CPUS];
};

extern struct lw_user_topology lw_user_topology __attribute__((visibility("hidden")));

/* Read it, unless that has been done; gives the number of domains. */
uint32_t lw_user_topology_start(void);
/*
 * Read it from `root` (normally /sys/devices/system) as lw_set_near() does,
 * whatever the environment says. For tests.
 */
void lw_user_topology_read(const char *root, enum lw_near near);
/* Take it from a text as in LOCKWORKS_TOPOLOGY; false, and nothing changed, if that is malformed.
 */
bool lw_user_topology_parse(const char *text);

uint16_t lw_user_numa_node(void);

static inline uint32_t lw_user_domains(void)
{
	uint32_t domains = lw_load(&lw_user_topology.domains, relaxed);

	return domains ? domains : lw_user_topology_start();
}

#endif
