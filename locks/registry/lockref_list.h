/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The locks that a lockref may contain, those of 4 bytes at most: LW_LOCKREF(id, type, word,
 * unlocked), which the including file defines. `word`: the 4 bytes of an unlocked lock. `unlocked`:
 * an expression that says whether a lock is free whose 4 bytes are `val`. lockrefs.h includes the
 * header of each lock.
 */
LW_LOCKREF(tas, struct lw_tas, 0, val == 0)
LW_LOCKREF(ticket, union lw_ticket, 0, val >> 16 == (val & 0xffff))
LW_LOCKREF(qspinlock, struct lw_qspinlock, 0, val == 0)
LW_LOCKREF(cna, struct lw_cna, 0, val == 0)
LW_LOCKREF(hq, struct lw_hq, LW_HQ, lw_word_is_free(val))

#undef LW_LOCKREF
