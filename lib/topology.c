// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/* The topology as the public interface shows it: NUMA nodes, counted from 0 without gaps. */
#include <errno.h>

#include <lockworks/lockworks.h>

#include "topology.h"

unsigned int lw_topology_nodes(void)
{
	uint32_t domains = lw_user_domains();

	return domains ? domains : 1;
}

unsigned int lw_topology_node_of_cpu(unsigned int cpu)
{
	lw_user_domains();
	return lw_user_domain_of_cpu(cpu);
}

unsigned int lw_current_node(void)
{
	return lw_user_numa_node();
}

int lw_set_near(enum lw_near near)
{
	if (near != LW_NEAR_NODE && near != LW_NEAR_LLC)
		return EINVAL;
	lw_user_domains();
	lw_user_topology_read(LW_USER_SYSFS, near);
	return 0;
}

const char *lw_topology_warning(void)
{
	lw_user_domains();
	return lw_user_topology_problem();
}
