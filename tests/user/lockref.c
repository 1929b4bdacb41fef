// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/* The promises of a lockref, for each lock in it, and when it acquires that lock. */
#include "test.h"

#include "lockref_mutants.h"
#include "topology.h"

#define MAX_THREADS 3

struct subject {
	const struct lw_lockref_type *type;
	void *ref;
};

/* Bits of a lock word that is not in its initial state. */
static uint32_t mode;

static void *new_lockref(const struct lw_lockref_type *type, int32_t count)
{
	union lw_lockref *ref = aligned_alloc(128, 128);

	CHECK(ref);
	memset(ref, 0xff, 128);
	type->init(ref, count);
	CHECK(lw_load(&ref->lock, relaxed) == type->lock->unlocked);
	CHECK(lw_load(&ref->count, relaxed) == count);
	lw_fetch_or(&ref->lock, mode, relaxed);
	return ref;
}

static void lock(struct subject *s)
{
	s->type->lock->lock(s->ref, NULL);
}

static void unlock(struct subject *s)
{
	s->type->lock->unlock(s->ref, NULL);
}

/* Each operation at each count from dead to 2. */
static void semantics(void *arg)
{
	const struct lw_lockref_type *type = arg;
	void *ref = new_lockref(type, 0);
	struct subject s = {type, ref};

	for (int32_t n = 0; n <= 2; n++) {
		type->set_count(ref, n);
		type->get(ref);
		CHECK(type->count(ref) == n + 1);
		type->set_count(ref, n);
		CHECK(type->get_not_zero(ref) == (n > 0));
		CHECK(type->count(ref) == n + (n > 0));
		type->set_count(ref, n);
		CHECK(type->get_not_dead(ref));
		CHECK(type->count(ref) == n + 1);
		type->set_count(ref, n);
		CHECK(type->put_not_zero(ref) == (n > 1));
		CHECK(type->count(ref) == n - (n > 1));
		type->set_count(ref, n);
		CHECK(type->put_return(ref) == n - 1);
		CHECK(type->count(ref) == (n ? n - 1 : 0));
		type->set_count(ref, n);
		CHECK(type->put_or_lock(ref) == (n > 1));
		CHECK(type->count(ref) == n - (n > 1));
		CHECK(type->lock->trylock(ref, NULL) == (n > 1));
		unlock(&s);
	}

	lock(&s);
	type->mark_dead(ref);
	CHECK(type->put_return(ref) == -1);
	unlock(&s);
	CHECK(type->count(ref) < 0);
	CHECK(!type->get_not_zero(ref));
	CHECK(!type->get_not_dead(ref));
	CHECK(!type->put_not_zero(ref));
	CHECK(type->put_return(ref) == -1);
	CHECK(!type->put_or_lock(ref));
	unlock(&s);
	type->get(ref);
	CHECK(!type->get_not_dead(ref));

	/* While the lock is held, every operation needs the lock. */
	type->set_count(ref, 2);
	lock(&s);
	CHECK(type->put_return(ref) == -1);
	CHECK(type->count(ref) == 2);
	unlock(&s);
	CHECK(type->put_return(ref) == 1);
	free(ref);
}

/* An operation that needs the lock ends when the lock is free, not before. */
struct waiter {
	struct subject *subject;
	void (*operate)(struct subject *s);
	lw_atomic(uint32_t) begun, ended;
};

static void *operate(void *arg)
{
	struct waiter *self = arg;

	lw_store(&self->begun, 1, release);
	self->operate(self->subject);
	lw_store(&self->ended, 1, release);
	return NULL;
}

static void operation_get(struct subject *s)
{
	s->type->get(s->ref);
}

static void operation_get_not_zero(struct subject *s)
{
	CHECK(s->type->get_not_zero(s->ref));
}

static void operation_get_not_dead(struct subject *s)
{
	CHECK(s->type->get_not_dead(s->ref));
}

static void operation_put_or_lock(struct subject *s)
{
	CHECK(s->type->put_or_lock(s->ref));
}

static void operation_put_not_zero(struct subject *s)
{
	CHECK(s->type->put_not_zero(s->ref));
}

static void waits_for_the_lock(void *arg)
{
	static const struct {
		void (*operate)(struct subject *s);
		int32_t change;
	} cases[] = {
		{operation_get, 1},	      {operation_get_not_zero, 1},
		{operation_get_not_dead, 1},  {operation_put_or_lock, -1},
		{operation_put_not_zero, -1},
	};
	struct subject s = {arg, new_lockref(arg, 0)};

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct waiter waiter = {.subject = &s, .operate = cases[i].operate};
		pthread_t thread;

		lock(&s);
		thread_start(&thread, 0, operate, &waiter);
		while (!lw_load(&waiter.begun, acquire))
			sched_yield();
		usleep(5000);
		CHECK(!lw_load(&waiter.ended, acquire));
		CHECK(s.type->count(s.ref) == 0);
		/* Other threads find the count as the holder set it. */
		s.type->set_count(s.ref, 7);
		unlock(&s);
		CHECK(pthread_join(thread, NULL) == 0);
		CHECK(s.type->count(s.ref) == 7 + cases[i].change);
		s.type->set_count(s.ref, 0);
	}
	free(s.ref);
}

/*
 * Threads get and put references while other threads hold the lock. The object lives on without
 * references until a holder marks it dead.
 */
struct race {
	struct subject subject;
	unsigned int rounds;
	lw_atomic(uint32_t) dead;
	int64_t object; /* written by a holder of the lock that finds no references */
};

struct racer {
	struct race *race;
	unsigned int number;
	unsigned int held; /* references */
};

static void as_holder(struct racer *self, bool yield, bool end)
{
	struct race *race = self->race;
	struct subject *s = &race->subject;
	int32_t count;

	lock(s);
	count = s->type->count(s->ref);
	if (count == 0)
		race->object++;
	if (yield)
		sched_yield();
	CHECK(s->type->count(s->ref) == count);
	if (count == 0 && end) {
		s->type->mark_dead(s->ref);
		lw_store(&race->dead, 1, release);
	} else if (count >= 0) {
		s->type->set_count(s->ref, count + 1);
		self->held++;
	}
	unlock(s);
}

static void put(struct racer *self)
{
	struct subject *s = &self->race->subject;

	self->held--;
	if (s->type->put_not_zero(s->ref) || s->type->put_or_lock(s->ref))
		return;
	CHECK(s->type->count(s->ref) == 1);
	self->race->object++;
	s->type->set_count(s->ref, 0);
	unlock(s);
}

static void *race(void *arg)
{
	struct racer *self = arg;
	struct race *race = self->race;
	struct subject *s = &race->subject;

	for (unsigned int i = 0; i < race->rounds; i++) {
		bool was_dead = lw_load(&race->dead, acquire);
		unsigned int before = self->held;

		switch ((self->number + i) % 4) {
		case 0:
			self->held += s->type->get_not_zero(s->ref);
			break;
		case 3:
			as_holder(self, i % 32 < 4, i > race->rounds / 2);
			break;
		default:
			self->held += s->type->get_not_dead(s->ref);
		}
		CHECK(!was_dead || self->held == before);
		/* Sometimes keep a reference for the next round. */
		while (self->held > (i % 8 == 0))
			put(self);
	}
	while (self->held)
		put(self);
	return NULL;
}

static void counts_are_kept(void *arg, unsigned int threads, unsigned int rounds)
{
	struct race shared = {.subject = {arg, new_lockref(arg, 0)}, .rounds = rounds};
	struct racer racers[MAX_THREADS];
	pthread_t handles[MAX_THREADS];

	for (unsigned int i = 0; i < threads; i++) {
		racers[i] = (struct racer){&shared, i, 0};
		thread_start(&handles[i], 0, race, &racers[i]);
	}
	for (unsigned int i = 0; i < threads; i++)
		CHECK(pthread_join(handles[i], NULL) == 0);
	CHECK(shared.subject.type->count(shared.subject.ref) ==
	      (lw_load(&shared.dead, relaxed) ? LW_LOCKREF_DEAD : 0));
	/* No reference is left to keep it alive. */
	CHECK(threads > 1 || lw_load(&shared.dead, relaxed));
	free(shared.subject.ref);
}

/*
 * A lock that an operation may only acquire as a last resort: it found the lock held, or lost as
 * many races for the word as it may.
 */
struct lw_probe {
	struct lw_tas tas;
};

/* The operation that a thread is about: its looks at the lock, and whether the last found it free.
 */
static _Thread_local unsigned int looks;
static _Thread_local bool found_free;
static _Thread_local unsigned int taken;
/* The number of races that this thread's operations are still to lose, for `disturbed`. */
static _Thread_local unsigned int disturbances;
static _Thread_local union lw_lockref *disturbed;

static void lw_probe_lock(struct lw_probe *lock)
{
	CHECK(looks == LW_LOCKREF_TRIES || !found_free);
	lw_tas_lock(&lock->tas);
	taken++;
}

static bool lw_probe_trylock(struct lw_probe *lock)
{
	return lw_tas_trylock(&lock->tas);
}

static void lw_probe_unlock(struct lw_probe *lock)
{
	lw_tas_unlock(&lock->tas);
}

/* Another thread changes the count between the load of the word and the compare-and-swap. */
static bool is_free(uint32_t val)
{
	looks++;
	found_free = val == 0;
	if (disturbances) {
		disturbances--;
		lw_fetch_add(&disturbed->count, 1, relaxed);
	}
	return found_free;
}

LW_DEFINE_LOCKREF(probe, struct lw_probe, 0, is_free(val))

static bool get(union lw_lockref_probe *ref)
{
	lw_lockref_probe_get(ref);
	return true;
}

static bool put_return(union lw_lockref_probe *ref)
{
	return lw_lockref_probe_put_return(ref) >= 0;
}

static const struct {
	bool (*operate)(union lw_lockref_probe *ref);
	int32_t change;
	bool never_locks;
} probe_operations[] = {
	{get, 1, false},
	{lw_lockref_probe_get_not_zero, 1, false},
	{lw_lockref_probe_get_not_dead, 1, false},
	{lw_lockref_probe_put_or_lock, -1, false},
	{lw_lockref_probe_put_not_zero, -1, false},
	{put_return, -1, true},
};
#define PROBE_OPERATIONS (sizeof(probe_operations) / sizeof(*probe_operations))

static bool operate_probe(unsigned int number, union lw_lockref_probe *ref)
{
	looks = 0;
	return probe_operations[number].operate(ref);
}

static void *get_and_put(void *ref)
{
	for (int i = 0; i < 100000; i++) {
		for (unsigned int number = 0; number < PROBE_OPERATIONS; number++) {
			/* Other threads may be faster too often, or hold the lock. */
			while (!operate_probe(number, ref))
				CHECK(probe_operations[number].never_locks);
		}
	}
	return NULL;
}

static void the_lock_is_a_last_resort(void)
{
	static union lw_lockref_probe ref = LW_LOCKREF_INIT(1);
	pthread_t threads[2];

	get_and_put(&ref);
	CHECK(taken == 0);
	CHECK(lw_lockref_probe_count(&ref) == 1);
	for (int i = 0; i < 2; i++)
		thread_start(&threads[i], 0, get_and_put, &ref);
	for (int i = 0; i < 2; i++)
		CHECK(pthread_join(threads[i], NULL) == 0);
	CHECK(lw_lockref_probe_count(&ref) == 1);

	disturbed = &ref.ref;
	for (unsigned int number = 0; number < PROBE_OPERATIONS; number++) {
		bool never_locks = probe_operations[number].never_locks;
		int32_t change = probe_operations[number].change;
		int32_t before = lw_lockref_probe_count(&ref);

		/* It wins the last race that it may run. */
		disturbances = LW_LOCKREF_TRIES - 1;
		CHECK(operate_probe(number, &ref));
		CHECK(disturbances == 0 && taken == 0);
		before += LW_LOCKREF_TRIES - 1 + change;
		CHECK(lw_lockref_probe_count(&ref) == before);

		/* It loses that one too. */
		disturbances = LW_LOCKREF_TRIES;
		CHECK(operate_probe(number, &ref) == !never_locks);
		CHECK(disturbances == 0 && taken == !never_locks);
		before += LW_LOCKREF_TRIES + (never_locks ? 0 : change);
		CHECK(lw_lockref_probe_count(&ref) == before);
		taken = 0;
	}
	CHECK(lw_lockref_probe_trylock(&ref));
	lw_lockref_probe_unlock(&ref);
}

static bool gets_zero(void *ref)
{
	return lw_lockref_types[0]->get_not_dead(ref);
}

static bool puts_the_last(void *ref)
{
	if (lw_lockref_types[0]->put_return(ref) >= 0)
		return true;
	lw_lockref_types[0]->lock->lock(ref, NULL);
	return false;
}

/* The tests can fail. */
static void mistakes_are_caught(void)
{
	struct lw_lockref_type zero = *lw_lockref_types[0], last = *lw_lockref_types[0];

	zero.get_not_zero = gets_zero;
	last.put_or_lock = puts_the_last;
	fprintf(stderr, "broken lockrefs must fail five times:\n");
	CHECK(in_child(semantics, &zero) != 0);
	CHECK(in_child(semantics, &last) != 0);
	for (const struct lw_lockref_type *const *type = lw_lockref_mutant_types; *type; type++)
		CHECK(in_child(semantics, (void *)*type) != 0);
	CHECK(in_child(waits_for_the_lock, (void *)lw_lockref_mutant_types[0]) != 0);
}

static void keeps_promises(void *type)
{
	semantics(type);
	waits_for_the_lock(type);
	counts_are_kept(type, 1, 100);
	/* Spinning FIFO locks are slow when threads outnumber CPUs: more threads, fewer rounds. */
	counts_are_kept(type, 2, 400);
	counts_are_kept(type, 3, 16);
}

int main(void)
{
	for (const struct lw_lockref_type *const *entry = lw_lockref_types; *entry; entry++) {
		void *type = (void *)*entry;

		CHECK(strncmp((*entry)->name, "lockref-", 8) == 0);
		CHECK(lw_lock_type_find((*entry)->name + 8) == (*entry)->lock);
		CHECK((*entry)->lock->size <= 4 && (*entry)->lock->node_size == 0);
		keeps_promises(type);
		if (strcmp((*entry)->name, "lockref-hq") == 0) {
			/* Once more, with waiters that queue by node. */
			CHECK(lw_user_topology_parse("0:1-8000"));
			mode = LW_HQ_NUMA;
			keeps_promises(type);
			mode = 0;
			CHECK(lw_user_topology_parse("0-8000"));
		}
	}
	the_lock_is_a_last_resort();
	mistakes_are_caught();
	return 0;
}
