// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * The reader-writer lock: a mutex, in which writers queue, and a word that admits readers.
 *
 *   writer   holds the mutex, sets WRITER, and waits until all readers have left
 *   reader   while WRITER is clear, enters at once. Otherwise it polls for a while, and then goes
 *            through the mutex: it enters as the mutex' holder, which no writer precedes, and
 *            releases the mutex
 *
 * A reader enters in one of two ways. While writes are frequent, it counts itself in the word.
 * After rwlock_spread_after reads without a write the lock is SPREAD: readers announce themselves
 * in their own slots (reader_slots.h), where no other reader disturbs them, and a writer looks into
 * all slots. One write in rwlock_gather ends that. So a lock that is mostly read is SPREAD nearly
 * always, and one that is often written seldom.
 *
 * `readers`:
 *
 * | piece   | set by                         | cleared by                                      |
 * |---------|--------------------------------|-------------------------------------------------|
 * | COUNT   | a reader that enters           | the same reader                                 |
 * | WRITER  | the mutex' holder              | the same, when it releases the lock or gives up |
 * | AWAITED | the writer, before it sleeps   | the same                                        |
 * |         | until COUNT is 0               |                                                 |
 * | SPREAD  | a reader, with COUNT           | the writer                                      |
 * | run     | a reader, with COUNT           | the reader that sets SPREAD; the writer         |
 *
 * A thread that reads already enters again by `depth` of its announcement, whatever WRITER is. So
 * a writer that waits for it does not stop it. Threads with more than LW_READS_PER_SLOT read locks,
 * or without a slot, are counted and have no such note.
 *
 * Promises: a writer excludes all others; no writer starves, since WRITER stops new readers, and
 * the mutex starves nobody; no reader starves, for the same reason. A releasing thread does not
 * access the lock after the step that releases it, so that the next holder may free its memory.
 *
 * Orders:
 *
 *   - While the lock is SPREAD, WRITER and an announcement are two stores, each followed by a
 *     load of the other: all four are seq_cst, so that not both are missed.
 *   - A reader enters by a compare-and-swap, or load, of `readers` that acquires. It reads what the
 *     last writer stored by a release, or a later value by a reader.
 *   - A reader leaves by a release, which the writer acquires: of `readers`, or of the
 *     announcement.
 *   - The mutex is released before WRITER is cleared, because that is the last access. The next
 *     holder of the mutex waits until WRITER is clear, and acquires it there.
 *   - AWAITED and `depth` are the writer's and the reader's own: relaxed.
 */
#include "lock_type.h"
#include "queue_slot.h"
#include "reader_slots.h"
#include "rwlock.h"

/* Polls of a reader before it goes through the mutex, where waiters never park. */
#define LW_RWLOCK_PATIENCE 2000

static inline uint32_t lw_rwlock_spin(void)
{
	return lw_waiters_park() ? lw_spin_budget((uint32_t)lw_tunable(mutex_spin))
				 : LW_RWLOCK_PATIENCE;
}

/*
 * Reading
 */

/* Do readers announce themselves, and is no writer there? */
static lw_always_inline bool lw_rwlock_is_spread(uint32_t readers)
{
	return (readers & (LW_RWLOCK_SPREAD | LW_RWLOCK_WRITER)) == LW_RWLOCK_SPREAD;
}

/* `readers` with one more reader and a longer run, or SPREAD instead of the run at its end. */
static inline uint32_t lw_rwlock_one_more(uint32_t readers)
{
	uint32_t run = readers >> LW_RWLOCK_RUN_SHIFT;

	if (!lw_tunable(rwlock_spread_after))
		return readers + 1;
	if (run + 1 < lw_tunable(rwlock_spread_after))
		return readers + 1 + (1u << LW_RWLOCK_RUN_SHIFT);
	return (readers + 1 - (run << LW_RWLOCK_RUN_SHIFT)) | LW_RWLOCK_SPREAD;
}

/*
 * Enter, unless a writer holds the lock or waits for it. False also if another reader is in the way
 * and we can queue instead: readers that are counted one by one are faster there.
 */
static bool lw_rwlock_enter(struct lw_rwlock *lock, struct lw_read *slot, uint64_t reads,
			    bool can_queue)
{
	struct lw_read *unused = lw_read_find(slot, 0);
	uint32_t readers;

	while (readers = lw_load(&lock->readers, relaxed), !(readers & LW_RWLOCK_WRITER)) {
		if (unused && (readers & LW_RWLOCK_SPREAD)) {
			lw_read_announce(unused, reads);
			if (lw_rwlock_is_spread(lw_load(&lock->readers, seq_cst)))
				return true;
			lw_read_leave(unused);
			continue;
		}
		/* (n,-) -> (n+1,-), perhaps SPREAD: 0 -> 1 */
		if (lw_try_cmpxchg(&lock->readers, &readers, lw_rwlock_one_more(readers),
				   acquire)) {
			if (unused)
				lw_read_note(unused, reads);
			return true;
		}
		if (can_queue && !(readers & LW_RWLOCK_SPREAD))
			return false;
	}
	return false;
}

/* Enter at once: again, if this thread reads the lock already. */
static bool lw_rwlock_try_read(struct lw_rwlock *lock, struct lw_read *slot, uint64_t reads,
			       bool can_queue)
{
	struct lw_read *read = lw_read_find(slot, reads);

	if (!read)
		return lw_rwlock_enter(lock, slot, reads, can_queue);
	lw_read_again(read);
	return true;
}

/* Enter, perhaps after a wait. False if the wait limit is reached. */
static bool lw_rwlock_wait_to_read(struct lw_rwlock *lock, struct lw_read *slot, uint64_t reads,
				   const struct lw_wait_limit *limit)
{
	if (lw_rwlock_try_read(lock, slot, reads, true))
		return true;
	lw_await_ne_backoff(&lock->readers, LW_RWLOCK_WRITER, LW_RWLOCK_WRITER, lw_rwlock_spin());
	if (lw_rwlock_enter(lock, slot, reads, true))
		return true;
	lw_count(queued_reads);
	if (!lw_mutex_lock_limited(&lock->queue, limit))
		return false;
	/* The last writer has released the mutex, and clears WRITER next. */
	while (!lw_rwlock_enter(lock, slot, reads, false))
		lw_await_eq_soon(&lock->readers, LW_RWLOCK_WRITER, 0, relaxed);
	lw_mutex_unlock(&lock->queue);
	return true;
}

/* The announcements of our slot. A thread may keep its slot once it has entered it. */
static struct lw_read *lw_rwlock_own_reads(void)
{
	struct lw_read *own = lw_own_reads();

	if (!own) {
		lw_slot_leave(lw_slot_enter());
		own = lw_own_reads();
	}
	return own;
}

static lw_noinline bool lw_rwlock_read_slow(struct lw_rwlock *lock,
					    const struct lw_wait_limit *limit)
{
	return lw_rwlock_wait_to_read(lock, lw_rwlock_own_reads(), lw_read_of(lock), limit);
}

/* A writer has come while we announced ourselves in `read`. */
static lw_noinline bool lw_rwlock_read_retry(struct lw_rwlock *lock, struct lw_read *read,
					     const struct lw_wait_limit *limit)
{
	lw_read_leave(read);
	return lw_rwlock_read_slow(lock, limit);
}

static lw_always_inline bool lw_rwlock_read(struct lw_rwlock *lock,
					    const struct lw_wait_limit *limit)
{
	struct lw_read *own = lw_own_reads();

	/* The common case first: nothing to look for in our slot. */
	if (!own || !lw_reads_none(own) || !lw_rwlock_is_spread(lw_load(&lock->readers, relaxed)))
		return lw_rwlock_read_slow(lock, limit);
	lw_read_announce(own, lw_read_of(lock));
	return lw_rwlock_is_spread(lw_load(&lock->readers, seq_cst)) ||
	       lw_rwlock_read_retry(lock, own, limit);
}

bool lw_rwlock_read_lock_limited(struct lw_rwlock *lock, const struct lw_wait_limit *limit)
{
	return lw_rwlock_read(lock, limit);
}

void lw_rwlock_read_lock(struct lw_rwlock *lock)
{
	lw_rwlock_read(lock, NULL);
}

bool lw_rwlock_read_trylock(struct lw_rwlock *lock)
{
	return lw_rwlock_try_read(lock, lw_rwlock_own_reads(), lw_read_of(lock), false);
}

/* (n,*) -> (n-1,*); the writer may sleep until n is 0 */
static void lw_rwlock_uncount(struct lw_rwlock *lock)
{
	uint32_t readers = lw_fetch_add(&lock->readers, UINT32_MAX, release);

	if ((readers & (LW_RWLOCK_COUNT | LW_RWLOCK_AWAITED)) == (1 | LW_RWLOCK_AWAITED))
		lw_unpark(&lock->readers, 0);
}

static lw_noinline void lw_rwlock_read_unlock_slow(struct lw_rwlock *lock)
{
	struct lw_read *read = lw_read_find(lw_own_reads(), lw_read_of(lock));
	uint64_t of = read ? lw_load(&read->of, relaxed) : LW_READ_COUNTED;

	if (of & LW_READ_AGAIN) {
		lw_read_once_less(read);
	} else if (!(of & LW_READ_COUNTED)) {
		lw_read_leave(read);
	} else {
		if (read)
			/* (lock,COUNTED) -> 0 */
			lw_store(&read->of, 0, release);
		lw_rwlock_uncount(lock);
	}
}

void lw_rwlock_read_unlock(struct lw_rwlock *lock)
{
	struct lw_read *own = lw_own_reads();

	/* The common case first: our first announcement, for which nobody sleeps. */
	if (own && lw_release_is_split() && lw_load(&own->of, relaxed) == lw_read_of(lock))
		/* (lock,0) -> 0 */
		lw_store(&own->of, 0, release);
	else
		lw_rwlock_read_unlock_slow(lock);
}

/*
 * Writing
 */

/* WRITER is set: wait until all readers have left. False if the wait limit is reached. */
static bool lw_rwlock_drain(struct lw_rwlock *lock, const struct lw_wait_limit *limit)
{
	uint32_t spin = lw_rwlock_spin();
	uint32_t readers;

	while ((readers = lw_load(&lock->readers, acquire)) & LW_RWLOCK_COUNT) {
		if (!lw_writers_park()) {
			lw_await_eq(&lock->readers, LW_RWLOCK_COUNT, 0, relaxed);
			continue;
		}
		if (lw_await_ne_bounded(&lock->readers, ~0u, readers, spin) != readers)
			continue;
		if (lw_limit_reached(limit))
			return false;
		/* AWAITED: 0 -> 1 */
		if (!(readers & LW_RWLOCK_AWAITED) &&
		    !lw_try_cmpxchg(&lock->readers, &readers, readers | LW_RWLOCK_AWAITED, relaxed))
			continue;
		lw_park(&lock->readers, readers | LW_RWLOCK_AWAITED, limit);
	}
	return !(readers & LW_RWLOCK_SPREAD) || lw_reads_await(lw_read_of(lock), spin, limit);
}

/* The mutex is ours: keep new readers out. Returns the readers. */
static uint32_t lw_rwlock_close(struct lw_rwlock *lock)
{
	/* The last writer has released the mutex, and clears WRITER next. */
	if (lw_load(&lock->readers, relaxed) & LW_RWLOCK_WRITER)
		lw_await_eq_soon(&lock->readers, LW_RWLOCK_WRITER, 0, relaxed);
	/* (*,-) -> (*,WRITER) */
	return lw_fetch_or(&lock->readers, LW_RWLOCK_WRITER, seq_cst);
}

/* Give up waiting for readers: (*,WRITER) -> (*,-) */
static void lw_rwlock_reopen(struct lw_rwlock *lock)
{
	lw_fetch_and(&lock->readers, ~(LW_RWLOCK_WRITER | LW_RWLOCK_AWAITED), relaxed);
}

/* The mutex is ours: become the writer. False if the wait limit is reached; then it is released. */
static lw_noinline bool lw_rwlock_write_slow(struct lw_rwlock *lock,
					     const struct lw_wait_limit *limit)
{
	if (!(lw_rwlock_close(lock) & (LW_RWLOCK_COUNT | LW_RWLOCK_SPREAD)) ||
	    lw_rwlock_drain(lock, limit))
		return true;
	lw_mutex_unlock(&lock->queue);
	lw_rwlock_reopen(lock);
	return false;
}

static lw_always_inline bool lw_rwlock_write(struct lw_rwlock *lock,
					     const struct lw_wait_limit *limit)
{
	uint32_t readers = 0;

	if (lw_unlikely(!lw_mutex_take_idle(&lock->queue.word)) &&
	    !lw_mutex_lock_limited(&lock->queue, limit))
		return false;
	/* (0,-) -> (0,WRITER): not SPREAD, so nobody has announced itself */
	return lw_try_cmpxchg(&lock->readers, &readers, LW_RWLOCK_WRITER, acquire) ||
	       lw_rwlock_write_slow(lock, limit);
}

bool lw_rwlock_lock_limited(struct lw_rwlock *lock, const struct lw_wait_limit *limit)
{
	return lw_rwlock_write(lock, limit);
}

void lw_rwlock_lock(struct lw_rwlock *lock)
{
	lw_rwlock_write(lock, NULL);
}

/* WRITER is set, and lw_rwlock_close() has returned `readers`: are there none? */
static bool lw_rwlock_is_idle(struct lw_rwlock *lock, uint32_t readers)
{
	return !(readers & LW_RWLOCK_COUNT) &&
	       (!(readers & LW_RWLOCK_SPREAD) || !lw_reads_exist(lw_read_of(lock)));
}

bool lw_rwlock_trylock(struct lw_rwlock *lock)
{
	if (lw_load(&lock->readers, relaxed) & (LW_RWLOCK_COUNT | LW_RWLOCK_WRITER) ||
	    !lw_mutex_trylock(&lock->queue))
		return false;
	if (lw_rwlock_is_idle(lock, lw_rwlock_close(lock)))
		return true;
	lw_mutex_unlock(&lock->queue);
	lw_rwlock_reopen(lock);
	return false;
}

/* `readers` when the writer leaves, without its own pieces. Only the writer changes them now. */
static inline uint32_t lw_rwlock_after_write(struct lw_rwlock *lock)
{
	uint32_t spread = lw_load(&lock->readers, relaxed) & LW_RWLOCK_SPREAD;

	return spread && lw_chance(1, (uint32_t)lw_tunable(rwlock_gather)) ? 0 : spread;
}

void lw_rwlock_unlock(struct lw_rwlock *lock)
{
	uint32_t readers = lw_rwlock_after_write(lock);

	lw_mutex_unlock(&lock->queue);
	/* (0,WRITER) -> (0,-) */
	lw_store(&lock->readers, readers, release);
}

/*
 * Upgradable: the mutex' holder, which does not set WRITER
 */

void lw_rwlock_upgradable_lock(struct lw_rwlock *lock)
{
	lw_mutex_lock(&lock->queue);
}

bool lw_rwlock_upgradable_trylock(struct lw_rwlock *lock)
{
	return lw_mutex_trylock(&lock->queue);
}

void lw_rwlock_upgradable_unlock(struct lw_rwlock *lock)
{
	lw_mutex_unlock(&lock->queue);
}

void lw_rwlock_upgrade(struct lw_rwlock *lock)
{
	if (lw_rwlock_close(lock) & (LW_RWLOCK_COUNT | LW_RWLOCK_SPREAD))
		lw_rwlock_drain(lock, NULL);
}

bool lw_rwlock_try_upgrade(struct lw_rwlock *lock)
{
	if (lw_rwlock_is_idle(lock, lw_rwlock_close(lock)))
		return true;
	lw_rwlock_reopen(lock);
	return false;
}

void lw_rwlock_downgrade_to_upgradable(struct lw_rwlock *lock)
{
	/* (0,WRITER) -> (0,-) */
	lw_store(&lock->readers, lw_rwlock_after_write(lock), release);
}

void lw_rwlock_upgradable_downgrade(struct lw_rwlock *lock)
{
	/* Only a writer that has released the mutex, and clears WRITER next, can be in the way. */
	while (!lw_rwlock_read_trylock(lock))
		lw_await_eq_soon(&lock->readers, LW_RWLOCK_WRITER, 0, relaxed);
	lw_mutex_unlock(&lock->queue);
}

void lw_rwlock_downgrade(struct lw_rwlock *lock)
{
	lw_rwlock_downgrade_to_upgradable(lock);
	lw_rwlock_upgradable_downgrade(lock);
}

static void lw_rwlock_type_read_lock(void *lock)
{
	lw_rwlock_read_lock((struct lw_rwlock *)lock);
}

static bool lw_rwlock_type_read_trylock(void *lock)
{
	return lw_rwlock_read_trylock((struct lw_rwlock *)lock);
}

static void lw_rwlock_type_read_unlock(void *lock)
{
	lw_rwlock_read_unlock((struct lw_rwlock *)lock);
}

static bool lw_rwlock_type_read_lock_limited(void *lock, const struct lw_wait_limit *limit)
{
	return lw_rwlock_read_lock_limited((struct lw_rwlock *)lock, limit);
}

LW_DESCRIBE_LIMITED(rwlock, struct lw_rwlock,
		    .summary = "reader-writer lock: the mutex, and readers in their own slots",
		    .traits = LW_TAIL_WORD | LW_MUTEX_WORD | LW_NUMA_AWARE,
		    .read_lock = lw_rwlock_type_read_lock,
		    .read_trylock = lw_rwlock_type_read_trylock,
		    .read_unlock = lw_rwlock_type_read_unlock,
		    .read_lock_limited = lw_rwlock_type_read_lock_limited,
		    .tunables = "rwlock_ mutex_spin",
		    .origin = "Lockworks; BRAVO (Dice and Kogan, USENIX ATC 2019)");
