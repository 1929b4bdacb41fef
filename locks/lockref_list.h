/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The locks that a lockref may contain, those of 4 bytes at most: LW_LOCKREF(id, type, unlocked),
 * defined by who includes this. `unlocked`: is the lock free whose 4 bytes are `val`?
 */
LW_LOCKREF(tas, struct lw_tas, val == 0)
LW_LOCKREF(ticket, union lw_ticket, val >> 16 == (val & 0xffff))
LW_LOCKREF(qspinlock, struct lw_qspinlock, val == 0)
LW_LOCKREF(cna, struct lw_cna, val == 0)

#undef LW_LOCKREF
