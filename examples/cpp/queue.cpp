// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * A bounded queue. Producers wait while it is full; consumers wait for a time while it is empty.
 * clang++ -Wthread-safety checks that the lock is held where the items are used.
 */
#include <chrono>
#include <cstdint>
#include <deque>
#include <iostream>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include <lockworks/lockworks.hpp>

template <typename Item> class bounded_queue
{
public:
	explicit bounded_queue(std::size_t capacity) : capacity_(capacity)
	{
	}

	void push(Item item)
	{
		lockworks::unique_lock lock(lock_);
		while (items_.size() >= capacity_)
			not_full_.wait(lock);
		items_.push_back(std::move(item));
		not_empty_.notify_one();
	}

	/* Returns nothing if the queue stays empty for `timeout`. */
	std::optional<Item> pop(std::chrono::milliseconds timeout)
	{
		lockworks::unique_lock lock(lock_);
		if (!not_empty_.wait_for(lock, timeout,
					 [this]() LW_REQUIRES(lock_) { return !items_.empty(); }))
			return std::nullopt;
		Item item = std::move(items_.front());
		items_.pop_front();
		not_full_.notify_one();
		return item;
	}

private:
	lockworks::mutex lock_;
	lockworks::condition_variable not_full_, not_empty_;
	const std::size_t capacity_;
	std::deque<Item> items_ LW_GUARDED_BY(lock_);
};

int main()
{
	constexpr unsigned int producers = 3, consumers = 2, items = 10000;
	bounded_queue<std::uint64_t> queue(16);
	lockworks::cna sum_lock;
	std::uint64_t sum = 0;
	std::vector<std::thread> threads;

	for (unsigned int i = 0; i < producers; i++) {
		threads.emplace_back([&queue] {
			for (std::uint64_t item = 1; item <= items; item++)
				queue.push(item);
		});
	}
	for (unsigned int i = 0; i < consumers; i++) {
		threads.emplace_back([&, i] {
			std::uint64_t ours = 0;
			for (unsigned int n = i; n < producers * items; n += consumers)
				ours += queue.pop(std::chrono::hours(1)).value();
			const std::scoped_lock lock(sum_lock);
			sum += ours;
		});
	}
	for (std::thread &thread : threads)
		thread.join();

	const bool empty = !queue.pop(std::chrono::milliseconds(1));
	std::cout << "sum of what came through: " << sum << '\n';
	return !empty || sum != std::uint64_t{producers} * items * (items + 1) / 2;
}
