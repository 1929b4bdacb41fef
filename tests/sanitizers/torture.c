// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * Torture for tools that search for data races: torture [LOCK]. Threads use each lock, or the one
 * that is named, to access data that nothing else protects. The tool reports whether they raced.
 */
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <lockworks/lockworks.h>

#include "conformance.h"

#define THREADS 3
#define DEPTH	2
#define ROUNDS	24
#define LINE	128

static void *zeroed(size_t lines)
{
	void *memory = aligned_alloc(LINE, lines * LINE);

	if (!memory)
		abort();
	return memset(memory, 0, lines * LINE);
}

static void yield(void)
{
	sched_yield();
}

struct thread {
	const struct lw_client *client;
	unsigned int number;
	pthread_t handle;
};

static void *run(void *arg)
{
	const struct thread *self = arg;

	lw_client_thread(self->client, self->number);
	return NULL;
}

static void torture(const struct lw_lock_type *type)
{
	size_t node = lw_client_node_stride(type);
	struct lw_client client = {
		.type = type,
		.memory = zeroed(sizeof(*client.memory) / LINE + 1),
		.nodes = zeroed(node * LW_CLIENT_NODES * THREADS / LINE + 1),
		.threads = THREADS,
		.depth = DEPTH,
		.rounds = ROUNDS,
		.inside = yield,
	};
	struct thread threads[THREADS];

	for (unsigned int i = 0; i < DEPTH; i++) {
		client.locks[i] = zeroed(1);
		memcpy(client.locks[i], &type->unlocked, sizeof(type->unlocked));
	}
	for (unsigned int i = 0; i < THREADS; i++) {
		threads[i] = (struct thread){.client = &client, .number = i};
		if (pthread_create(&threads[i].handle, NULL, run, &threads[i]))
			abort();
	}
	for (unsigned int i = 0; i < THREADS; i++)
		pthread_join(threads[i].handle, NULL);
	/* The next run gets this memory again: tools must forget what was reported of it. */
	for (unsigned int i = 0; i < DEPTH; i++)
		free(client.locks[i]);
	free(client.nodes);
	free(client.memory);
}

/* An object that its users write to. The last user clears it. */
struct object {
	union lw_lockref_cna ref;
	unsigned int used[THREADS];
	lw_atomic(uint32_t) users;
};

static void *use(void *arg)
{
	struct object *object = arg;

	object->used[lw_fetch_add(&object->users, 1, relaxed)]++;
	if (lw_lockref_cna_put_return(&object->ref) == 0) {
		for (unsigned int i = 0; i < THREADS; i++)
			object->used[i] = 0;
	}
	return NULL;
}

static void count_references(void)
{
	struct object object = {.ref = LW_LOCKREF_INIT(THREADS)};
	pthread_t threads[THREADS];

	for (unsigned int i = 0; i < THREADS; i++) {
		if (pthread_create(&threads[i], NULL, use, &object))
			abort();
	}
	for (unsigned int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
}

/* A letter box for one letter. Threads wait for changes of it until a signal or a deadline. */
struct box {
	struct lw_mutex mutex;
	struct lw_cond changed;
	unsigned int letters;
	unsigned int users; /* the last one frees it */
};

/* Waits until there are so many letters; a timed wait polls the box every 2 ms. */
static void await(struct box *box, unsigned int letters, bool timed)
{
	struct timespec soon;

	while (box->letters != letters) {
		if (timed) {
			clock_gettime(CLOCK_REALTIME, &soon);
			soon.tv_nsec = soon.tv_nsec / 2000000 * 2000000 + 1999999;
			lw_cond_wait_until(&box->changed, &box->mutex, CLOCK_REALTIME, &soon);
		} else {
			lw_cond_wait(&box->changed, &box->mutex);
		}
	}
}

static void leave(struct box *box)
{
	bool last = --box->users == 0;

	lw_mutex_unlock(&box->mutex);
	if (last) {
		lw_cond_destroy(&box->changed);
		free(box);
	}
}

static void *post(void *arg)
{
	struct box *box = arg;

	lw_mutex_lock(&box->mutex);
	for (unsigned int i = 0; i < ROUNDS; i++) {
		await(box, 0, i % 2);
		box->letters = 1;
		lw_cond_broadcast(&box->changed);
	}
	leave(box);
	return NULL;
}

static void *fetch(void *arg)
{
	struct box *box = arg;

	lw_mutex_lock(&box->mutex);
	for (unsigned int i = 0; i < ROUNDS * (THREADS - 1); i++) {
		await(box, 1, i % 2);
		box->letters = 0;
		/* A broadcast does not need the mutex. */
		lw_mutex_unlock(&box->mutex);
		lw_cond_broadcast(&box->changed);
		lw_mutex_lock(&box->mutex);
	}
	leave(box);
	return NULL;
}

static void pass_letters(void)
{
	struct box *box = zeroed(1);
	pthread_t threads[THREADS];

	box->users = THREADS;
	for (unsigned int i = 0; i < THREADS; i++) {
		if (pthread_create(&threads[i], NULL, i == 0 ? fetch : post, box))
			abort();
	}
	for (unsigned int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
}

static bool anybody_queued(void)
{
	uint64_t counts[LW_EVENT_COUNT];

	lw_statistics(counts);
	return counts[LW_EVENT_queued_acquisitions] != 0;
}

int main(int argc, char **argv)
{
	/* On a busy machine threads may not contend in the first runs. */
	for (unsigned int i = 0; i < 20 && !anybody_queued(); i++) {
		for (const struct lw_lock_type *const *type = lw_lock_types; *type; type++) {
			if (argc > 1 ? strcmp((*type)->name, argv[1]) == 0
				     : !((*type)->traits & LW_BROKEN))
				torture(*type);
		}
		count_references();
		pass_letters();
	}
	if (argc == 1 && !anybody_queued()) {
		fprintf(stderr, "torture: no thread queued, so the slow paths were not tested\n");
		return 1;
	}
	return 0;
}
