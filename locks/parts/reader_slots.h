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
 *   (lock,*,AGAIN)     the reader has acquired the lock again, `depth` times
 *
 * Only the slot's owner changes an announcement, except that a writer sets AWAITED. `depth` and
 * notes are the owner's. `left` changes when an awaited reader has left: writers sleep on it.
 */
#ifndef LW_READER_SLOTS_H
#define LW_READER_SLOTS_H

#include "operations.h"
#include "surroundings.h"

/* The locks that a slot can have announcements for; further ones are counted by the locks. */
#define LW_READS_PER_SLOT lw_constant(4, 1)

#define LW_READ_AWAITED	   UINT64_C(1)
#define LW_READ_COUNTED	   UINT64_C(2)
#define LW_READ_AGAIN	   UINT64_C(4)
#define LW_READ_FLAGS	   (LW_READ_AWAITED | LW_READ_COUNTED | LW_READ_AGAIN)
#define LW_READ_USED	   UINT64_C(8) /* in all of them, because a lock's identity may be 0 */
#define LW_READ_LOCK_SHIFT 8

/* How far a writer that looks into all slots fetches them ahead. */
#define LW_READS_AHEAD 10

struct lw_read {
	lw_atomic(uint64_t) of; /* lock and flags */
	lw_atomic(uint32_t) depth;
	lw_atomic(uint32_t) left;
};

/* A reader of this lock, as announced. */
#define lw_read_of(lock) (lw_identity(lock) << LW_READ_LOCK_SHIFT | LW_READ_USED)

/* The announcement of `reads`, lw_read_of() a lock, in our slot; or NULL. With 0: an unused one. */
static inline struct lw_read *lw_read_find(struct lw_read *slot, uint64_t reads)
{
	for (uint32_t i = 0; slot && i < LW_READS_PER_SLOT; i++) {
		if ((lw_load(&slot[i].of, relaxed) & ~LW_READ_FLAGS) == reads)
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

/* Note for ourselves that the lock counts us. Release: see lw_reads_await(). */
static inline void lw_read_note(struct lw_read *read, uint64_t reads)
{
	/* 0 -> (lock,COUNTED) */
	lw_store(&read->of, reads | LW_READ_COUNTED, release);
}

/* The owner of `read` acquires its lock again. */
static inline void lw_read_again(struct lw_read *read)
{
	uint32_t depth = lw_load(&read->depth, relaxed);

	lw_store(&read->depth, depth + 1, relaxed);
	if (!depth)
		/* (lock,*) -> (lock,*,AGAIN) */
		lw_fetch_or(&read->of, LW_READ_AGAIN, relaxed);
}

/* The owner of `read`, which has acquired its lock again, releases it once. */
static inline void lw_read_once_less(struct lw_read *read)
{
	uint32_t depth = lw_load(&read->depth, relaxed) - 1;

	lw_store(&read->depth, depth, relaxed);
	if (!depth)
		/* (lock,*,AGAIN) -> (lock,*) */
		lw_fetch_and(&read->of, ~LW_READ_AGAIN, relaxed);
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
 * Wait until the reader in `read` is not one of `reads`. False if the wait limit is reached. The
 * loads of `of` acquire what the reader did, and seq_cst finds every reader that did not see the
 * writer. A reader that has left may have announced another lock since, so all stores to `of` are
 * releases.
 */
static inline bool lw_read_await(struct lw_read *read, uint64_t reads, uint32_t spin,
				 const struct lw_wait_limit *limit)
{
	uint32_t parks = 0;

	for (;;) {
		uint32_t left = lw_load(&read->left, acquire);
		uint64_t of = lw_load(&read->of, seq_cst);

		if ((of & ~(LW_READ_AWAITED | LW_READ_AGAIN)) != reads)
			return true;
		if (!lw_writers_park()) {
			lw_await_ne(&read->of, ~UINT64_C(0), of, relaxed);
			continue;
		}
		if (lw_await_ne_bounded(&read->of, ~UINT64_C(0), of, spin) != of)
			continue;
		if (lw_limit_reached(limit))
			return false;
		/* (lock,*) -> (lock,*,AWAITED) */
		if (!(of & LW_READ_AWAITED) &&
		    !lw_try_cmpxchg(&read->of, &of, of | LW_READ_AWAITED, relaxed))
			continue;
		parks += lw_park_bounded(&read->left, left, limit, parks);
	}
}

/* Wait until no slot has a reader of `reads`, which is lw_read_of() a lock. */
static inline bool lw_reads_await(uint64_t reads, uint32_t spin, const struct lw_wait_limit *limit)
{
	uint32_t slots = lw_slots();

	for (uint32_t slot = 0; (slot = lw_next_slot(slot)) <= slots;) {
		struct lw_read *in = lw_slot_reads(slot);

		if (slot + LW_READS_AHEAD <= slots)
			lw_prefetch(lw_slot_reads(slot + LW_READS_AHEAD));
		for (uint32_t i = 0; i < LW_READS_PER_SLOT; i++) {
			if (!lw_read_await(&in[i], reads, spin, limit))
				return false;
		}
	}
	return true;
}

/* Does a slot have a reader of `reads`? */
static inline bool lw_reads_exist(uint64_t reads)
{
	uint32_t slots = lw_slots();

	for (uint32_t slot = 0; (slot = lw_next_slot(slot)) <= slots;) {
		struct lw_read *in = lw_slot_reads(slot);

		for (uint32_t i = 0; i < LW_READS_PER_SLOT; i++) {
			if ((lw_load(&in[i].of, seq_cst) & ~(LW_READ_AWAITED | LW_READ_AGAIN)) ==
			    reads)
				return true;
		}
	}
	return false;
}

#endif
