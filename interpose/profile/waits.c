// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>

#include "acquisitions.h"
#include "glibc.h"
#include "holder.h"
#include "steps.h"
#include "waits.h"

#define LW_SECOND UINT64_C(1000000000)

/* Waits for the lock by the function of glibc. */
static int lw_acquire(void *lock, enum lw_profile_mode mode, clockid_t clock,
		      const struct timespec *deadline)
{
	const struct lw_glibc *glibc = lw_glibc();

	switch (mode) {
	case LW_PROFILE_READ:
		return deadline ? glibc->rwlock_clockrdlock(lock, clock, deadline)
				: glibc->rwlock_rdlock(lock);
	case LW_PROFILE_WRITE:
		return deadline ? glibc->rwlock_clockwrlock(lock, clock, deadline)
				: glibc->rwlock_wrlock(lock);
	default:
		return deadline ? glibc->mutex_clocklock(lock, clock, deadline)
				: glibc->mutex_lock(lock);
	}
}

/* Entries of waits in progress */

/* Records that this thread begins to wait for a lock. NULL: there is no room. */
static struct lw_profile_wait *lw_wait_begin(struct lw_profile *profile, uint64_t key,
					     uint64_t caller, uint64_t begun)
{
	/* Threads have stacks of their own, so this address leads most of them to different
	 * entries. */
	uint64_t at = (uintptr_t)&lw_profile_thread >> 12;

	if (!lw_profile_has(profile, profile->wait, sizeof(profile->wait)))
		return NULL;
	for (int probes = 0; probes < 64; probes++, at++) {
		struct lw_profile_wait *wait = &profile->wait[at % LW_PROFILE_WAITS];
		uint64_t none = 0;

		if (lw_try_cmpxchg(&wait->key, &none, key, relaxed)) {
			lw_store(&wait->caller, caller, relaxed);
			lw_store(&wait->thread, lw_profile_self(profile), relaxed);
			lw_store(&wait->tid, lw_profile_tid, relaxed);
			/* An entry without a time is not complete yet. */
			lw_store(&wait->begun, begun, release);
			return wait;
		}
	}
	return NULL;
}

static void lw_wait_end(struct lw_profile_wait *wait)
{
	if (!wait)
		return;
	lw_store(&wait->begun, 0, relaxed);
	/* release: the next thread here finds no time */
	lw_store(&wait->key, 0, release);
}

/* Returns where the thread with this ID waits for a lock itself. 0: it does not. */
static uint64_t lw_nested_wait(struct lw_profile *profile, uint32_t tid)
{
	if (!lw_profile_has(profile, profile->wait, sizeof(profile->wait)))
		return 0;
	for (int i = 0; i < LW_PROFILE_WAITS; i++) {
		const struct lw_profile_wait *wait = &profile->wait[i];

		/* acquire: an entry that is complete */
		if (lw_load(&wait->begun, acquire) && lw_load(&wait->tid, relaxed) == tid)
			return lw_load(&wait->caller, relaxed);
	}
	return 0;
}

/* Causes */

/* Returns the entry of a cause, which it makes if there is none. NULL: there is no room. */
static struct lw_profile_cause *lw_cause(struct lw_profile *profile,
					 const struct lw_profile_cause *like)
{
	uint64_t at =
		(like->key ^ like->caller * 3 ^ like->holder * 5 ^ like->detail * 7 ^ like->what) *
			UINT64_C(0x9e3779b97f4a7c15) >>
		32;

	for (int probes = 0; probes < 64; probes++, at++) {
		struct lw_profile_cause *cause = &profile->cause[at % LW_PROFILE_CAUSES];
		uint32_t state;

		if (!lw_profile_has(profile, cause, sizeof(*cause)))
			break;
		/* acquire: an entry that is complete */
		state = lw_load(&cause->state, acquire);

		if (state == 0 && lw_try_cmpxchg(&cause->state, &state, 1, relaxed)) {
			cause->what = like->what;
			cause->key = like->key;
			cause->caller = like->caller;
			cause->holder = like->holder;
			cause->detail = like->detail;
			/* release: the entry */
			lw_store(&cause->state, 2, release);
			return cause;
		}
		/* An entry that another thread is about to complete may be the same. Then there
		 * are two, and the command sums them up. */
		if (state == 2 && cause->what == like->what && cause->key == like->key &&
		    cause->caller == like->caller && cause->holder == like->holder &&
		    cause->detail == like->detail)
			return cause;
	}
	lw_fetch_add(&profile->lost_causes, 1, relaxed);
	return NULL;
}

/* A hold of a lock: the entry's words for it, both 0 if the lock is free. */
struct lw_hold {
	uint64_t hold, since;
};

/*
 * A wait, and what the last look saw. The first look is the beginning of the wait, or the moment
 * from which this thread is the one that looks.
 */
struct lw_watch {
	struct lw_profile *profile;
	struct lw_profile_lock *of; /* the entry of the lock; NULL: there is no room */
	bool looks;		    /* this thread is the one that looks */
	uint64_t key, caller;
	bool is_shared;		/* other processes may hold the lock */
	uint64_t begun;		/* when the wait began, by the clock of the record */
	uint64_t began, looked; /* when it began and the last look, by CLOCK_MONOTONIC */
	struct lw_hold hold;	/* of the lock then */
	struct lw_doing doing;	/* of the holder then */
	uint64_t cpu_time;	/* of the holder then */
	uint64_t throttled;	/* time for which the control groups had been throttled then */
	uint64_t due, late;	/* when that look was due, and how late it was */
	uint64_t preempted; /* time of this holder without a CPU, for which there is no reason */
	bool has_cause;
};

static struct lw_hold lw_hold_by_key(struct lw_profile *profile, uint64_t key)
{
	const struct lw_profile_lock *of = lw_profile_find(profile, key, false);

	return of ? (struct lw_hold){lw_load(&of->hold, relaxed), lw_load(&of->since, relaxed)}
		  : (struct lw_hold){0, 0};
}

/* Returns the present hold of the lock that a thread waits for. An rwlock has two entries. */
static struct lw_hold lw_present_hold(const struct lw_watch *watch)
{
	const uint64_t lock = watch->key & ~(uint64_t)LW_PROFILE_MODE_MASK;
	struct lw_hold hold;

	if ((watch->key & LW_PROFILE_MODE_MASK) == LW_PROFILE_MUTEX)
		return lw_hold_by_key(watch->profile, watch->key);
	hold = lw_hold_by_key(watch->profile, lock | LW_PROFILE_WRITE);
	return hold.hold ? hold : lw_hold_by_key(watch->profile, lock | LW_PROFILE_READ);
}

/* Returns the return address of the holder's call. 0: it is not known, or no holder is to blame. */
static uint64_t lw_blamed(const struct lw_watch *watch, enum lw_profile_what what)
{
	const uint64_t site = watch->hold.hold >> 32;

	return site && what != LW_PROFILE_IN_TURN && what != LW_PROFILE_LATE &&
			       what != LW_PROFILE_UNWATCHED
		       ? watch->profile->site[site - 1].caller
		       : 0;
}

/* Adds time to a cause. It may be negative, modulo 2^64. */
static void lw_blame(struct lw_watch *watch, struct lw_doing doing, uint64_t ns)
{
	const struct lw_profile_cause like = {
		.what = doing.what,
		.key = watch->key,
		.caller = watch->caller,
		.holder = lw_blamed(watch, doing.what),
		.detail = doing.detail,
	};
	struct lw_profile_cause *cause = ns ? lw_cause(watch->profile, &like) : NULL;

	if (!cause)
		return;
	lw_fetch_add(&cause->ns, ns, relaxed);
	if (!watch->has_cause)
		lw_fetch_add(&cause->waits, 1, relaxed);
	watch->has_cause = true;
}

static uint64_t lw_lesser(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

/*
 * Adds time in which the holder did not sleep. As far as control groups were throttled meanwhile,
 * that is the cause. The kernel tells of throttling when it has ended, so an earlier time without a
 * CPU may have been throttling too.
 */
static void lw_blame_awake(struct lw_watch *watch, enum lw_profile_what what, uint64_t ns)
{
	const uint64_t throttled = lw_profile_throttled(watch->looked),
		       more = throttled - watch->throttled;
	const uint64_t now = lw_lesser(more, ns), before = lw_lesser(more - now, watch->preempted);
	const uint64_t late = what == LW_PROFILE_IN_TURN ? lw_lesser(watch->late, ns - now) : 0;

	watch->throttled = throttled;
	lw_blame(watch, (struct lw_doing){LW_PROFILE_THROTTLED, 0}, now + before);
	lw_blame(watch, (struct lw_doing){LW_PROFILE_PREEMPTED, 0}, -before);
	lw_blame(watch, (struct lw_doing){LW_PROFILE_LATE, 0}, late);
	lw_blame(watch, (struct lw_doing){what, 0}, ns - now - late);
	watch->preempted -= before;
	if (what == LW_PROFILE_PREEMPTED)
		watch->preempted += ns - now;
}

/* Returns whether a look that saw this leaves no room for throttling. */
static bool lw_sleeps(enum lw_profile_what what)
{
	return what != LW_PROFILE_RAN && what != LW_PROFILE_PREEMPTED && what != LW_PROFILE_IN_TURN;
}

/* Returns how long the lock has been held, in nanoseconds. */
static uint64_t lw_held_ns(const struct lw_watch *watch, struct lw_hold hold)
{
	const uint64_t now = lw_profile_now();
	const double part = (double)lw_profile_elapsed(hold.since, now) /
			    (double)(lw_profile_elapsed(watch->begun, now) + 1);

	return (uint64_t)(part * (double)(watch->looked - watch->began));
}

static struct lw_doing lw_doing_of(const struct lw_watch *watch, struct lw_hold hold)
{
	const uint32_t tid = (uint32_t)hold.hold;
	uint64_t nested = lw_nested_wait(watch->profile, tid);

	return nested ? (struct lw_doing){LW_PROFILE_NESTED, nested} : lw_profile_look(tid);
}

/* Begins to look at the present hold. Returns the CPU time of the holder since the last look. */
static uint64_t lw_look_at(struct lw_watch *watch, struct lw_hold hold, bool is_same)
{
	const uint64_t cpu_time = lw_profile_cpu_time((uint32_t)hold.hold);
	const uint64_t ran = is_same ? cpu_time - watch->cpu_time : 0;

	if (!is_same)
		watch->preempted = 0;
	watch->hold = hold;
	watch->cpu_time = cpu_time;
	watch->doing = lw_doing_of(watch, hold);
	if (watch->doing.what == LW_PROFILE_FAULTED)
		lw_profile_add_module_of(watch->profile, watch->doing.detail);
	return ran;
}

/* Sets the time of the last look to the present. Returns the time since the look before. */
static uint64_t lw_next_look(struct lw_watch *watch)
{
	const uint64_t now = lw_profile_clock_ns(CLOCK_MONOTONIC), ns = now - watch->looked;

	watch->looked = now;
	watch->late = now > watch->due ? lw_lesser(now - watch->due, ns) : 0;
	return ns;
}

/* Adds the time since the last look, in which there was none. */
static void lw_look_away(struct lw_watch *watch)
{
	watch->doing = (struct lw_doing){LW_PROFILE_UNWATCHED, 0};
	watch->hold = (struct lw_hold){0, 0};
	lw_blame(watch, watch->doing, lw_next_look(watch));
}

/*
 * The time before which this process does not look again. Looks take at most this part of the time
 * of a CPU, however many locks threads wait for.
 */
static lw_atomic(uint64_t) lw_next_due;
#define LW_LOOKS_PART 20

/* Looks what the holder does, and adds the time since the last look to the causes of the wait. */
static void lw_look(struct lw_watch *watch)
{
	const struct lw_hold last = watch->hold, hold = lw_present_hold(watch);
	const bool is_same = hold.hold == last.hold && hold.since == last.since;
	uint64_t ns = lw_next_look(watch), held = lw_held_ns(watch, hold), ran;
	enum lw_profile_what runs = LW_PROFILE_IN_TURN;

	if (!hold.hold) {
		watch->doing.what = watch->is_shared ? LW_PROFILE_UNSEEN : LW_PROFILE_IN_TURN;
		watch->doing.detail = 0;
		lw_blame_awake(watch, watch->doing.what, ns);
		return;
	}
	if (held < watch->late) {
		/* A waiter that is late does not know what was before this hold. */
		lw_blame_awake(watch, LW_PROFILE_IN_TURN, watch->late - held);
		ns -= watch->late - held;
		watch->late = held;
	}
	if (held >= lw_profile_own.slow_ns)
		runs = LW_PROFILE_RAN;
	ran = lw_lesser(lw_look_at(watch, hold, is_same), ns);
	lw_blame(watch, (struct lw_doing){runs, 0}, ran);
	if (lw_sleeps(watch->doing.what)) {
		lw_blame(watch, watch->doing, ns - ran);
	} else if (watch->doing.what == LW_PROFILE_RAN) {
		/* Why a thread that runs now did not run before is not known. */
		lw_blame_awake(watch, is_same ? LW_PROFILE_PREEMPTED : runs, ns - ran);
		watch->doing.what = runs;
	} else {
		/*
		 * The thread that looks may be the one that took the CPU of a new holder. So it was
		 * without one only since it had the lock.
		 */
		const uint64_t preempted = is_same ? ns - ran : lw_lesser(held, ns - ran);

		lw_blame_awake(watch, LW_PROFILE_IN_TURN, ns - ran - preempted);
		lw_blame_awake(watch, LW_PROFILE_PREEMPTED, preempted);
	}
}

/* Begins to look, unless another thread does for this lock. */
static void lw_try_to_look(struct lw_watch *watch)
{
	uint32_t none = 0;

	if (watch->of && !lw_try_cmpxchg(&watch->of->looker, &none, lw_profile_tid, relaxed))
		return;
	watch->looks = true;
	watch->doing = (struct lw_doing){LW_PROFILE_IN_TURN, 0};
	watch->throttled = lw_profile_throttled_recently(watch->looked);
	watch->hold = lw_present_hold(watch);
	if (watch->hold.hold)
		watch->cpu_time = lw_profile_cpu_time((uint32_t)watch->hold.hold);
}

static struct lw_watch lw_watch_begin(struct lw_profile *profile, uint64_t key, uint64_t caller,
				      uint64_t begun, bool is_shared)
{
	struct lw_watch watch = {
		.profile = profile,
		.of = lw_profile_find(profile, key, true),
		.key = key,
		.caller = caller,
		.is_shared = is_shared,
		.begun = begun,
		.began = lw_profile_clock_ns(CLOCK_MONOTONIC),
		.doing = {LW_PROFILE_UNWATCHED, 0},
	};

	lw_profile_self(profile);
	watch.looked = watch.began;
	lw_try_to_look(&watch);
	return watch;
}

/* Looks, if it is this thread that does, and if looks have not taken too much time already. */
static void lw_watch(struct lw_watch *watch)
{
	const uint64_t now = lw_profile_clock_ns(CLOCK_MONOTONIC);

	if (!watch->looks || now < lw_load(&lw_next_due, relaxed)) {
		lw_look_away(watch);
		if (!watch->looks)
			lw_try_to_look(watch);
		return;
	}
	lw_look(watch);
	lw_store(&lw_next_due, now + LW_LOOKS_PART * (lw_profile_clock_ns(CLOCK_MONOTONIC) - now),
		 relaxed);
}

/* Adds the time since the last look to the cause that it saw, if the wait was slow. */
static void lw_watch_end(struct lw_watch *watch)
{
	const uint64_t ns = lw_next_look(watch);

	if (watch->looked - watch->began >= lw_profile_own.slow_ns) {
		if (lw_sleeps(watch->doing.what))
			lw_blame(watch, watch->doing, ns);
		else
			lw_blame_awake(watch, watch->doing.what, ns);
	}
	if (watch->looks && watch->of)
		lw_store(&watch->of->looker, 0, relaxed);
}

/* Waits */

/* Returns whether glibc waits until this time. */
static bool lw_is_deadline(clockid_t clock, const struct timespec *deadline)
{
	return !deadline || (deadline->tv_nsec >= 0 && deadline->tv_nsec < (long)LW_SECOND &&
			     (clock == CLOCK_REALTIME || clock == CLOCK_MONOTONIC));
}

/* The time after which a thread tries to be the one that looks, in nanoseconds. */
#define LW_UNTIL_TURN 20000000

/* Waits until the next look, or until the deadline, if that is earlier. Then `is_last` is true. */
static int lw_step(struct lw_watch *watch, void *lock, clockid_t clock,
		   const struct timespec *deadline, bool *is_last)
{
	const uint64_t part = (watch->looked - watch->began) / 4;
	const uint64_t least = watch->looks || lw_profile_own.slow_ns > LW_UNTIL_TURN
				       ? lw_profile_own.slow_ns
				       : LW_UNTIL_TURN;
	const uint64_t step = part < least ? least : part;
	const uint64_t at = lw_profile_clock_ns(clock) + step;
	const struct timespec look = {(time_t)(at / LW_SECOND), (long)(at % LW_SECOND)};

	watch->due = clock == CLOCK_MONOTONIC ? at : lw_profile_clock_ns(CLOCK_MONOTONIC) + step;
	*is_last = deadline &&
		   (deadline->tv_sec < look.tv_sec ||
		    (deadline->tv_sec == look.tv_sec && deadline->tv_nsec <= look.tv_nsec));
	return lw_acquire(lock, watch->key & LW_PROFILE_MODE_MASK, clock,
			  *is_last ? deadline : &look);
}

int lw_profile_wait(void *lock, enum lw_profile_mode mode, bool is_shared, const void *caller,
		    uint64_t begun, clockid_t clock, const struct timespec *deadline)
{
	struct lw_profile *profile = lw_load(&lw_profile_own.record, acquire);
	const uint64_t key = lw_profile_key(lock, mode);
	struct lw_profile_wait *wait;
	struct lw_watch watch;
	bool is_last;
	int error;

	if (!profile || !lw_is_deadline(clock, deadline))
		return lw_acquire(lock, mode, clock, deadline);
	if (lw_unlikely(lw_profile_steps != NULL)) {
		lw_profile_add_step(LW_STEP_WAITS, mode, lock, (uintptr_t)caller);
		return lw_acquire(lock, mode, clock, deadline);
	}
	wait = lw_wait_begin(profile, key, (uintptr_t)caller, begun);
	watch = lw_watch_begin(profile, key, (uintptr_t)caller, begun, is_shared);
	while ((error = lw_step(&watch, lock, clock, deadline, &is_last)) == ETIMEDOUT && !is_last)
		lw_watch(&watch);
	/* A priority-inheriting mutex has no deadline by CLOCK_MONOTONIC before Linux 5.14. */
	if (error == EINVAL && !deadline)
		error = lw_acquire(lock, mode, clock, NULL);
	lw_watch_end(&watch);
	lw_wait_end(wait);
	return error;
}
