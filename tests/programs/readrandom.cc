// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * leveldb's readrandom: threads read random keys of one database for some time. The program does
 * not know Lockworks. In each Get leveldb acquires a mutex of the database and one of its cache.
 *
 * Every Get must succeed. The checksum covers the first reads of each thread. A thread makes these
 * however short the time is, so the checksum is the same in every run with the same threads.
 */
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include <leveldb/cache.h>
#include <leveldb/db.h>
#include <leveldb/write_batch.h>

namespace
{

constexpr uint64_t KEYS = 100'000;
constexpr uint64_t IN_CHECKSUM = 10'000;
constexpr size_t CACHE_BYTES =
	64 << 20; /* the whole database fits, so locks limit the speed, not the disk */

std::string key_of(uint64_t number)
{
	char key[17];

	snprintf(key, sizeof(key), "%016llu", static_cast<unsigned long long>(number));
	return key;
}

/* 100 bytes, as in leveldb's own benchmark. */
std::string value_of(uint64_t number)
{
	std::minstd_rand random(number + 1);
	std::string value(100, ' ');

	for (char &byte : value)
		byte = static_cast<char>(' ' + random() % 95);
	return value;
}

/* FNV-1a */
uint64_t hash(const std::string &text)
{
	uint64_t hash = 0xcbf29ce484222325;

	for (unsigned char byte : text)
		hash = (hash ^ byte) * 0x100000001b3;
	return hash;
}

[[noreturn]] void fail(const std::string &what)
{
	fprintf(stderr, "readrandom: %s\n", what.c_str());
	exit(EXIT_FAILURE);
}

void succeed(const leveldb::Status &status)
{
	if (!status.ok())
		fail(status.ToString());
}

/* A directory as from mkdtemp(3), which is removed at the end. */
class TemporaryDirectory
{
	std::string path_;

public:
	TemporaryDirectory() : path_(std::filesystem::temp_directory_path() / "readrandom-XXXXXX")
	{
		if (!mkdtemp(path_.data()))
			fail("cannot make " + path_);
	}
	~TemporaryDirectory()
	{
		std::filesystem::remove_all(path_);
	}
	const std::string &path() const
	{
		return path_;
	}
};

void fill(leveldb::DB &db)
{
	leveldb::WriteBatch batch;

	for (uint64_t number = 0; number < KEYS; number++)
		batch.Put(key_of(number), value_of(number));
	succeed(db.Write({}, &batch));
	db.CompactRange(nullptr, nullptr);
}

struct Reads {
	uint64_t count = 0;
	uint64_t checksum = 0;
};

Reads read(leveldb::DB &db, unsigned int seed, const std::atomic<bool> &over)
{
	std::minstd_rand random(seed);
	std::string value;
	Reads reads;

	while (!over.load(std::memory_order_relaxed) || reads.count < IN_CHECKSUM) {
		const std::string key = key_of(random() % KEYS);

		succeed(db.Get({}, key, &value));
		if (reads.count++ < IN_CHECKSUM)
			reads.checksum += hash(key + value);
	}
	return reads;
}

} // namespace

int main(int argc, char **argv)
{
	const int threads = argc == 3 ? atoi(argv[1]) : 0;
	const double seconds = argc == 3 ? atof(argv[2]) : 0;

	if (threads <= 0 || seconds <= 0) {
		fprintf(stderr, "usage: readrandom THREADS SECONDS\n");
		return 2;
	}

	const TemporaryDirectory directory;
	const std::unique_ptr<leveldb::Cache> cache(leveldb::NewLRUCache(CACHE_BYTES));
	leveldb::Options options;
	leveldb::DB *opened;

	options.create_if_missing = true;
	options.block_cache = cache.get();
	succeed(leveldb::DB::Open(options, directory.path(), &opened));
	const std::unique_ptr<leveldb::DB> db(opened);

	fill(*db);

	std::atomic<bool> over = false;
	std::vector<Reads> reads(threads);
	std::vector<std::thread> readers;
	const auto start = std::chrono::steady_clock::now();

	for (int i = 0; i < threads; i++)
		readers.emplace_back([&, i] { reads[i] = read(*db, i + 1, over); });
	std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
	over = true;
	for (std::thread &reader : readers)
		reader.join();

	const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
	Reads all;

	for (const Reads &each : reads) {
		all.count += each.count;
		all.checksum += each.checksum;
	}
	printf("%.0f operations a second\n", all.count / took.count());
	printf("checksum %016llx\n", static_cast<unsigned long long>(all.checksum));
}
