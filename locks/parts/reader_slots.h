/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Readers in slots: a reader of a reader-writer lock announces itself in its own slot
 * (queue_slot.h), on a cache line that no other reader writes to. A writer of the lock looks into
 * all slots. The idea is that of BRAVO (Dice and Kogan, 2019), whose readers share one table.
 *
 * An announcement is the lock's identity, above flags:
 *
 *   0                  unused
 *   (lock,0)           a reader of the lock; its writer waits for it
 *   (lock,AWAITED)     the same, and a writer sleeps until it leaves
 *   (lock,COUNTED)     a note of the reader for itself: the lock counts it
 *
 * A thread that acquires a lock again has a further announcement or note of it. Only the slot's
 * owner changes an announcement, except that a writer sets AWAITED. Notes are the owner's.
 *
 * A release by another thread leaves the reader's announcement in its slot, and takes one from the
 * count of the lock instead. So the announcements and the count are right together, and neither is
 * alone. Announcements of a lock that is not SPREAD are of an earlier lock at its address.
 */
#ifndef LW_READER_SLOTS_H
#define LW_READER_SLOTS_H

#include "operations.h"
#include "surroundings.h"

/* The locks that a slot can have announcements for; further ones are counted by the locks. */
#define LW_READS_PER_SLOT lw_constant(4, 1)

#define LW_READ_AWAITED	   UINT64_C(1)
#define LW_READ_COUNTED	   UINT64_C(2)
#define LW_READ_USED	   UINT64_C(8) /* in all of them, because a lock's identity may be 0 */
#define LW_READ_LOCK_SHIFT 8

/* How far a writer that looks into all slots fetches them ahead. */
#define LW_READS_AHEAD 10

struct lw_read {
	lw_atomic(uint64_t) of; /* lock and flags */
	/* Of a slot's first: the read locks of its thread for which the slot had no room. */
	lw_atomic(uint16_t) unnoted;
	/* Of slot 1's first: has any thread released an announced reader of another one? */
	lw_atomic(uint16_t) lent;
	/* Changes when an awaited reader has left: writers sleep on it. */
	lw_atomic(uint32_t) left;
};

/* A reader of this lock, as announced. */
#define lw_read_of(lock) (lw_identity(lock) << LW_READ_LOCK_SHIFT | LW_READ_USED)

/*
 * The first entry in our slot with `reads`, or NULL: an announcement has lw_read_of() a lock, a
 * note LW_READ_COUNTED too, and an unused one has 0.
 */
static inline struct lw_read *lw_read_find(struct lw_read *slot, uint64_t reads)
{
	for (uint32_t i = 0; slot && i < LW_READS_PER_SLOT; i++) {
		if ((lw_load(&slot[i].of, relaxed) & ~LW_READ_AWAITED) == reads)
			return &slot[i];
	}
	return NULL;
}

/* Has our slot no announcement? */
static lw_always_inline bool lw_reads_none(const struct lw_read *slot)
{
	uint64_t any = 0;

#pragma GCC unroll 4
	for (uint32_t i = 0; i < LW_READS_PER_SLOT; i++)
		any |= lw_load(&slot[i].of, relaxed);
	return !any;
}

/* Announce a reader in `read`, which is ours and unused. A writer sees it, or we see the writer. */
static inline void lw_read_announce(struct lw_read *read, uint64_t reads)
{
	/* 0 -> (lock,0) */
	(void)lw_xchg(&read->of, reads, seq_cst);
}

/*
 * Note for ourselves that the lock counts us, in `unused` of our slot if there is one. Release: see
 * lw_reads_beyond().
 */
static inline void lw_read_note(struct lw_read *slot, struct lw_read *unused, uint64_t reads)
{
	if (unused)
		/* 0 -> (lock,COUNTED) */
		lw_store(&unused->of, reads | LW_READ_COUNTED, release);
	else if (slot)
		lw_store(&slot->unnoted, (uint16_t)(lw_load(&slot->unnoted, relaxed) + 1), relaxed);
}

/* The lock counts us no longer, or another one as far as we know. */
static inline void lw_read_forget(struct lw_read *slot, uint64_t reads)
{
	struct lw_read *note = lw_read_find(slot, reads | LW_READ_COUNTED);

	if (note)
		/* (lock,COUNTED) -> 0 */
		lw_store(&note->of, 0, release);
	else if (slot && lw_load(&slot->unnoted, relaxed))
		lw_store(&slot->unnoted, (uint16_t)(lw_load(&slot->unnoted, relaxed) - 1), relaxed);
}

/* May our thread read the lock already? A thread whose notes have no room may. */
static inline bool lw_read_may_be_again(struct lw_read *slot, uint64_t reads)
{
	return !slot || lw_load(&slot->unnoted, relaxed) || !lw_read_find(slot, 0) ||
	       lw_read_find(slot, reads) || lw_read_find(slot, reads | LW_READ_COUNTED);
}

/*
 * End an announcement. The lock may be gone after that, so it is not accessed. Where
 * lw_release_is_split(), a writer that falls asleep meanwhile is missed: it sleeps for a bounded
 * time.
 */
static inline void lw_read_leave(struct lw_read *read)
{
	uint64_t of;

	if (lw_release_is_split()) {
		of = lw_load(&read->of, relaxed);
		/* (lock,*) -> 0 */
		lw_store(&read->of, 0, release);
	} else {
		/* (lock,*) -> 0 */
		of = lw_xchg(&read->of, 0, release);
	}
	if (of & LW_READ_AWAITED) {
		lw_store(&read->left, lw_load(&read->left, relaxed) + 1, release);
		lw_unpark(&read->left, 0);
	}
}

/*
 * Wait until the reader in `read`, one of `reads`, has left, but not for ever: look again. False if
 * the wait limit is reached. `left` is read before `of`, so that a reader that leaves between ends
 * the sleep.
 */
static inline bool lw_read_await(struct lw_read *read, uint64_t reads, uint32_t spin,
				 const struct lw_wait_limit *limit, uint32_t *parks)
{
	uint32_t left = lw_load(&read->left, acquire);
	uint64_t of = lw_load(&read->of, relaxed);

	if ((of & ~LW_READ_AWAITED) != reads)
		return true;
	if (!lw_writers_park()) {
		lw_await_ne(&read->of, ~UINT64_C(0), of, relaxed);
		return true;
	}
	if (lw_await_ne_bounded(&read->of, ~UINT64_C(0), of, spin) != of)
		return true;
	if (lw_limit_reached(limit))
		return false;
	/* (lock,-) -> (lock,AWAITED) */
	if (!(of & LW_READ_AWAITED) &&
	    !lw_try_cmpxchg(&read->of, &of, of | LW_READ_AWAITED, relaxed))
		return true;
	*parks += lw_park_bounded(&read->left, left, limit, *parks);
	return true;
}

/*
 * The announcement of `reads` that follows `owed` others, in the slots after *from; NULL if there
 * are no more. *from becomes the slot before the first one: while new readers are kept out, nobody
 * need look there again. The loads acquire what readers did that have left, and seq_cst finds every
 * reader that did not see the writer. A reader that has left may have announced another lock since,
 * so all stores to `of` are releases.
 */
static inline struct lw_read *lw_reads_beyond(uint64_t reads, uint32_t owed, uint32_t *from)
{
	uint32_t slots = lw_slots(), found = 0;

	for (uint32_t slot = *from; (slot = lw_next_slot(slot)) <= slots;) {
		struct lw_read *in = lw_slot_reads(slot);

		if (slot + LW_READS_AHEAD <= slots)
			lw_prefetch(lw_slot_reads(slot + LW_READS_AHEAD));
		for (uint32_t i = 0; i < LW_READS_PER_SLOT; i++) {
			if ((lw_load(&in[i].of, seq_cst) & ~LW_READ_AWAITED) != reads)
				continue;
			if (!found)
				*from = slot - 1;
			if (found++ == owed)
				return &in[i];
		}
	}
	return NULL;
}

#endif
