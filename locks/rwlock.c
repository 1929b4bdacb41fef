// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * The reader-writer lock: a mutex, in which writers queue, and a word that admits readers.
 *
 *   writer   holds the mutex, sets WRITER, waits until all readers have left, and sets HELD
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
 * | COUNT   | a reader that enters           | a reader that leaves; it may be below 0         |
 * | WRITER  | the mutex' holder              | the same, when it releases the lock or gives up |
 * | HELD    | the same, when nobody reads    | the same, when it releases the lock             |
 * | AWAITED | the writer, before it sleeps   | the same                                        |
 * |         | until COUNT is 0               |                                                 |
 * | SPREAD  | a reader, with COUNT           | the writer                                      |
 * | run     | a reader, with COUNT           | the reader that sets SPREAD; the writer         |
 *
 * The readers are those that the word counts and those that are announced, together. A release
 * takes one from either: from its thread's announcement if there is one, else from COUNT. So the
 * sum is right whichever thread releases a reader, and COUNT is below 0 while announcements are
 * left of readers that other threads have released. The writer sets HELD by a compare-and-swap of
 * the COUNT with which the sum was 0. SPREAD is cleared only while COUNT is 0 and nobody reads. So
 * all announcements of a lock that is not SPREAD are of an earlier lock at the same address. Such a
 * lock does not become SPREAD.
 *
 * A thread that reads already enters while WRITER is set, as long as HELD is not. So a writer that
 * waits for it does not stop it. It knows by the announcements and notes in its slot. These may be
 * out of date, or missing: a thread without a slot, or with more than LW_READS_PER_SLOT read locks,
 * enters in any case. A thread with priority does so too.
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

static void lw_rwlock_read_unlock_slow(struct lw_rwlock *lock);

/* Do readers announce themselves, and is no writer there? */
static lw_always_inline bool lw_rwlock_is_spread(uint32_t readers)
{
	return (readers & (LW_RWLOCK_SPREAD | LW_RWLOCK_WRITER)) == LW_RWLOCK_SPREAD;
}

/*
 * `readers` with one more reader and a longer run, or SPREAD instead of the run at its end: unless
 * there are announcements, which are not of this lock.
 */
static inline uint32_t lw_rwlock_one_more(uint32_t readers, uint64_t reads)
{
	uint32_t after = (uint32_t)lw_tunable(rwlock_spread_after), from = 0;

	if (!after || readers & (LW_RWLOCK_SPREAD | LW_RWLOCK_WRITER))
		return readers + LW_RWLOCK_ONE;
	if ((readers & LW_RWLOCK_RUN) + 1 < after)
		return readers + LW_RWLOCK_ONE + 1;
	readers = (readers & ~LW_RWLOCK_RUN) + LW_RWLOCK_ONE;
	return lw_reads_beyond(reads, 0, &from) ? readers : readers | LW_RWLOCK_SPREAD;
}

/*
 * A writer has come while we announced ourselves in `read`: end that. If a signal handler has
 * released our announcement in place of its own, we release the handler's.
 */
static void lw_rwlock_retract(struct lw_rwlock *lock, struct lw_read *read, uint64_t reads)
{
	if ((lw_load(&read->of, relaxed) & ~LW_READ_AWAITED) == reads)
		lw_read_leave(read);
	else
		lw_rwlock_read_unlock_slow(lock);
}

/*
 * Enter, unless a piece of `closed` is set. False also if another reader is in the way and we can
 * queue instead: readers that are counted one by one are faster there.
 */
static bool lw_rwlock_enter(struct lw_rwlock *lock, struct lw_read *slot, uint64_t reads,
			    uint32_t closed, bool can_queue)
{
	struct lw_read *unused = lw_read_find(slot, 0);
	uint32_t readers;

	while (readers = lw_load(&lock->readers, relaxed), !(readers & closed)) {
		if (unused && lw_rwlock_is_spread(readers)) {
			lw_read_announce(unused, reads);
			if (lw_rwlock_is_spread(lw_load(&lock->readers, seq_cst)))
				return true;
			lw_rwlock_retract(lock, unused, reads);
			continue;
		}
		/* (n,*) -> (n+1,*), perhaps SPREAD: 0 -> 1 */
		if (lw_try_cmpxchg(&lock->readers, &readers, lw_rwlock_one_more(readers, reads),
				   acquire)) {
			lw_read_note(slot, unused, reads);
			return true;
		}
		if (can_queue && !(readers & LW_RWLOCK_SPREAD))
			return false;
	}
	return false;
}

/* Enter at once, before a writer that waits if we may read the lock already, or have priority. */
static bool lw_rwlock_try_read(struct lw_rwlock *lock, struct lw_read *slot, uint64_t reads,
			       bool can_queue)
{
	if (lw_read_may_be_again(slot, reads) || lw_is_priority())
		return lw_rwlock_enter(lock, slot, reads, LW_RWLOCK_HELD, false);
	return lw_rwlock_enter(lock, slot, reads, LW_RWLOCK_WRITER, can_queue);
}

/* Enter, perhaps after a wait. False if the wait limit is reached. */
static bool lw_rwlock_wait_to_read(struct lw_rwlock *lock, struct lw_read *slot, uint64_t reads,
				   const struct lw_wait_limit *limit)
{
	if (lw_rwlock_try_read(lock, slot, reads, true))
		return true;
	lw_await_ne_backoff(&lock->readers, LW_RWLOCK_WRITER, LW_RWLOCK_WRITER, lw_rwlock_spin());
	if (lw_rwlock_try_read(lock, slot, reads, true))
		return true;
	lw_count(queued_reads);
	if (!lw_mutex_lock_limited(&lock->queue, limit))
		return false;
	/* The last writer has released the mutex, and clears WRITER next. */
	while (!lw_rwlock_enter(lock, slot, reads, LW_RWLOCK_WRITER, false))
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
	lw_rwlock_retract(lock, read, lw_read_of(lock));
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
	uint32_t readers = lw_fetch_add(&lock->readers, 0u - LW_RWLOCK_ONE, release);

	if (lw_rwlock_count(readers) == 1 && readers & LW_RWLOCK_AWAITED)
		lw_unpark(&lock->readers, 0);
	else if (lw_rwlock_count(readers) <= 0)
		lw_store(&lw_slot_reads(1)->lent, 1, relaxed);
}

static lw_noinline void lw_rwlock_read_unlock_slow(struct lw_rwlock *lock)
{
	struct lw_read *slot = lw_own_reads(), *read = NULL;

	if (lw_load(&lock->readers, relaxed) & LW_RWLOCK_SPREAD)
		read = lw_read_find(slot, lw_read_of(lock));
	if (read) {
		lw_read_leave(read);
	} else {
		lw_read_forget(slot, lw_read_of(lock));
		lw_rwlock_uncount(lock);
	}
}

void lw_rwlock_read_unlock(struct lw_rwlock *lock)
{
	struct lw_read *own = lw_own_reads();

	/* The common case first: our first announcement, for which nobody sleeps. */
	if (own && lw_release_is_split() && lw_load(&own->of, relaxed) == lw_read_of(lock) &&
	    lw_load(&lock->readers, relaxed) & LW_RWLOCK_SPREAD)
		/* (lock,0) -> 0 */
		lw_store(&own->of, 0, release);
	else
		lw_rwlock_read_unlock_slow(lock);
}

/*
 * Writing
 */

/* COUNT is `readers`: wait for the readers that it counts. False if the wait limit is reached. */
static bool lw_rwlock_await_counted(struct lw_rwlock *lock, uint32_t readers, uint32_t spin,
				    const struct lw_wait_limit *limit)
{
	if (!lw_writers_park()) {
		lw_await_eq(&lock->readers, LW_RWLOCK_COUNT, 0, relaxed);
		return true;
	}
	if (lw_await_ne_bounded(&lock->readers, ~0u, readers, spin) != readers)
		return true;
	if (lw_limit_reached(limit))
		return false;
	/* AWAITED: 0 -> 1 */
	if (readers & LW_RWLOCK_AWAITED ||
	    lw_try_cmpxchg(&lock->readers, &readers, readers | LW_RWLOCK_AWAITED, relaxed))
		lw_park(&lock->readers, readers | LW_RWLOCK_AWAITED, limit);
	return true;
}

/*
 * WRITER is set, and the word is `readers`: hold the lock alone, if nobody reads it. If announced
 * readers are left, *read is one of them, else NULL. *from: see lw_reads_beyond().
 */
static bool lw_rwlock_hold(struct lw_rwlock *lock, uint32_t readers, uint32_t *from,
			   struct lw_read **read)
{
	int32_t count = lw_rwlock_count(readers);

	*read = NULL;
	if (count > 0)
		return false;
	if (readers & LW_RWLOCK_SPREAD)
		*read = lw_reads_beyond(lw_read_of(lock), (uint32_t)-count, from);
	/* (n,WRITER) -> (n,WRITER,HELD) */
	return !*read &&
	       lw_try_cmpxchg(&lock->readers, &readers, readers | LW_RWLOCK_HELD, acquire);
}

/* WRITER is set: wait until all readers have left. False if the wait limit is reached. */
static bool lw_rwlock_drain(struct lw_rwlock *lock, const struct lw_wait_limit *limit)
{
	uint32_t spin = lw_rwlock_spin(), from = 0, parks = 0, readers;
	struct lw_read *read;

	while (readers = lw_load(&lock->readers, relaxed),
	       !lw_rwlock_hold(lock, readers, &from, &read)) {
		bool goes_on = true;

		if (read)
			goes_on = lw_read_await(read, lw_read_of(lock), spin, limit, &parks);
		else if (lw_rwlock_count(readers) > 0)
			goes_on = lw_rwlock_await_counted(lock, readers, spin, limit);
		if (!goes_on)
			return false;
	}
	return true;
}

/* WRITER is set: hold the lock alone, if nobody reads it now. */
static bool lw_rwlock_try_hold(struct lw_rwlock *lock)
{
	uint32_t from = 0;
	struct lw_read *read;

	return lw_rwlock_hold(lock, lw_load(&lock->readers, relaxed), &from, &read);
}

/* The mutex is ours: keep new readers out. Returns whether we hold the lock alone already. */
static bool lw_rwlock_close(struct lw_rwlock *lock)
{
	uint32_t readers, now;

	/* The last writer has released the mutex, and clears WRITER next. */
	if (lw_load(&lock->readers, relaxed) & LW_RWLOCK_WRITER)
		lw_await_eq_soon(&lock->readers, LW_RWLOCK_WRITER, 0, relaxed);
	readers = lw_load(&lock->readers, relaxed);
	do {
		now = readers | LW_RWLOCK_WRITER;
		if (!(readers & (LW_RWLOCK_COUNT | LW_RWLOCK_SPREAD)))
			now |= LW_RWLOCK_HELD;
		/* (n,-) -> (n,WRITER); (0,-) -> (0,WRITER,HELD) if it is not SPREAD */
	} while (!lw_try_cmpxchg(&lock->readers, &readers, now, seq_cst));
	return now & LW_RWLOCK_HELD;
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
	if (lw_rwlock_close(lock) || lw_rwlock_drain(lock, limit))
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
	/* (0,-) -> (0,WRITER,HELD): not SPREAD, so nobody has announced itself */
	return lw_try_cmpxchg(&lock->readers, &readers, LW_RWLOCK_WRITER | LW_RWLOCK_HELD,
			      acquire) ||
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

bool lw_rwlock_trylock(struct lw_rwlock *lock)
{
	uint32_t readers = lw_load(&lock->readers, relaxed);

	if (readers & LW_RWLOCK_WRITER || lw_rwlock_count(readers) > 0 ||
	    !lw_mutex_trylock(&lock->queue))
		return false;
	if (lw_rwlock_close(lock) || lw_rwlock_try_hold(lock))
		return true;
	lw_mutex_unlock(&lock->queue);
	lw_rwlock_reopen(lock);
	return false;
}

/* `readers` when the writer leaves, without its own pieces. Only the writer changes them now. */
static inline uint32_t lw_rwlock_after_write(struct lw_rwlock *lock)
{
	uint32_t readers = lw_load(&lock->readers, relaxed) & (LW_RWLOCK_COUNT | LW_RWLOCK_SPREAD);

	/* With a COUNT below 0 there are announcements, so the lock stays SPREAD. */
	if (readers == LW_RWLOCK_SPREAD && lw_chance(1, (uint32_t)lw_tunable(rwlock_gather)))
		return 0;
	return readers;
}

void lw_rwlock_unlock(struct lw_rwlock *lock)
{
	uint32_t readers = lw_rwlock_after_write(lock);

	lw_mutex_unlock(&lock->queue);
	/* (n,WRITER,HELD) -> (n,-) */
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
	if (!lw_rwlock_close(lock))
		lw_rwlock_drain(lock, NULL);
}

bool lw_rwlock_try_upgrade(struct lw_rwlock *lock)
{
	if (lw_rwlock_close(lock) || lw_rwlock_try_hold(lock))
		return true;
	lw_rwlock_reopen(lock);
	return false;
}

void lw_rwlock_downgrade_to_upgradable(struct lw_rwlock *lock)
{
	/* (n,WRITER,HELD) -> (n,-) */
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
