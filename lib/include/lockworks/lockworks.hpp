/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Lockworks for C++17: the locks of lockworks.h as classes. The lock lw_X in C is the class X in
 * the namespace lockworks.
 *
 * All classes except mcs are Lockable, rwlock is SharedLockable too, so std::lock_guard,
 * std::scoped_lock, std::unique_lock and std::condition_variable_any take them. mutex, pv and
 * unfair are TimedLockable, by any clock. A mcs::guard holds a mcs lock, with its queue node.
 * condition_variable works with mutex only.
 *
 * Each lock is a standard-layout class of the same size as in C. Its constructor is constexpr, so a
 * lock in static storage is ready before any code runs. Its destructor does nothing. It can be
 * neither copied nor moved. lock() has acquire order and unlock() release order, as with
 * std::mutex. No operation throws.
 */
#ifndef LOCKWORKS_HPP
#define LOCKWORKS_HPP

#include <chrono>
#include <condition_variable>
#include <ctime>
#include <mutex>

#include <lockworks/lockworks.h>

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
	return std::chrono::ceil<std::chrono::nanoseconds>(time);
}

/* Returns the point in time that is `since` after the epoch of its clock. */
template <typename Duration> struct timespec timespec_of(const Duration &since)
{
	const auto whole = within_reach(since);
	const auto seconds = std::chrono::floor<std::chrono::seconds>(whole);
	struct timespec time = {};

	time.tv_sec = static_cast<time_t>(seconds.count());
	time.tv_nsec = static_cast<long>((whole - seconds).count());
	return time;
}

/* Adds the operations of a TimedLockable to the class Lock, which has a private lock_until(). */
template <typename Lock> class timed : immovable
{
public:
	/* Waits for at most `time`. Returns whether the lock was acquired. */
	template <typename Rep, typename Period>
	bool try_lock_for(const std::chrono::duration<Rep, Period> &time)
	{
		return try_lock_until(std::chrono::steady_clock::now() + within_reach(time));
	}

	/* Waits until `time` at most. Returns whether the lock was acquired. */
	template <typename Duration>
	bool
	try_lock_until(const std::chrono::time_point<std::chrono::steady_clock, Duration> &time)
	{
		return lock_until(CLOCK_MONOTONIC, time.time_since_epoch());
	}

	template <typename Duration>
	bool
	try_lock_until(const std::chrono::time_point<std::chrono::system_clock, Duration> &time)
	{
		return lock_until(CLOCK_REALTIME, time.time_since_epoch());
	}

	template <typename Clock, typename Duration>
	bool try_lock_until(const std::chrono::time_point<Clock, Duration> &time)
	{
		/*
		 * The wait is by steady_clock. Clock may be set meanwhile, or run at another rate,
		 * so read it again.
		 */
		for (auto now = Clock::now(); now < time; now = Clock::now()) {
			if (try_lock_for(time - now))
				return true;
		}
		return static_cast<Lock *>(this)->try_lock();
	}

private:
	template <typename Duration> bool lock_until(clockid_t clock, const Duration &since)
	{
		const struct timespec time = timespec_of(since);

		return static_cast<Lock *>(this)->lock_until(clock, time) == 0;
	}
};

} // namespace detail

/* Defines a Lockable class around the lock lw_<id>. */
#define LW_LOCKABLE(id, type, unlocked) LW_CLASS(id, type, unlocked, detail::immovable, )

/* Defines a TimedLockable class around the lock lw_<id>. */
#define LW_TIMED_LOCKABLE(id, type, unlocked)                                           \
	LW_CLASS(                                                                       \
		id, type, unlocked, public detail::timed<id>, friend detail::timed<id>; \
		int lock_until(clockid_t clock, const struct timespec &time) noexcept { \
			return lw_##id##_lock_until(&lock_, clock, &time, nullptr);     \
		})

#define LW_CLASS(id, type, unlocked, base, ...)             \
	class id : base                                     \
	{                                                   \
	public:                                             \
		using native_handle_type = type *;          \
                                                            \
		constexpr id() noexcept = default;          \
		void lock() noexcept                        \
		{                                           \
			lw_##id##_lock(&lock_);             \
		}                                           \
		bool try_lock() noexcept                    \
		{                                           \
			return lw_##id##_trylock(&lock_);   \
		}                                           \
		void unlock() noexcept                      \
		{                                           \
			lw_##id##_unlock(&lock_);           \
		}                                           \
		native_handle_type native_handle() noexcept \
		{                                           \
			return &lock_;                      \
		}                                           \
                                                            \
	private:                                            \
		__VA_ARGS__                                 \
		type lock_ = unlocked;                      \
	};                                                  \
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
class rwlock : public detail::timed<rwlock>
{
public:
	using native_handle_type = struct lw_rwlock *;

	constexpr rwlock() noexcept = default;
	void lock() noexcept
	{
		lw_rwlock_lock(&lock_);
	}
	bool try_lock() noexcept
	{
		return lw_rwlock_trylock(&lock_);
	}
	void unlock() noexcept
	{
		lw_rwlock_unlock(&lock_);
	}
	void lock_shared() noexcept
	{
		lw_rwlock_read_lock(&lock_);
	}
	bool try_lock_shared() noexcept
	{
		return lw_rwlock_read_trylock(&lock_);
	}
	void unlock_shared() noexcept
	{
		lw_rwlock_read_unlock(&lock_);
	}
	void upgradable_lock() noexcept
	{
		lw_rwlock_upgradable_lock(&lock_);
	}
	bool try_upgradable_lock() noexcept
	{
		return lw_rwlock_upgradable_trylock(&lock_);
	}
	void upgradable_unlock() noexcept
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

	/* Waits for at most `time`. Returns whether the lock was acquired. */
	template <typename Rep, typename Period>
	bool try_lock_shared_for(const std::chrono::duration<Rep, Period> &time)
	{
		return try_lock_shared_until(std::chrono::steady_clock::now() +
					     detail::within_reach(time));
	}

	/* Waits until `time` at most. Returns whether the lock was acquired. */
	template <typename Duration>
	bool try_lock_shared_until(
		const std::chrono::time_point<std::chrono::steady_clock, Duration> &time)
	{
		const struct timespec until = detail::timespec_of(time.time_since_epoch());

		return lw_rwlock_read_lock_until(&lock_, CLOCK_MONOTONIC, &until, nullptr) == 0;
	}

	template <typename Duration>
	bool try_lock_shared_until(
		const std::chrono::time_point<std::chrono::system_clock, Duration> &time)
	{
		const struct timespec until = detail::timespec_of(time.time_since_epoch());

		return lw_rwlock_read_lock_until(&lock_, CLOCK_REALTIME, &until, nullptr) == 0;
	}

	native_handle_type native_handle() noexcept
	{
		return &lock_;
	}

private:
	friend detail::timed<rwlock>;
	int lock_until(clockid_t clock, const struct timespec &time) noexcept
	{
		return lw_rwlock_lock_until(&lock_, clock, &time, nullptr);
	}
	struct lw_rwlock lock_ = LW_RWLOCK_INIT;
};
static_assert(sizeof(rwlock) == sizeof(struct lw_rwlock), "the class is as large as the lock in C");

/* The MCS lock. Only a guard can hold it. */
class mcs : detail::immovable
{
public:
	/* Holds the lock while it is in scope. Contains the queue node. */
	class guard : detail::immovable
	{
	public:
		explicit guard(mcs &lock) noexcept : lock_(lock.lock_)
		{
			lw_mcs_lock(&lock_, &node_);
		}

		~guard()
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
 * std::unique_lock<mutex>.
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

	template <typename Predicate> void wait(std::unique_lock<mutex> &lock, Predicate holds)
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
			const std::chrono::time_point<Clock, Duration> &time, Predicate holds)
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
