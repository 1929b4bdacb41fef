// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/* Far more threads than CPUs: no waiter is lost, whatever it waits for. */
#include "test.h"

#define THREADS 64

/* Pairs of threads that wake each other in turn. */

struct table {
	pthread_mutex_t mutex;
	pthread_cond_t cond[2];
	unsigned int turn;
};

#define STROKES repetitions(500)

struct player {
	struct table *table;
	unsigned int side;
};

static void *play(void *arg)
{
	struct player *player = arg;
	struct table *table = player->table;

	for (unsigned int i = 0; i < STROKES; i++) {
		CHECK(pthread_mutex_lock(&table->mutex) == 0);
		while (table->turn % 2 != player->side)
			CHECK(pthread_cond_wait(&table->cond[player->side], &table->mutex) == 0);
		table->turn++;
		CHECK(pthread_cond_signal(&table->cond[!player->side]) == 0);
		CHECK(pthread_mutex_unlock(&table->mutex) == 0);
	}
	return NULL;
}

static void check_ping_pong(void)
{
	static struct table tables[THREADS / 2];
	static struct player players[THREADS];
	pthread_t threads[THREADS];

	for (unsigned int i = 0; i < THREADS; i++) {
		players[i] = (struct player){&tables[i / 2], i % 2};
		threads[i] = start(play, &players[i]);
	}
	for (int i = 0; i < THREADS; i++)
		join(threads[i]);
	for (int i = 0; i < THREADS / 2; i++)
		CHECK(tables[i].turn == 2 * STROKES);
}

/* A bounded queue */

#define ROOM  8
#define ITEMS repetitions(1500)

static struct {
	pthread_mutex_t mutex;
	pthread_cond_t filled, emptied;
	unsigned int items[ROOM], in, out;
	unsigned long sum;
} queue = {
	.mutex = PTHREAD_MUTEX_INITIALIZER,
	.filled = PTHREAD_COND_INITIALIZER,
	.emptied = PTHREAD_COND_INITIALIZER,
};

static void *produce(void *arg)
{
	for (unsigned int i = 1; i <= ITEMS; i++) {
		CHECK(pthread_mutex_lock(&queue.mutex) == 0);
		while (queue.in - queue.out == ROOM)
			CHECK(pthread_cond_wait(&queue.emptied, &queue.mutex) == 0);
		queue.items[queue.in++ % ROOM] = i;
		CHECK(pthread_mutex_unlock(&queue.mutex) == 0);
		/* Signal after the release, so that other threads may acquire the mutex before. */
		CHECK(pthread_cond_signal(&queue.filled) == 0);
	}
	return arg;
}

static void *consume(void *arg)
{
	for (unsigned int i = 1; i <= ITEMS; i++) {
		CHECK(pthread_mutex_lock(&queue.mutex) == 0);
		while (queue.in == queue.out) {
			struct timespec soon = from_now(CLOCK_MONOTONIC, i % 4);

			if (i % 2)
				pthread_cond_clockwait(&queue.filled, &queue.mutex, CLOCK_MONOTONIC,
						       &soon);
			else
				CHECK(pthread_cond_wait(&queue.filled, &queue.mutex) == 0);
		}
		queue.sum += queue.items[queue.out++ % ROOM];
		CHECK(pthread_cond_signal(&queue.emptied) == 0);
		CHECK(pthread_mutex_unlock(&queue.mutex) == 0);
	}
	return arg;
}

static void check_queue(void)
{
	pthread_t threads[THREADS];

	for (int i = 0; i < THREADS; i++)
		threads[i] = start(i % 2 ? produce : consume, NULL);
	for (int i = 0; i < THREADS; i++)
		join(threads[i]);
	CHECK(queue.in == queue.out);
	CHECK(queue.sum == THREADS / 2 * ((unsigned long)ITEMS * (ITEMS + 1) / 2));
}

/* The thread that releases a mutex last destroys it and frees its memory. */

struct held {
	pthread_mutex_t mutex;
	unsigned int holders;
};

static void *let_go(void *arg)
{
	struct held *held = arg;
	unsigned int left;

	CHECK(pthread_mutex_lock(&held->mutex) == 0);
	left = --held->holders;
	CHECK(pthread_mutex_unlock(&held->mutex) == 0);
	if (left == 0) {
		CHECK(pthread_mutex_destroy(&held->mutex) == 0);
		CHECK(munmap(held, (size_t)sysconf(_SC_PAGESIZE)) == 0);
	}
	return NULL;
}

static void check_last_destroys(void)
{
	for (int i = 0; i < 2000; i++) {
		pthread_t threads[4];
		struct held *held =
			mmap(NULL, (size_t)sysconf(_SC_PAGESIZE), PROT_READ | PROT_WRITE,
			     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

		CHECK(held != MAP_FAILED);
		CHECK(pthread_mutex_init(&held->mutex, NULL) == 0);
		held->holders = 4;
		for (int j = 0; j < 4; j++)
			threads[j] = start(let_go, held);
		for (int j = 0; j < 4; j++)
			join(threads[j]);
	}
}

int main(void)
{
	begin();
	check_ping_pong();
	check_queue();
	check_last_destroys();
	return 0;
}
