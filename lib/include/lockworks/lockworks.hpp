/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Lockworks for C++11 and later: the locks of lockworks.h as classes. The lock lw_X in C is the
 * class X in the namespace lockworks.
 *
 * All classes except mcs are Lockable, rwlock is SharedLockable too, so std::lock_guard,
 * std::scoped_lock, std::unique_lock and std::condition_variable_any take them. mutex, pv, unfair
 * and rwlock are TimedLockable, rwlock is SharedTimedLockable too, by any clock. A mcs::guard holds
 * a mcs lock, with its queue node. condition_variable works with mutex only.
 *
 * Each lock is a standard-layout class of the same size as in C. Its constructor is constexpr, so a
 * lock in static storage is ready before any code runs. Its destructor does nothing. It can be
 * neither copied nor moved. lock() has acquire order and unlock() release order, as with
 * std::mutex. No operation throws.
 *
 * Each lock is a capability of clang's thread-safety analysis (thread_safety.h). The lock classes
 * of a standard library may be unknown to it. unique_lock is std::unique_lock, and known.
 */
#ifndef LOCKWORKS_HPP
#define LOCKWORKS_HPP

#include <chrono>
#include <condition_variable>
#include <ctime>
#include <mutex>

#include <lockworks/lockworks.h>
#include <lockworks/thread_safety.h>

namespace lockworks
{

namespace detail
{

struct immovable {
	constexpr immovable() noexcept = default;
	immovable(const immovable &) = delete;
	immovable &operator=(const immovable &) = delete;
};

/* Longer than any program runs, yet no overflow when counted in nanoseconds. */
constexpr std::chrono::hours never{24 * 365 * 200};

/* Rounds `time` up to nanoseconds, and limits it to the range from zero to never. */
template <typename Rep, typename Period>
std::chrono::nanoseconds within_reach(const std::chrono::duration<Rep, Period> &time)
{
	if (time <= time.zero())
		return std::chrono::nanoseconds::zero();
	if (std::chrono::duration<double>(time) >= never)
		return never;
	const auto whole = std::chrono::duration_cast<std::chrono::nanoseconds>(time);

	return whole < time ? whole + std::chrono::nanoseconds(1) : whole;
}

/* Returns the point in time that is `since` after the epoch of its clock. */
template <typename Duration> struct timespec timespec_of(const Duration &since)
{
	const auto whole = within_reach(since);
	const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(whole);
	struct timespec time = {};

	time.tv_sec = static_cast<time_t>(seconds.count());
	time.tv_nsec = static_cast<long>((whole - seconds).count());
	return time;
}

/* A function of C that acquires a lock, until a deadline at most; 0 if it did. */
template <typename Lock>
using acquire_until = int(Lock *, clockid_t, const struct timespec *, struct lw_cancel *);

/* Waits until `time` at most. Returns whether the lock was acquired. */
template <typename Lock, typename Duration>
bool try_until(acquire_until<Lock> &acquire, Lock &lock,
	       const std::chrono::time_point<std::chrono::steady_clock, Duration> &time)
{
	const struct timespec until = timespec_of(time.time_since_epoch());

	return acquire(&lock, CLOCK_MONOTONIC, &until, nullptr) == 0;
}

template <typename Lock, typename Duration>
bool try_until(acquire_until<Lock> &acquire, Lock &lock,
	       const std::chrono::time_point<std::chrono::system_clock, Duration> &time)
{
	const struct timespec until = timespec_of(time.time_since_epoch());

	return acquire(&lock, CLOCK_REALTIME, &until, nullptr) == 0;
}

template <typename Lock, typename Rep, typename Period>
bool try_for(acquire_until<Lock> &acquire, Lock &lock,
	     const std::chrono::duration<Rep, Period> &time)
{
	return try_until(acquire, lock, std::chrono::steady_clock::now() + within_reach(time));
}

template <typename Lock, typename Clock, typename Duration>
bool try_until(acquire_until<Lock> &acquire, Lock &lock,
	       const std::chrono::time_point<Clock, Duration> &time)
{
	/*
	 * The wait is by steady_clock. Clock may be set meanwhile, or run at another rate, so read
	 * it again.
	 */
	for (auto now = Clock::now(); now < time; now = Clock::now()) {
		if (try_for(acquire, lock, time - now))
			return true;
	}
	/* A free lock is acquired, even after the deadline. */
	return try_for(acquire, lock, std::chrono::nanoseconds::zero());
}

} // namespace detail

/* Defines a Lockable class around the lock lw_<id>. */
#define LW_LOCKABLE(id, type, unlocked) LW_CLASS(id, type, unlocked, )

/* Defines a TimedLockable class around the lock lw_<id>. */
#define LW_TIMED_LOCKABLE(id, type, unlocked)                                                  \
	LW_CLASS(                                                                              \
		id, type, unlocked,                                                            \
		template <typename Rep, typename Period> bool try_lock_for(                    \
			const std::chrono::duration<Rep, Period> &time) LW_TRY_ACQUIRE(true) { \
			return detail::try_for(lw_##id##_lock_until, lock_, time);             \
		} template <typename Clock, typename Duration>                                 \
		bool try_lock_until(const std::chrono::time_point<Clock, Duration> &time)      \
			LW_TRY_ACQUIRE(true) {                                                 \
				return detail::try_until(lw_##id##_lock_until, lock_, time);   \
			})

#define LW_CLASS(id, type, unlocked, ...)                     \
	class LW_CAPABILITY("mutex") id : detail::immovable   \
	{                                                     \
	public:                                               \
		using native_handle_type = type *;            \
                                                              \
		constexpr id() noexcept = default;            \
		void lock() noexcept LW_ACQUIRE()             \
		{                                             \
			lw_##id##_lock(&lock_);               \
		}                                             \
		bool try_lock() noexcept LW_TRY_ACQUIRE(true) \
		{                                             \
			return lw_##id##_trylock(&lock_);     \
		}                                             \
		void unlock() noexcept LW_RELEASE()           \
		{                                             \
			lw_##id##_unlock(&lock_);             \
		}                                             \
		native_handle_type native_handle() noexcept   \
		{                                             \
			return &lock_;                        \
		}                                             \
		__VA_ARGS__                                   \
                                                              \
	private:                                              \
		type lock_ = unlocked;                        \
	};                                                    \
	static_assert(sizeof(id) == sizeof(type), "the class is as large as the lock in C")

LW_LOCKABLE(tas, struct lw_tas, LW_TAS_INIT);
LW_LOCKABLE(ticket, union lw_ticket, LW_TICKET_INIT);
LW_LOCKABLE(qspinlock, struct lw_qspinlock, LW_QSPINLOCK_INIT);
LW_LOCKABLE(cna, struct lw_cna, LW_CNA_INIT);
LW_LOCKABLE(hq, struct lw_hq, LW_HQ_INIT);
LW_TIMED_LOCKABLE(mutex, struct lw_mutex, LW_MUTEX_INIT);
LW_TIMED_LOCKABLE(pv, struct lw_pv, LW_PV_INIT);
LW_TIMED_LOCKABLE(unfair, struct lw_unfair, LW_UNFAIR_INIT);

#undef LW_LOCKABLE
#undef LW_TIMED_LOCKABLE
#undef LW_CLASS

/*
 * The reader-writer lock, with the interface of std::shared_timed_mutex, so std::shared_lock takes
 * it. A thread may lock_shared() again what it has locked so. upgradable_lock() and upgrade() are
 * those of rwlock.h.
 */
class LW_CAPABILITY("rwlock") rwlock : detail::immovable
{
public:
	using native_handle_type = struct lw_rwlock *;

	constexpr rwlock() noexcept = default;
	void lock() noexcept LW_ACQUIRE()
	{
		lw_rwlock_lock(&lock_);
	}
	bool try_lock() noexcept LW_TRY_ACQUIRE(true)
	{
		return lw_rwlock_trylock(&lock_);
	}
	void unlock() noexcept LW_RELEASE()
	{
		lw_rwlock_unlock(&lock_);
	}
	void lock_shared() noexcept LW_ACQUIRE_SHARED()
	{
		lw_rwlock_read_lock(&lock_);
	}
	bool try_lock_shared() noexcept LW_TRY_ACQUIRE_SHARED(true)
	{
		return lw_rwlock_read_trylock(&lock_);
	}
	void unlock_shared() noexcept LW_RELEASE_SHARED()
	{
		lw_rwlock_read_unlock(&lock_);
	}
	/* The analysis takes an upgradable holder for a reader, and does not follow upgrades. */
	void upgradable_lock() noexcept LW_ACQUIRE_SHARED()
	{
		lw_rwlock_upgradable_lock(&lock_);
	}
	bool try_upgradable_lock() noexcept LW_TRY_ACQUIRE_SHARED(true)
	{
		return lw_rwlock_upgradable_trylock(&lock_);
	}
	void upgradable_unlock() noexcept LW_RELEASE_SHARED()
	{
		lw_rwlock_upgradable_unlock(&lock_);
	}
	/* From upgradable to alone. */
	void upgrade() noexcept
	{
		lw_rwlock_upgrade(&lock_);
	}
	bool try_upgrade() noexcept
	{
		return lw_rwlock_try_upgrade(&lock_);
	}
	/* From alone to shared. */
	void downgrade() noexcept
	{
		lw_rwlock_downgrade(&lock_);
	}

	/* These wait for at most `time`, or until `time`. Each returns whether the lock was
	 * acquired. */
	template <typename Rep, typename Period>
	bool try_lock_for(const std::chrono::duration<Rep, Period> &time) LW_TRY_ACQUIRE(true)
	{
		return detail::try_for(lw_rwlock_lock_until, lock_, time);
	}

	template <typename Clock, typename Duration>
	bool try_lock_until(const std::chrono::time_point<Clock, Duration> &time)
		LW_TRY_ACQUIRE(true)
	{
		return detail::try_until(lw_rwlock_lock_until, lock_, time);
	}

	template <typename Rep, typename Period>
	bool try_lock_shared_for(const std::chrono::duration<Rep, Period> &time)
		LW_TRY_ACQUIRE_SHARED(true)
	{
		return detail::try_for(lw_rwlock_read_lock_until, lock_, time);
	}

	template <typename Clock, typename Duration>
	bool try_lock_shared_until(const std::chrono::time_point<Clock, Duration> &time)
		LW_TRY_ACQUIRE_SHARED(true)
	{
		return detail::try_until(lw_rwlock_read_lock_until, lock_, time);
	}

	native_handle_type native_handle() noexcept
	{
		return &lock_;
	}

private:
	struct lw_rwlock lock_ = LW_RWLOCK_INIT;
};
static_assert(sizeof(rwlock) == sizeof(struct lw_rwlock), "the class is as large as the lock in C");

/*
 * std::unique_lock for a lock of this header, which clang's thread-safety analysis knows. It holds
 * the lock from its constructor on, and can be neither copied nor moved.
 */
template <typename Lock> class LW_SCOPED_CAPABILITY unique_lock : public std::unique_lock<Lock>
{
public:
	explicit unique_lock(Lock &lock) LW_ACQUIRE(lock) : std::unique_lock<Lock>(lock)
	{
	}
	unique_lock(const unique_lock &) = delete;
	unique_lock &operator=(const unique_lock &) = delete;
	~unique_lock() LW_RELEASE()
	{
	}

	void lock() LW_ACQUIRE()
	{
		std::unique_lock<Lock>::lock();
	}
	void unlock() LW_RELEASE()
	{
		std::unique_lock<Lock>::unlock();
	}
};

/* The MCS lock. Only a guard can hold it. */
class LW_CAPABILITY("mutex") mcs : detail::immovable
{
public:
	/* Holds the lock while it is in scope. Contains the queue node. */
	class LW_SCOPED_CAPABILITY guard : detail::immovable
	{
	public:
		explicit guard(mcs &lock) noexcept LW_ACQUIRE(lock) : lock_(lock.lock_)
		{
			lw_mcs_lock(&lock_, &node_);
		}

		~guard() LW_RELEASE()
		{
			lw_mcs_unlock(&lock_, &node_);
		}

	private:
		struct lw_mcs &lock_;
		struct lw_mcs_node node_;
	};

	constexpr mcs() noexcept = default;

private:
	struct lw_mcs lock_ = LW_MCS_INIT;
};

/*
 * A condition variable with the interface of std::condition_variable, for a
 * std::unique_lock<mutex>. The thread-safety analysis does not follow predicates: a predicate that
 * reads what a lock guards has LW_REQUIRES(lock).
 */
class condition_variable : detail::immovable
{
public:
	using native_handle_type = struct lw_cond *;

	constexpr condition_variable() noexcept = default;

	~condition_variable()
	{
		lw_cond_destroy(&cond_);
	}

	void notify_one() noexcept
	{
		lw_cond_signal(&cond_);
	}

	void notify_all() noexcept
	{
		lw_cond_broadcast(&cond_);
	}

	void wait(std::unique_lock<mutex> &lock) noexcept
	{
		lw_cond_wait(&cond_, lock.mutex()->native_handle());
	}

	template <typename Predicate>
	void wait(std::unique_lock<mutex> &lock, Predicate holds) LW_NO_THREAD_SAFETY_ANALYSIS
	{
		while (!holds())
			wait(lock);
	}

	template <typename Duration>
	std::cv_status
	wait_until(std::unique_lock<mutex> &lock,
		   const std::chrono::time_point<std::chrono::steady_clock, Duration> &time)
	{
		return wait_until(lock, CLOCK_MONOTONIC, time.time_since_epoch());
	}

	template <typename Duration>
	std::cv_status
	wait_until(std::unique_lock<mutex> &lock,
		   const std::chrono::time_point<std::chrono::system_clock, Duration> &time)
	{
		return wait_until(lock, CLOCK_REALTIME, time.time_since_epoch());
	}

	/* Waits by steady_clock for the time that remains by Clock. May return no_timeout early. */
	template <typename Clock, typename Duration>
	std::cv_status wait_until(std::unique_lock<mutex> &lock,
				  const std::chrono::time_point<Clock, Duration> &time)
	{
		const auto now = Clock::now();

		if (now < time)
			wait_for(lock, time - now);
		return Clock::now() < time ? std::cv_status::no_timeout : std::cv_status::timeout;
	}

	template <typename Clock, typename Duration, typename Predicate>
	bool wait_until(std::unique_lock<mutex> &lock,
			const std::chrono::time_point<Clock, Duration> &time,
			Predicate holds) LW_NO_THREAD_SAFETY_ANALYSIS
	{
		while (!holds()) {
			if (wait_until(lock, time) == std::cv_status::timeout)
				return holds();
		}
		return true;
	}

	template <typename Rep, typename Period>
	std::cv_status wait_for(std::unique_lock<mutex> &lock,
				const std::chrono::duration<Rep, Period> &time)
	{
		return wait_until(lock,
				  std::chrono::steady_clock::now() + detail::within_reach(time));
	}

	template <typename Rep, typename Period, typename Predicate>
	bool wait_for(std::unique_lock<mutex> &lock, const std::chrono::duration<Rep, Period> &time,
		      Predicate holds)
	{
		return wait_until(
			lock, std::chrono::steady_clock::now() + detail::within_reach(time), holds);
	}

	native_handle_type native_handle() noexcept
	{
		return &cond_;
	}

private:
	template <typename Duration>
	std::cv_status wait_until(std::unique_lock<mutex> &lock, clockid_t clock,
				  const Duration &since) noexcept
	{
		const struct timespec time = detail::timespec_of(since);

		return lw_cond_wait_until(&cond_, lock.mutex()->native_handle(), clock, &time)
			       ? std::cv_status::timeout
			       : std::cv_status::no_timeout;
	}

	struct lw_cond cond_ = LW_COND_INIT;
};

} // namespace lockworks

#endif
