/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* A user's program, in C and in C++: every lock by its own functions, with the installed library.
 */
#include <errno.h>

#include <lockworks/lockworks.h>

static struct lw_tas tas = LW_TAS_INIT;
static union lw_ticket ticket = LW_TICKET_INIT;
static struct lw_mcs mcs = LW_MCS_INIT;
static struct lw_qspinlock qspinlock = LW_QSPINLOCK_INIT;
static struct lw_cna cna = LW_CNA_INIT;
static struct lw_hq hq = LW_HQ_INIT;
static struct lw_pv pv = LW_PV_INIT;
static struct lw_unfair unfair = LW_UNFAIR_INIT;
static struct lw_cancel told = LW_CANCEL_INIT;
#define LW_LOCKREF(id, type, word, ...) \
	static union lw_lockref_##id lockref_##id = LW_LOCKREF_INIT_WITH(word, 1);
#include <lockworks/lockref_list.h>

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

#define LW_LOCKREF(id, ...)                                             \
	static bool use_lockref_##id(void)                              \
	{                                                               \
		lw_lockref_##id##_get(&lockref_##id);                   \
		if (lw_lockref_##id##_put_return(&lockref_##id) != 1 || \
		    lw_lockref_##id##_put_or_lock(&lockref_##id))       \
			return false;                                   \
		lw_lockref_##id##_mark_dead(&lockref_##id);             \
		lw_lockref_##id##_unlock(&lockref_##id);                \
		if (lw_lockref_##id##_get_not_dead(&lockref_##id))      \
			return false;                                   \
		lw_lockref_##id##_init(&lockref_##id, 0);               \
		return lw_lockref_##id##_get_not_dead(&lockref_##id);   \
	}
#include <lockworks/lockref_list.h>

static union lw_lockref_cna zero_is_unlocked = LW_LOCKREF_INIT(1);
static union lw_lockref_hq has_its_own = LW_LOCKREF_HQ_INIT(1);

int main(void)
{
	struct lw_mcs_node node, other;

	USE(tas);
	USE(ticket);
	USE(qspinlock);
	USE(cna);
	USE(hq);
	USE(pv);
	USE(unfair);
	lw_cancel(&told);
	if (lw_pv_lock_until(&pv, CLOCK_MONOTONIC, NULL, &told) != 0 ||
	    lw_pv_lock_until(&pv, CLOCK_MONOTONIC, NULL, &told) != ECANCELED ||
	    lw_unfair_lock_until(&unfair, CLOCK_MONOTONIC, NULL, NULL) != 0)
		return 1;
	if (lw_lockref_cna_put_return(&zero_is_unlocked) != 0 ||
	    lw_lockref_hq_put_return(&has_its_own) != 0)
		return 1;
	lw_mcs_lock(&mcs, &node);
	if (lw_mcs_trylock(&mcs, &other))
		return 1;
	lw_mcs_unlock(&mcs, &node);
#define LW_LOCKREF(id, ...)      \
	if (!use_lockref_##id()) \
		return 1;
#include <lockworks/lockref_list.h>
	return lw_thread_attach() == 0 || lw_topology_nodes() < 1 || !lw_lock_type_find("cna");
}
