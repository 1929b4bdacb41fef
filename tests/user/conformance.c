// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/* The promises of every lock. A lock that breaks them must fail the test. */
#include "test.h"

#include "conformance.h"

#define MAX_THREADS 8

static void *zeroed(size_t size)
{
	size_t whole = (size + 127) / 128 * 128;
	void *memory = aligned_alloc(128, whole ? whole : 128);

	CHECK(memory);
	return memset(memory, 0, whole ? whole : 128);
}

static void promise(const struct lw_lock_type *type, bool kept, const char *promised)
{
	if (kept)
		return;
	fprintf(stderr, "conformance: %s breaks a promise: %s\n", type->name, promised);
	LW_TEST_FAIL();
}

static void *new_lock(const struct lw_lock_type *type)
{
	void *lock = zeroed(type->size);

	if (type->unlocked)
		memcpy(lock, &type->unlocked, sizeof(type->unlocked));
	return lock;
}

struct attempt {
	const struct lw_lock_type *type;
	void *lock;
};

static void *try_once(void *arg)
{
	struct attempt *attempt = arg;
	void *node = zeroed(attempt->type->node_size);
	bool locked = attempt->type->trylock(attempt->lock, node);

	if (locked)
		attempt->type->unlock(attempt->lock, node);
	free(node);
	return (void *)(uintptr_t)locked;
}

static bool another_thread_gets(struct attempt *attempt)
{
	pthread_t thread;
	void *locked;

	thread_start(&thread, 0, try_once, attempt);
	CHECK(pthread_join(thread, &locked) == 0);
	return locked != NULL;
}

static void semantics(void *arg)
{
	const struct lw_lock_type *type = arg;
	struct attempt attempt = {type, new_lock(type)};
	void *node = zeroed(type->node_size);

	promise(type, type->trylock(attempt.lock, node), "trylock of a new lock must succeed");
	promise(type, !another_thread_gets(&attempt),
		"trylock of a lock that another thread has acquired by trylock must fail");
	type->unlock(attempt.lock, node);
	promise(type, another_thread_gets(&attempt),
		"trylock must succeed after trylock and unlock of another thread");
	type->lock(attempt.lock, node);
	promise(type, !another_thread_gets(&attempt),
		"trylock of a lock that another thread holds must fail");
	type->unlock(attempt.lock, node);
	promise(type, another_thread_gets(&attempt),
		"trylock must succeed after lock and unlock of another thread");
	free(node);
	free(attempt.lock);
}

struct thread {
	const struct lw_client *client;
	unsigned int number;
};

static void *run_client(void *arg)
{
	const struct thread *self = arg;

	return (void *)(uintptr_t)lw_client_thread(self->client, self->number);
}

/* Lets other threads run, also on a single CPU. */
static void yield_at_times(void)
{
	static _Thread_local unsigned int times;

	if (times++ % 16 == 0)
		sched_yield();
}

/* Returns the number of violations that the threads saw. */
static unsigned int violations(const struct lw_lock_type *type, unsigned int threads,
			       unsigned int depth, unsigned int rounds)
{
	struct lw_client client = {
		.type = type,
		.memory = zeroed(sizeof(*client.memory)),
		.nodes = zeroed(lw_client_node_stride(type) * LW_CLIENT_NODES * threads),
		.threads = threads,
		.depth = depth,
		.rounds = rounds,
		.inside = yield_at_times,
	};
	struct thread self[MAX_THREADS];
	pthread_t handles[MAX_THREADS];
	unsigned int sum = 0;

	for (unsigned int i = 0; i < depth; i++)
		client.locks[i] = new_lock(type);
	for (unsigned int i = 0; i < threads; i++) {
		self[i] = (struct thread){&client, i};
		thread_start(&handles[i], 0, run_client, &self[i]);
	}
	for (unsigned int i = 0; i < threads; i++) {
		void *seen;

		CHECK(pthread_join(handles[i], &seen) == 0);
		sum += (uintptr_t)seen;
	}
	for (unsigned int i = 0; i < depth; i++)
		free(client.locks[i]);
	free(client.nodes);
	free(client.memory);
	return sum;
}

static void excludes(const struct lw_lock_type *type, unsigned int threads, unsigned int depth,
		     unsigned int rounds)
{
	unsigned int seen = violations(type, threads, depth, rounds);

	if (!seen)
		return;
	fprintf(stderr,
		"conformance: %s breaks a promise %u times, with %u threads and %u locks: one "
		"thread "
		"at a time is in the critical section; it sees all that earlier holders wrote; "
		"trylock of a held lock fails; trylock of a free lock succeeds if there is one "
		"thread\n",
		type->name, seen, threads, depth);
	LW_TEST_FAIL();
}

static void exclusion(void *type)
{
	excludes(type, 1, 2, 4);
	/* Spinning FIFO locks are slow when threads outnumber CPUs: more threads, fewer rounds. */
	excludes(type, 2, 2, REPETITIONS(4000));
	excludes(type, 3, 2, REPETITIONS(60));
	excludes(type, 5, 2, REPETITIONS(12));
	excludes(type, 8, 2, 4);
	excludes(type, 2, LW_CLIENT_LOCKS, REPETITIONS(600));
	excludes(type, 3, LW_CLIENT_LOCKS, REPETITIONS(12));
}

/* A lock that does not exclude, but whose trylock fails as it must. */
static void no_lock(void *lock, void *node)
{
	(void)lock;
	(void)node;
}

static bool no_trylock(void *lock, void *node)
{
	(void)lock;
	(void)node;
	return false;
}

static const struct lw_lock_type no_lock_type = {
	.name = "none", .size = 4, .lock = no_lock, .trylock = no_trylock, .unlock = no_lock};

static void conforms(const struct lw_lock_type *type)
{
	CHECK(lw_lock_type_find(type->name) == type);
	CHECK(type->size > 0 && *type->summary && *type->origin);
	if (!(type->traits & LW_BROKEN)) {
		semantics((void *)type);
		exclusion((void *)type);
		return;
	}
	fprintf(stderr, "%s must fail twice:\n", type->name);
	CHECK(in_child(semantics, (void *)type) != 0);
	CHECK(in_child(exclusion, (void *)type) != 0);
}

/* conformance [LOCK...]: tests these locks, or all locks and the test itself. */
int main(int argc, char **argv)
{
	unsigned int broken = 0, unguarded = 0;

	for (int i = 1; i < argc; i++) {
		const struct lw_lock_type *type = lw_lock_type_find(argv[i]);

		CHECK(type);
		conforms(type);
	}
	if (argc > 1)
		return 0;
	for (const struct lw_lock_type *const *entry = lw_lock_types; *entry; entry++) {
		conforms(*entry);
		broken += ((*entry)->traits & LW_BROKEN) != 0;
	}
	CHECK(broken == 1);
	/* On a busy machine two threads may not contend in the first runs. */
	for (unsigned int i = 0; i < 100 && unguarded == 0; i++)
		unguarded = violations(&no_lock_type, 2, 2, 4000);
	CHECK(unguarded > 0);
	CHECK(!lw_lock_type_find("no such lock"));
	return 0;
}
