// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/* What every lock promises, and that a lock which does not keep it is found out. */
#include "test.h"

#define MAX_THREADS 8
#define NESTED	    6

struct fixture {
	const struct lw_lock_type *type;
	void *locks[NESTED];
	unsigned int nested, rounds;
	int inside;	       /* threads in the critical section, atomic */
	unsigned long counter; /* protected by the locks */
};

static void *zeroed(size_t size)
{
	size_t whole = (size + 127) / 128 * 128;
	void *memory = aligned_alloc(128, whole ? whole : 128);

	CHECK(memory);
	return memset(memory, 0, whole ? whole : 128);
}

static void *try_once(void *arg)
{
	struct fixture *f = arg;
	void *node = zeroed(f->type->node_size);
	bool locked = f->type->trylock(f->locks[0], node);

	if (locked)
		f->type->unlock(f->locks[0], node);
	free(node);
	return (void *)(uintptr_t)locked;
}

static bool another_thread_gets(struct fixture *f)
{
	pthread_t thread;
	void *locked;

	thread_start(&thread, 0, try_once, f);
	CHECK(pthread_join(thread, &locked) == 0);
	return locked != NULL;
}

static void check_semantics(struct fixture *f)
{
	void *node = zeroed(f->type->node_size);

	CHECK(f->type->trylock(f->locks[0], node));
	CHECK(!another_thread_gets(f));
	f->type->unlock(f->locks[0], node);
	CHECK(another_thread_gets(f));
	f->type->lock(f->locks[0], node);
	CHECK(!another_thread_gets(f));
	f->type->unlock(f->locks[0], node);
	CHECK(another_thread_gets(f));
	free(node);
}

static void *contend(void *arg)
{
	struct fixture *f = arg;
	void *nodes[NESTED];

	for (unsigned int i = 0; i < f->nested; i++)
		nodes[i] = zeroed(f->type->node_size);
	for (unsigned int round = 0; round < f->rounds; round++) {
		unsigned long counter;

		for (unsigned int i = 0; i < f->nested; i++) {
			/* Any third acquisition by trylock, as long as that does not take forever.
			 */
			if (round % 3 != 0 || !f->type->trylock(f->locks[i], nodes[i]))
				f->type->lock(f->locks[i], nodes[i]);
		}
		CHECK(__atomic_fetch_add(&f->inside, 1, __ATOMIC_RELAXED) == 0);
		counter = f->counter;
		/* Let the others in, if the lock does: also on a single CPU. */
		if (round % 16 == 0)
			sched_yield();
		f->counter = counter + 1;
		CHECK(__atomic_fetch_sub(&f->inside, 1, __ATOMIC_RELAXED) == 1);
		for (unsigned int i = f->nested; i-- > 0;)
			f->type->unlock(f->locks[i], nodes[i]);
	}
	for (unsigned int i = 0; i < f->nested; i++)
		free(nodes[i]);
	return NULL;
}

static void check_exclusion(struct fixture *f, unsigned int threads, unsigned int nested,
			    unsigned int rounds)
{
	pthread_t thread[MAX_THREADS];

	f->nested = nested;
	f->rounds = rounds;
	f->counter = 0;
	for (unsigned int i = 0; i < threads; i++)
		thread_start(&thread[i], 0, contend, f);
	for (unsigned int i = 0; i < threads; i++)
		CHECK(pthread_join(thread[i], NULL) == 0);
	CHECK(f->counter == (unsigned long)threads * rounds);
}

static struct fixture fixture_of(const struct lw_lock_type *type)
{
	struct fixture f = {.type = type};

	for (unsigned int i = 0; i < NESTED; i++)
		f.locks[i] = zeroed(type->size);
	return f;
}

static void free_fixture(struct fixture *f)
{
	for (unsigned int i = 0; i < NESTED; i++)
		free(f->locks[i]);
}

static void semantics(void *type)
{
	struct fixture f = fixture_of(type);

	check_semantics(&f);
	free_fixture(&f);
}

static void exclusion(void *type)
{
	struct fixture f = fixture_of(type);

	/* Spinning FIFO locks crawl when threads outnumber CPUs, so ever fewer rounds. */
	check_exclusion(&f, 2, 1, 20000);
	check_exclusion(&f, 3, 1, 60);
	check_exclusion(&f, 5, 1, 12);
	check_exclusion(&f, 8, 1, 4);
	check_exclusion(&f, 2, NESTED, 3000);
	check_exclusion(&f, 3, NESTED, 12);
	free_fixture(&f);
}

int main(void)
{
	unsigned int broken = 0;

	for (const struct lw_lock_type *const *entry = lw_lock_types; *entry; entry++) {
		const struct lw_lock_type *type = *entry;
		bool works = !(type->traits & LW_BROKEN);

		CHECK(lw_lock_type_find(type->name) == type);
		CHECK(type->size > 0 && *type->summary && *type->origin);
		if (works) {
			semantics((void *)type);
			exclusion((void *)type);
		} else {
			fprintf(stderr, "%s must fail twice:\n", type->name);
			CHECK(in_child(semantics, (void *)type) != 0);
			CHECK(in_child(exclusion, (void *)type) != 0);
			broken++;
		}
	}
	CHECK(broken == 1);
	CHECK(!lw_lock_type_find("no such lock"));
	return 0;
}
