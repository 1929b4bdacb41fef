// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/* A user's program in C++: every class, used through the standard library's lock classes. */
#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <iostream>
#include <mutex>
#include <thread>
#include <type_traits>

#include <lockworks/lockworks.hpp>

using namespace std::chrono_literals;

#define CHECK(condition)                                                                       \
	do {                                                                                   \
		if (!(condition)) {                                                            \
			std::cerr << __FILE__ << ':' << __LINE__ << ": not so: " << #condition \
				  << '\n';                                                     \
			std::exit(1);                                                          \
		}                                                                              \
	} while (0)

/* A clock half as fast as the steady clock, far from its epoch. */
struct slow_clock {
	using duration = std::chrono::milliseconds;
	using rep = duration::rep;
	using period = duration::period;
	using time_point = std::chrono::time_point<slow_clock>;
	static constexpr bool is_steady = true;

	static time_point now()
	{
		const auto since = std::chrono::steady_clock::now().time_since_epoch() / 2;

		return time_point(std::chrono::duration_cast<duration>(since) + 1000000h);
	}
};

template <typename Lock> struct one_of {
	static Lock lock;
	static constexpr Lock initialised_statically{};
};
template <typename Lock> Lock one_of<Lock>::lock;

template <typename Body> static void in_another_thread(Body body)
{
	std::thread(body).join();
}

template <typename Lock> static void use()
{
	Lock &lock = one_of<Lock>::lock;
	lockworks::unfair beside;

	static_assert(std::is_standard_layout_v<Lock> && std::is_trivially_destructible_v<Lock>);
	static_assert(!std::is_copy_constructible_v<Lock> && !std::is_move_constructible_v<Lock>);
	static_assert(!std::is_copy_assignable_v<Lock>);
	static_assert(std::is_nothrow_default_constructible_v<Lock>);
	{
		const std::scoped_lock both(lock, beside);

		CHECK(!lock.try_lock());
		CHECK(!beside.try_lock());
	}
	CHECK(lock.try_lock());
	lock.unlock();

	std::condition_variable_any changed;
	bool ready = false;
	std::unique_lock<Lock> guard(lock);
	std::thread notifier([&] {
		const std::lock_guard<Lock> other(lock);

		ready = true;
		changed.notify_one();
	});
	changed.wait(guard, [&ready] { return ready; });
	CHECK(guard && !lock.try_lock());
	guard.unlock();
	notifier.join();
}

template <typename Clock, typename Lock> static void times_out_by(Lock &lock)
{
	const auto time = Clock::now() + 5ms;

	in_another_thread([&] {
		const std::unique_lock<Lock> guard(lock, time);

		CHECK(!guard && Clock::now() >= time);
		CHECK(!lock.try_lock_until(Clock::time_point::min() + 1h));
	});
}

template <typename Lock> static void use_timed()
{
	Lock &lock = one_of<Lock>::lock;

	use<Lock>();
	std::unique_lock<Lock> guard(lock, std::chrono::hours::max());
	CHECK(guard);
	times_out_by<std::chrono::steady_clock>(lock);
	times_out_by<std::chrono::system_clock>(lock);
	times_out_by<slow_clock>(lock);
	in_another_thread([&] {
		CHECK(!std::unique_lock<Lock>(lock, 1us) && !std::unique_lock<Lock>(lock, -1s));
		CHECK(!lock.try_lock_for(std::chrono::hours::min()));
	});
	std::thread unlimited([&] {
		const std::unique_lock<Lock> forever(lock,
						     std::chrono::steady_clock::time_point::max());

		CHECK(forever);
	});
	guard.unlock();
	unlimited.join();
	/* A free lock is acquired, even after the deadline. */
	CHECK(std::unique_lock<Lock>(lock, std::chrono::system_clock::now() - 1h));
	CHECK(std::unique_lock<Lock>(lock, -1h));
}

static lockworks::mcs mcs;

template <typename Clock> static void waits_by(lockworks::condition_variable &never)
{
	std::unique_lock<lockworks::mutex> guard(one_of<lockworks::mutex>::lock);
	const auto time = Clock::now() + 5ms;

	while (never.wait_until(guard, time) == std::cv_status::no_timeout)
		CHECK(Clock::now() < time);
	CHECK(guard && Clock::now() >= time);
	CHECK(!never.wait_until(guard, time, [] { return false; }));
	CHECK(never.wait_until(guard, time, [] { return true; }));
}

static void use_condition_variable()
{
	static lockworks::condition_variable changed, never;
	std::unique_lock<lockworks::mutex> guard(one_of<lockworks::mutex>::lock);
	unsigned int steps = 0;
	const auto step = [&](unsigned int at, auto wait, auto notify) {
		std::unique_lock<lockworks::mutex> other(one_of<lockworks::mutex>::lock);

		wait(other, [&steps, at] { return steps == at; });
		steps++;
		notify();
	};
	const auto wait = [](auto &lock, auto holds) { changed.wait(lock, holds); };
	const auto wait_for = [](auto &lock, auto holds) {
		CHECK(changed.wait_for(lock, 1h, holds));
	};
	std::thread first([&] { step(1, wait, [] { changed.notify_all(); }); });
	std::thread second([&] { step(2, wait_for, [] { changed.notify_one(); }); });

	steps = 1;
	changed.notify_all();
	changed.wait(guard, [&steps] { return steps == 3; });
	guard.unlock();
	first.join();
	second.join();
	waits_by<std::chrono::steady_clock>(never);
	waits_by<std::chrono::system_clock>(never);
	waits_by<slow_clock>(never);
}

int main()
{
	use<lockworks::tas>();
	use<lockworks::ticket>();
	use<lockworks::qspinlock>();
	use<lockworks::cna>();
	use<lockworks::hq>();
	use_timed<lockworks::mutex>();
	use_timed<lockworks::pv>();
	use_timed<lockworks::unfair>();
	CHECK(one_of<lockworks::hq>::lock.native_handle()->word.val.lw_raw == LW_HQ);

	use_condition_variable();

	int held = 0;
	const auto take = [&held] {
		const lockworks::mcs::guard guard(mcs);

		return ++held;
	};
	in_another_thread(take);
	CHECK(take() == 2);
	return 0;
}
