/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* A user's program, in C and C++ alike: every lock by its own functions, against the installed
 * library. */
#include <lockworks/lockworks.h>

static struct lw_tas tas = LW_TAS_INIT;
static union lw_ticket ticket = LW_TICKET_INIT;
static struct lw_mcs mcs = LW_MCS_INIT;
static struct lw_qspinlock qspinlock = LW_QSPINLOCK_INIT;
static struct lw_cna cna = LW_CNA_INIT;

#define USE(id)                              \
	do {                                 \
		lw_##id##_lock(&id);         \
		if (lw_##id##_trylock(&id))  \
			return 1;            \
		lw_##id##_unlock(&id);       \
		if (!lw_##id##_trylock(&id)) \
			return 1;            \
		lw_##id##_unlock(&id);       \
	} while (0)

int main(void)
{
	struct lw_mcs_node node, other;

	USE(tas);
	USE(ticket);
	USE(qspinlock);
	USE(cna);
	lw_mcs_lock(&mcs, &node);
	if (lw_mcs_trylock(&mcs, &other))
		return 1;
	lw_mcs_unlock(&mcs, &node);
	return lw_thread_attach() == 0 || lw_topology_nodes() < 1 || !lw_lock_type_find("cna");
}
