// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * A user's program in C++11 and all later versions: rwlock has the interface of
 * std::shared_timed_mutex, with deadlines of any clock, and fits the standard library's lock
 * classes.
 */
#include <chrono>
#include <condition_variable>
#include <iostream>
#include <mutex>
#include <thread>
#include <type_traits>
#if __cplusplus >= 201402L
#include <shared_mutex>
#endif

#include <lockworks/lockworks.hpp>

using std::chrono::hours;
using std::chrono::milliseconds;

#define CHECK(condition)                                                                       \
	do {                                                                                   \
		if (!(condition)) {                                                            \
			std::cerr << __FILE__ << ':' << __LINE__ << ": not so: " << #condition \
				  << '\n';                                                     \
			return false;                                                          \
		}                                                                              \
	} while (0)

/* A clock half as fast as the steady clock, far from its epoch. */
struct slow_clock {
	using duration = std::chrono::duration<double, std::milli>;
	using rep = duration::rep;
	using period = duration::period;
	using time_point = std::chrono::time_point<slow_clock>;
	static constexpr bool is_steady = true;

	static time_point now()
	{
		const auto since = std::chrono::steady_clock::now().time_since_epoch();

		return time_point(std::chrono::duration_cast<duration>(since) / 2 - hours(1000000));
	}
};

template <typename Lock> static bool excludes_by_lock_classes()
{
	Lock lock;
	lockworks::mutex other;
	std::condition_variable_any changed;
	bool ready = false;

	static_assert(std::is_standard_layout<Lock>::value, "as in C");
	static_assert(!std::is_copy_constructible<Lock>::value, "a lock stays where it is");
	std::lock(lock, other);
	CHECK(!lock.try_lock() && !other.try_lock());
	lock.unlock();
	other.unlock();
	CHECK(std::try_lock(lock, other) == -1);
	lock.unlock();
	other.unlock();
#if __cplusplus >= 201703L
	{
		const std::scoped_lock both(lock, other);

		CHECK(!lock.try_lock() && !other.try_lock());
	}
#endif
	std::unique_lock<Lock> guard(lock);
	std::thread notifier([&] {
		const std::lock_guard<Lock> beside(lock);

		ready = true;
		changed.notify_all();
	});
	changed.wait(guard, [&] { return ready; });
	notifier.join();
	CHECK(!changed.wait_for(guard, milliseconds(1), [] { return false; }));
	CHECK(guard.owns_lock());
	return true;
}

/* Runs in another thread, because a thread may read again what it reads. */
template <typename Body> static bool elsewhere(Body body)
{
	bool result = false;

	std::thread([&] { result = body(); }).join();
	return result;
}

template <typename Clock> static bool times_out_by(lockworks::rwlock &lock)
{
	const auto soon = Clock::now() + milliseconds(5);

	lock.lock();
	CHECK(elsewhere([&] { return !lock.try_lock_until(soon) && Clock::now() >= soon; }));
	CHECK(elsewhere([&] { return !lock.try_lock_shared_until(Clock::now() - hours(1)); }));
	CHECK(elsewhere([&] {
		const auto later = Clock::now() + milliseconds(5);

		return !lock.try_lock_shared_until(later) && Clock::now() >= later;
	}));
	lock.unlock();
	CHECK(lock.try_lock_until(Clock::now() - hours(1)));
	lock.unlock();
	CHECK(lock.try_lock_shared_until(Clock::now() + hours(1)));
	CHECK(elsewhere([&] { return !lock.try_lock_until(Clock::now() + milliseconds(1)); }));
	CHECK(elsewhere([&] {
		bool reads = lock.try_lock_shared_until(Clock::now());

		if (reads)
			lock.unlock_shared();
		return reads;
	}));
	lock.unlock_shared();
	return true;
}

static bool has_the_interface_of_shared_timed_mutex()
{
	lockworks::rwlock lock;

	CHECK(times_out_by<std::chrono::steady_clock>(lock));
	CHECK(times_out_by<std::chrono::system_clock>(lock));
	CHECK(times_out_by<slow_clock>(lock));
	lock.lock_shared();
	CHECK(!elsewhere([&] { return lock.try_lock(); }));
	CHECK(!elsewhere([&] { return lock.try_lock_for(std::chrono::microseconds(1)); }));
	lock.unlock_shared();
	CHECK(lock.try_lock());
	CHECK(!elsewhere([&] { return lock.try_lock_shared(); }));
	CHECK(!elsewhere([&] { return lock.try_lock_shared_for(milliseconds(1)); }));
	lock.unlock();
	CHECK(lock.try_lock_shared_for(hours::max()));
	lock.unlock_shared();
#if __cplusplus >= 201402L
	{
		const std::shared_lock<lockworks::rwlock> by(lock, slow_clock::now() + hours(1));
		const std::shared_lock<lockworks::rwlock> again(lock, hours(1));

		CHECK(by.owns_lock() && again.owns_lock());
		CHECK(!elsewhere([&] { return lock.try_lock(); }));
	}
#endif
	const std::unique_lock<lockworks::rwlock> alone(lock, slow_clock::now() + hours(1));
	CHECK(alone.owns_lock());
	return true;
}

static lockworks::mutex guard;
static int guarded LW_GUARDED_BY(guard);

static bool is_guarded()
{
	lockworks::unique_lock<lockworks::mutex> lock(guard);

	guarded++;
	lock.unlock();
	lock.lock();
	guarded--;
	CHECK(guarded == 0 && !guard.try_lock());
	return true;
}

int main()
{
	return !(excludes_by_lock_classes<lockworks::mutex>() &&
		 excludes_by_lock_classes<lockworks::rwlock>() &&
		 excludes_by_lock_classes<lockworks::qspinlock>() &&
		 has_the_interface_of_shared_timed_mutex() && is_guarded() && guard.try_lock());
}
