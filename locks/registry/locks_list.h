/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Every lock, in the order in which tables show them: LW_LOCK(id), which the including file
 * defines. A lock is locks/<id>.h, locks/<id>.c and its line here. LW_WITH_HISTORIC adds those of
 * locks/historic/.
 */
LW_LOCK(tas)
LW_LOCK(ticket)
LW_LOCK(mcs)
LW_LOCK(qspinlock)
LW_LOCK(rqspinlock)
LW_LOCK(cna)
LW_LOCK(hq)
LW_LOCK(pv)
LW_LOCK(unfair)
LW_LOCK(mutex)
LW_LOCK(rwlock)
LW_LOCK(busted)
#ifdef LW_WITH_HISTORIC
#include <historic_locks_list.h> /* only tools have it */
#endif

#undef LW_LOCK
