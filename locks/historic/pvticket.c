// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * The paravirt ticket lock. A waiter that has spun for long writes into its slot for which lock and
 * ticket it waits, marks the lock, and halts if it is still not served. A thread that unlocks a
 * marked lock searches the slots for the waiter to kick.
 *
 *   (m, n)         ---- a waiter ---->  (m, n | 1)    the mark, in the ticket that is served
 *   (n + 2, n | 1) ---- holder n ---->  (n + 2, n)    the mark is removed when nobody else waits
 *
 * Promises: mutual exclusion; FIFO; no waiter is lost: a waiter writes its slot, then the mark,
 * then halts. The mark stays for as long as it waits, so the thread that serves it finds the slot.
 *
 * Orders: drawing a ticket and polling the served one acquire, unlocking releases. The mark
 * releases the slot, and the unlock that sees the mark acquires it.
 *
 * A slot has one word, which is made from ticket and lock. An interrupt that waits for a lock too
 * overwrites it. The waiter that was interrupted then does not halt, but polls again. If two
 * waiters have the same word, both are kicked. That is harmless, because a kick is a hint.
 */
#include "lock_type.h"
#include "pvticket.h"

/* The word that stands for a wait for this ticket of this lock. Never 0. */
static inline uint32_t lw_pvticket_want(struct lw_pvticket *lock, uint32_t ticket)
{
	return (uint32_t)(lw_scattered(lock) >> 48) << 16 | ticket | 1;
}

void lw_pvticket_lock_slow(struct lw_pvticket *lock, uint32_t mine)
{
	uint32_t slot = lw_slot_enter(), val, want = lw_pvticket_want(lock, mine);
	struct lw_slot_wanted *wanted = lw_slot_wanted(slot);

	while (val = lw_await_eq_bounded(&lock->tickets.val, LW_PVTICKET_SERVING, mine,
					 (uint32_t)lw_tunable(pvticket_spin)),
	       (val & LW_PVTICKET_SERVING) != mine) {
		if (!slot)
			continue;
		lw_store(&wanted->what, want, relaxed);
		/* (*, n) -> (*, n | 1); release: the content of the slot */
		val = lw_fetch_or(&lock->tickets.val, LW_PVTICKET_SLOW, release);
		if ((val & LW_PVTICKET_SERVING) != mine) {
			lw_count(halts_in_queue);
			lw_park(&wanted->what, want, NULL);
		}
		lw_store(&wanted->what, 0, relaxed);
	}
	/* acquire: the critical sections before ours */
	val = lw_load(&lock->tickets.val, acquire);
	/* (mine + 2, mine | 1) -> (mine + 2, mine) */
	if (val == ((mine << 16) + LW_PVTICKET_NEXT + mine + LW_PVTICKET_SLOW))
		lw_try_cmpxchg(&lock->tickets.val, &val, val - LW_PVTICKET_SLOW, relaxed);
	lw_slot_leave(slot);
}

/* Another thread may have freed the lock's memory by now, so nothing in it is accessed. */
void lw_pvticket_unlock_slow(struct lw_pvticket *lock, uint32_t serving)
{
	uint32_t slots = lw_slots();

	for (uint32_t slot = 1; slot <= slots; slot++) {
		struct lw_slot_wanted *wanted = lw_slot_wanted(slot);
		uint32_t want = lw_pvticket_want(lock, serving);

		/* wanted -> 0 */
		if (lw_load(&wanted->what, relaxed) == want &&
		    lw_try_cmpxchg(&wanted->what, &want, 0, relaxed)) {
			lw_count(kicks_at_unlock);
			lw_unpark(&wanted->what, slot);
		}
	}
}

LW_DESCRIBE(pvticket, struct lw_pvticket, .summary = "paravirt ticket lock as it was in Linux 4.1",
	    .traits = LW_FIFO | LW_HISTORIC, .tunables = "pvticket_",
	    .origin = "Fitzhardinge 2008; Raghavendra and others, Linux 3.12 to 4.1");
