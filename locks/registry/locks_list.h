/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Every lock, in the order in which tables show them: LW_LOCK(id), which the including file
 * defines. A lock is locks/<id>.h, locks/<id>.c and its line here.
 */
LW_LOCK(tas)
LW_LOCK(byte)
LW_LOCK(ticket)
LW_LOCK(mcs)
LW_LOCK(qspinlock)
LW_LOCK(cna)
LW_LOCK(cna13)
LW_LOCK(hq)
LW_LOCK(pvticket)
LW_LOCK(pv42)
LW_LOCK(pv)
LW_LOCK(unfair)
LW_LOCK(mutex)
LW_LOCK(mutex37)
LW_LOCK(mutex310)
LW_LOCK(futex)
LW_LOCK(busted)

#undef LW_LOCK
