// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The mutexes and condition variables of C++, and what the library leaves alone.
#include "test.h"

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <shared_mutex>
#include <thread>
#include <vector>

using namespace std::chrono_literals;

template <typename Mutex> static void check_exclusion(Mutex &mutex)
{
	std::vector<std::thread> threads;
	unsigned int count = 0;

	for (int i = 0; i < 8; i++) {
		threads.emplace_back([&] {
			for (int j = 0; j < 5000; j++) {
				std::scoped_lock held(mutex);
				count++;
			}
		});
	}
	for (std::thread &thread : threads)
		thread.join();
	CHECK(count == 40000);
}

template <typename Mutex> static bool is_free_elsewhere(Mutex &mutex)
{
	bool free;

	std::thread([&] {
		free = mutex.try_lock();
		if (free)
			mutex.unlock();
	}).join();
	return free;
}

template <typename Mutex> static void check_timed(Mutex &mutex)
{
	mutex.lock();
	std::thread([&] {
		auto begun = std::chrono::steady_clock::now();

		CHECK(!mutex.try_lock_for(10ms));
		CHECK(std::chrono::steady_clock::now() - begun >= 10ms);
		CHECK(!mutex.try_lock_until(std::chrono::system_clock::now() + 10ms));
	}).join();
	mutex.unlock();
	CHECK(mutex.try_lock_for(0ms));
	mutex.unlock();
}

static void check_recursive()
{
	std::recursive_timed_mutex mutex;

	mutex.lock();
	CHECK(mutex.try_lock_for(1ms));
	mutex.unlock();
	CHECK(!is_free_elsewhere(mutex));
	mutex.unlock();
	CHECK(is_free_elsewhere(mutex));
	check_timed(mutex);
	check_exclusion(mutex);
}

template <typename Cond, typename Mutex> static void check_cond()
{
	Cond cond;
	Mutex mutex;
	unsigned int turn = 0;
	std::vector<std::thread> threads;

	for (unsigned int own = 0; own < 4; own++) {
		threads.emplace_back([&, own] {
			for (int i = 0; i < 500; i++) {
				std::unique_lock<Mutex> held(mutex);

				cond.wait(held, [&] { return turn % 4 == own; });
				turn++;
				cond.notify_all();
			}
		});
	}
	for (std::thread &thread : threads)
		thread.join();
	CHECK(turn == 2000);

	std::unique_lock<Mutex> held(mutex);
	auto steady = std::chrono::steady_clock::now() + 10ms;
	auto system = std::chrono::system_clock::now() + 10ms;
	CHECK(!cond.wait_until(held, steady, [] { return false; }));
	CHECK(std::chrono::steady_clock::now() >= steady);
	CHECK(!cond.wait_until(held, system, [] { return false; }));
	CHECK(std::chrono::system_clock::now() >= system);
	CHECK(!is_free_elsewhere(mutex));
}

// A cancelled waiter runs destructors. It holds the mutex until the destructor of its lock runs.

struct Flagged {
	bool *ended;

	~Flagged()
	{
		*ended = true;
	}
};

static void check_cancelled()
{
	static std::mutex mutex;
	static std::condition_variable cond;
	static bool ended, waiting;
	pthread_t thread = start(
		[](void *) -> void * {
			std::unique_lock<std::mutex> held(mutex);
			Flagged flagged{&ended};

			waiting = true;
			for (;;)
				pthread_cond_wait(cond.native_handle(), mutex.native_handle());
		},
		nullptr);

	for (bool there = false; !there;) {
		std::scoped_lock held(mutex);
		there = waiting;
	}
	CHECK(pthread_cancel(thread) == 0);
	CHECK(join(thread) == PTHREAD_CANCELED);
	CHECK(ended && is_free_elsewhere(mutex));
}

int main()
{
	std::mutex mutex;
	std::timed_mutex timed;
	std::shared_mutex shared;

	begin();
	check_exclusion(mutex);
	check_exclusion(timed);
	check_exclusion(shared);
	check_timed(timed);
	check_recursive();
	check_cond<std::condition_variable, std::mutex>();
	check_cond<std::condition_variable_any, std::recursive_mutex>();
	check_cond<std::condition_variable_any, std::shared_mutex>();
	check_cancelled();
	return 0;
}
