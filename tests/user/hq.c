// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * The queues of the HQ-spinlock, step by step, as cna.c does for CNA; then rare situations. The
 * NUMA nodes are made up: the test puts all CPUs into one node, and a waiter that queues then is of
 * that node.
 */
#include "test.h"

#include <semaphore.h>
#include <sys/mman.h>
#include <sys/resource.h>

#include "../../locks/hq.c"

#define NODES		 3
#define MAX_WAITERS	 8
#define SMALL_STACK	 (32 * 1024)
#define POOL_SIZE	 (256 * 1024)
#define NEVER		 LW_TUNABLE_MAX
#define SET(name, value) CHECK(lw_set_tunable(LW_TUNABLE_hqlock_##name, value) == 0)

static struct lw_hq lock = LW_HQ_INIT;
static struct lw_hq *rival; /* shares its queues with `lock`, in each node */

/* Puts all CPUs into `numa_node`: waiters that queue from now on are of that node. */
static void be_on_node(int numa_node)
{
	char text[64], *at = text;

	for (int node = 0; node < NODES; node++) {
		if (node == numa_node)
			at += sprintf(at, "0-8000:");
		else
			at += sprintf(at, "%d:", 8100 + node);
	}
	at[-1] = '\0';
	CHECK(lw_user_topology_parse(text));
}

/* Sets whether waiters of the lock queue by node from now on. */
static void enter_always(void)
{
	SET(general_handoffs_turn_numa, 0);
	SET(remote_handoffs_turn_numa, 0);
}

static void enter_never(void)
{
	SET(general_handoffs_turn_numa, NEVER);
}

static void stay_always(void)
{
	SET(remote_handoffs_keep_numa, 0);
}

static bool by_node(struct lw_hq *hq)
{
	return lw_load(&hq->word.val, relaxed) & LW_HQ_NUMA;
}

/* Prepares a lock that no thread uses: as initialised, or as after contention. */
static void init(struct lw_hq *hq, bool numa)
{
	lw_store(&hq->word.val, numa ? LW_HQ | LW_HQ_NUMA : LW_HQ, relaxed);
}

static struct lw_hq *map_lock(struct lw_hq *at)
{
	int flags = MAP_PRIVATE | MAP_ANONYMOUS | (at ? MAP_FIXED_NOREPLACE : 0);
	struct lw_hq *mapped =
		mmap(at, (size_t)sysconf(_SC_PAGESIZE), PROT_READ | PROT_WRITE, flags, -1, 0);

	CHECK(mapped != MAP_FAILED && (!at || mapped == at));
	init(mapped, true);
	return mapped;
}

static void unmap_lock(struct lw_hq *mapped)
{
	CHECK(munmap(mapped, (size_t)sysconf(_SC_PAGESIZE)) == 0);
}

/* Waiters for one lock, and the order in which they acquired it. */
struct queue {
	struct lw_hq *lock;
	bool unmap; /* the last of them does, right behind the one before */
	int n, served;
	int order[MAX_WAITERS];
	struct waiter {
		struct queue *queue;
		pthread_t thread;
		sem_t go;
	} waiters[MAX_WAITERS];
};

static uint64_t before[LW_EVENT_COUNT], counts[LW_EVENT_COUNT];

/* Counts events from here to end_count(), which writes them to `counts`. */
static void begin_count(void)
{
	lw_statistics(before);
}

static void end_count(void)
{
	lw_statistics(counts);
	for (unsigned int event = 0; event < LW_EVENT_COUNT; event++)
		counts[event] -= before[event];
}

static void *wait_for_lock(void *arg)
{
	struct waiter *self = arg;
	struct queue *queue = self->queue;
	bool last;

	CHECK(sem_wait(&self->go) == 0);
	errno = ENOTNAM;
	lw_hq_lock(queue->lock);
	queue->order[queue->served++] = (int)(self - queue->waiters);
	last = queue->served == queue->n;
	lw_hq_unlock(queue->lock);
	if (last && queue->unmap)
		unmap_lock(queue->lock);
	CHECK(errno == ENOTNAM);
	return NULL;
}

static void start_waiters(struct queue *queue, struct lw_hq *hq, int n)
{
	*queue = (struct queue){.lock = hq, .n = n};
	for (int i = 0; i < n; i++) {
		struct waiter *waiter = &queue->waiters[i];

		waiter->queue = queue;
		CHECK(sem_init(&waiter->go, 0, 0) == 0);
		thread_start(&waiter->thread, SMALL_STACK, wait_for_lock, waiter);
	}
}

/* Returns the queue of a node for this lock; NULL if the node has no queues yet. */
static struct lw_node *mapped_queue(struct lw_hq *hq, int numa_node)
{
	struct lw_node *queues = lw_load(&lw_user_node_queues_of[numa_node].mapped, acquire);

	return queues ? &queues[lw_hq_key(&hq->word) >> LW_HQ_ID_BITS] : NULL;
}

/* Returns the `waiters` word of a node's queue; 0 if another lock uses that queue. */
static uint64_t waiters_of(struct lw_hq *hq, int numa_node)
{
	struct lw_node *queue = mapped_queue(hq, numa_node);
	uint64_t waiters = queue ? lw_load(&lw_hq_part(queue)->waiters, acquire) : 0;

	return lw_hq_same_lock(waiters, lw_hq_waiters(&hq->word, 0)) ? waiters : 0;
}

static void await_link(struct lw_node *node)
{
	while (!lw_load(&node->next, acquire))
		usleep(100);
}

/* Lets a waiter queue on `numa_node`, and waits until it has queued. */
static void let_queue(struct waiter *waiter, int numa_node)
{
	struct lw_hq *hq = waiter->queue->lock;
	uint32_t val = lw_load(&hq->word.val, acquire), tail = val & LW_TAIL_MASK;
	uint64_t waiters = val & LW_HQ_NUMA ? waiters_of(hq, numa_node) : 0;

	be_on_node(numa_node);
	CHECK(sem_post(&waiter->go) == 0);
	if (waiters) {
		while (waiters_of(hq, numa_node) == waiters)
			usleep(100);
		await_link(lw_decode_tail((uint32_t)waiters << LW_TAIL_SHIFT));
		return;
	}
	while ((lw_load(&hq->word.val, acquire) & LW_TAIL_MASK) == tail)
		usleep(100);
	if (tail)
		await_link(lw_hq_decode_tail(&hq->word, tail));
}

/* Makes the lock busy and lets the waiters queue, one after the other, on these nodes. */
static void queue_up(struct queue *queue, const char *numa_nodes)
{
	make_busy(&queue->lock->word);
	for (int i = 0; i < queue->n; i++)
		let_queue(&queue->waiters[i], numa_nodes[i] - '0');
}

/* Ends the lock's being busy. Checks that all waiters acquire it in the expected order. */
static void serve(struct queue *queue, const char *expected)
{
	end_busy(&queue->lock->word);
	for (int i = 0; i < queue->n; i++) {
		CHECK(pthread_join(queue->waiters[i].thread, NULL) == 0);
		sem_destroy(&queue->waiters[i].go);
	}
	CHECK(queue->served == queue->n);
	if (!queue->unmap)
		CHECK(lw_word_is_free(lw_load(&queue->lock->word.val, relaxed)));
	for (int i = 0; i < queue->n; i++) {
		if (queue->order[i] != expected[i] - '0')
			fprintf(stderr, "place %d of %s: %d\n", i, expected, queue->order[i]);
		CHECK(queue->order[i] == expected[i] - '0');
	}
	for (int node = 0; node < NODES; node++)
		CHECK(!waiters_of(queue->lock, node));
}

static void run(struct lw_hq *hq, const char *numa_nodes, const char *expected)
{
	struct queue queue;

	begin_count();
	start_waiters(&queue, hq, (int)strlen(numa_nodes));
	queue_up(&queue, numa_nodes);
	serve(&queue, expected);
	end_count();
	CHECK(counts[LW_EVENT_queued_acquisitions] == (uint64_t)queue.n);
	CHECK(counts[LW_EVENT_node_queues_taken] == counts[LW_EVENT_node_queues_released]);
}

static size_t mapped_bytes(void)
{
	FILE *file = fopen("/proc/self/statm", "r");
	unsigned long pages;

	CHECK(file && fscanf(file, "%lu", &pages) == 1);
	fclose(file);
	return pages * (size_t)sysconf(_SC_PAGESIZE);
}

static bool is_mapped(int numa_node)
{
	return lw_load(&lw_user_node_queues_of[numa_node].mapped, relaxed) != NULL;
}

/* The queues of a node are mapped when they are first needed, and only once. */
static void check_pool(void)
{
	static struct lw_hq many[100];
	struct lw_node *queues;
	size_t bytes;

	enter_never();
	stay_always();
	init(&lock, false);
	run(&lock, "0101", "0123");
	bytes = mapped_bytes();
	for (int node = 0; node < NODES; node++)
		CHECK(!is_mapped(node));

	init(&lock, true);
	run(&lock, "1111", "0123");
	CHECK(!is_mapped(0) && is_mapped(1) && !is_mapped(2));
	CHECK(mapped_bytes() == bytes + POOL_SIZE);
	queues = lw_load(&lw_user_node_queues_of[1].mapped, relaxed);

	run(&lock, "0111", "0123");
	CHECK(is_mapped(0) && is_mapped(1) && !is_mapped(2));
	for (size_t i = 0; i < sizeof(many) / sizeof(*many); i++) {
		init(&many[i], true);
		run(&many[i], "01", "01");
		CHECK(counts[LW_EVENT_node_queues_taken] == 2);
	}
	CHECK(mapped_bytes() == bytes + 2 * POOL_SIZE);
	CHECK(lw_load(&lw_user_node_queues_of[1].mapped, relaxed) == queues);
}

static void without_memory(void *arg)
{
	struct rlimit limit, none;
	struct queue queue;

	(void)arg;
	init(&lock, true);
	start_waiters(&queue, &lock, 4);
	CHECK(getrlimit(RLIMIT_AS, &limit) == 0);
	none = limit;
	none.rlim_cur = mapped_bytes();
	CHECK(setrlimit(RLIMIT_AS, &none) == 0);
	begin_count();
	/* Waiters of node 2 use their own queue nodes. */
	queue_up(&queue, "0202");
	CHECK(setrlimit(RLIMIT_AS, &limit) == 0);
	serve(&queue, "0213");
	end_count();
	CHECK(counts[LW_EVENT_node_queues_taken] == 1);
	CHECK(counts[LW_EVENT_node_queue_conflicts] == 0);
	/* The library does not ask the system again each time. */
	run(&lock, "0202", "0213");
	CHECK(!is_mapped(2));
}

/* As tails, queues of NUMA nodes and queue nodes differ; NUMA nodes beyond the limit have no queue.
 */
static void tails_differ(void *arg)
{
	const uint32_t last = LW_MAX_NUMA_NODES - 1;

	(void)arg;
	CHECK(lw_hq_encode_queue(0) > lw_encode_tail(LW_MAX_SLOTS, LW_NODES_PER_SLOT - 1));
	CHECK(lw_hq_encode_queue(last) > lw_hq_encode_queue(0));
	CHECK(!(lw_hq_encode_queue(last) & ~LW_TAIL_MASK));
	CHECK(lw_hq_queue_of(&lock.word, last));
	CHECK(lw_hq_decode_tail(&lock.word, lw_hq_encode_queue(last)) ==
	      lw_hq_queue_of(&lock.word, last));
	CHECK(!lw_hq_queue_of(&lock.word, last + 1) && !lw_hq_queue_of(&lock.word, UINT16_MAX));
}

/* When waiters begin to queue by node, whatever they did before. */
static void check_entering(void)
{
	static const struct {
		const char *numa_nodes;
		uint64_t general, remotes, locals;
		bool enters;
	} cases[] = {
		{"0101", 3, 0, 0, false},  {"01010", 3, 0, 0, true},	{"0101", 0, 4, 0, false},
		{"01010", 0, 4, 0, true},  {"0010", 0, 1, 2, false},	{"0001", 0, 1, 2, true},
		{"00010", 0, 2, 2, false}, {"00010001", 0, 2, 2, true}, {"0000", 0, 1, 0, false},
		{"0000", 0, 0, 0, true},   {"01", NEVER, 0, 0, false},	{"0", 0, 0, 0, false},
	};

	stay_always();
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		SET(general_handoffs_turn_numa, cases[i].general);
		SET(remote_handoffs_turn_numa, cases[i].remotes);
		SET(local_handoffs_to_increase_remotes, cases[i].locals);
		init(&lock, false);
		run(&lock, cases[i].numa_nodes, "01234567");
		CHECK(by_node(&lock) == cases[i].enters);
		CHECK(counts[LW_EVENT_numa_mode_entered] == cases[i].enters);
		CHECK(counts[LW_EVENT_numa_mode_left] == 0);
		CHECK(counts[LW_EVENT_node_queues_taken] == 0);
	}
	SET(local_handoffs_to_increase_remotes, 0);
}

/* The defaults: 51 hand-offs and two to another node after two local ones, not 50. */
static void check_defaults(void)
{
	for (unsigned int i = 0; i < LW_TUNABLE_COUNT; i++)
		CHECK(lw_set_tunable((enum lw_tunable_id)i, lw_tunables[i].default_value) == 0);
	for (uint16_t handoffs = 50; handoffs <= 51; handoffs++) {
		for (uint16_t remote = 1; remote <= 2; remote++) {
			union lw_hq_history history = {.handoffs = handoffs, .remote = remote};

			CHECK(lw_hq_is_contended(&history, 0) == (handoffs == 51 && remote == 2));
		}
	}
	SET(local_handoffs_to_increase_remotes, 0);
	SET(fairness_threshold, NEVER);
}

/* Acquires the lock 200 times and never queues. */
static void *take_alone(void *unused)
{
	(void)unused;
	for (int times = 0; times < 200; times++) {
		lw_hq_lock(&lock);
		lw_hq_unlock(&lock);
	}
	return NULL;
}

/* When they stop queueing by node: only when a queue becomes empty. */
static void check_leaving(void)
{
	static const struct {
		uint64_t keep, probability;
		bool stays;
	} cases[] = {
		{1, 0, true}, {2, 0, false}, {2, 10000, true}, {NEVER, 0, false}, {0, 0, true}};

	enter_never();
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		SET(remote_handoffs_keep_numa, cases[i].keep);
		SET(probability_of_force_stay_numa, cases[i].probability);
		init(&lock, true);
		run(&lock, "0101", "0213");
		CHECK(by_node(&lock) == cases[i].stays);
		CHECK(counts[LW_EVENT_numa_mode_left] == !cases[i].stays);
		CHECK(counts[LW_EVENT_numa_mode_entered] == 0);
	}

	for (int probability = 0; probability <= 10000; probability += 10000) {
		SET(probability_of_force_stay_numa, (uint64_t)probability);
		SET(remote_handoffs_keep_numa, 1);
		init(&lock, true);
		CHECK(lw_hq_trylock(&lock));
		lw_hq_unlock(&lock);
		CHECK(by_node(&lock));
		lw_hq_lock(&lock);
		lw_hq_unlock(&lock);
		CHECK(by_node(&lock) == (probability > 0));
	}

	/* Half of the time, also for a thread without a slot. */
	pthread_t thread;

	SET(probability_of_force_stay_numa, 5000);
	init(&lock, true);
	CHECK(pthread_create(&thread, NULL, take_alone, NULL) == 0);
	CHECK(pthread_join(thread, NULL) == 0);
	CHECK(!by_node(&lock));
}

static uint32_t doubts(struct lw_hq *hq)
{
	return lw_load(&hq->word.val, relaxed) & LW_HQ_DOUBTS;
}

/* They also stop if hand-overs do not stay within nodes; then they begin again later. */
static void check_doubts(void)
{
	stay_always();
	SET(general_handoffs_turn_numa, 1);
	SET(remote_handoffs_turn_numa, 1);
	init(&lock, false);
	for (uint32_t times = 1; times <= 9; times++) {
		lw_fetch_or(&lock.word.val, LW_HQ_NUMA, relaxed);
		run(&lock, "0122", "0123");
		CHECK(!by_node(&lock) && counts[LW_EVENT_numa_mode_left] == 1);
		CHECK(doubts(&lock) == (times < 7 ? times : 7) * LW_HQ_DOUBT);
	}

	init(&lock, false);
	lw_fetch_or(&lock.word.val, LW_HQ_DOUBT, relaxed);
	run(&lock, "0101", "0123");
	CHECK(!by_node(&lock) && doubts(&lock) == LW_HQ_DOUBT);
	run(&lock, "01010", "01234");
	CHECK(by_node(&lock) && doubts(&lock) == LW_HQ_DOUBT);
	/* All hand-overs stay within the node. */
	run(&lock, "0000", "0123");
	CHECK(by_node(&lock) && !doubts(&lock));

	/* Without contention there is one doubt less each time, until the fast path suffices. */
	init(&lock, false);
	lw_fetch_or(&lock.word.val, 2 * LW_HQ_DOUBT, relaxed);
	for (uint32_t left = 2; left-- > 0;) {
		lw_hq_lock(&lock);
		lw_hq_unlock(&lock);
		CHECK(doubts(&lock) == left * LW_HQ_DOUBT);
	}
	enter_never();
}

/* Waiters of a node acquire the lock in a row; nodes come in the order of their first waiters. */
static void check_order(void)
{
	stay_always();
	init(&lock, true);
	run(&lock, "01010", "02413");
	CHECK(counts[LW_EVENT_node_queues_taken] == 2);
	CHECK(counts[LW_EVENT_local_handoffs] == 3);
	CHECK(counts[LW_EVENT_remote_handoffs] == 1);
	CHECK(counts[LW_EVENT_fairness_handoffs] == 0);
	CHECK(counts[LW_EVENT_node_queue_conflicts] == 0);

	run(&lock, "21020112", "03715624");
}

/* The longest run counts for all threads, since the last restart. */
static void check_longest_run(void)
{
	lw_statistics_restart_maxima();
	CHECK(counted(LW_EVENT_longest_local_run) == 0);
	run(&lock, "0000100", "0123564");
	CHECK(counted(LW_EVENT_longest_local_run) == 5);
	run(&lock, "0011", "0123");
	CHECK(counted(LW_EVENT_longest_local_run) == 5);
	lw_statistics_restart_maxima();
	run(&lock, "0011", "0123");
	CHECK(counted(LW_EVENT_longest_local_run) == 1);
}

/* Such a run ends while another node waits: the remaining waiters queue again behind it. */
static void check_fairness(void)
{
	SET(fairness_threshold, 1);
	run(&lock, "01001", "02143");
	CHECK(counts[LW_EVENT_fairness_handoffs] >= 1);
	SET(fairness_threshold, 0);
	run(&lock, "0001", "0312");
	SET(fairness_threshold, 2);
	run(&lock, "000000", "012345");
	CHECK(counts[LW_EVENT_fairness_handoffs] == 0);
	SET(fairness_threshold, NEVER);
}

/* Returns one of `among` that shares its queues with `hq`, in each node. */
static struct lw_hq *find_rival(struct lw_hq *of, struct lw_hq *among, size_t n)
{
	uint64_t queue = lw_hq_key(&of->word) >> LW_HQ_ID_BITS;

	for (size_t i = 0; i < n; i++) {
		if (&among[i] != of && lw_hq_key(&among[i].word) >> LW_HQ_ID_BITS == queue)
			return &among[i];
	}
	CHECK(!"there is one");
	return NULL;
}

/* Two locks with the same queues: waiters of the second one use their own queue nodes. */
static void check_conflict(void)
{
	struct queue first, second;

	init(&lock, true);
	init(rival, true);
	CHECK(!lw_hq_same_lock(lw_hq_waiters(&lock.word, 0), lw_hq_waiters(&rival->word, 0)));
	begin_count();
	start_waiters(&first, &lock, 3);
	start_waiters(&second, rival, 5);
	queue_up(&first, "000");
	queue_up(&second, "01001");
	end_count();
	CHECK(counts[LW_EVENT_node_queue_conflicts] == 3);
	CHECK(counts[LW_EVENT_node_queues_taken] == 2);
	/* The second lock uses the queue of node 1. */
	serve(&second, "01423");
	serve(&first, "012");
	run(rival, "00101", "01324");
	CHECK(counts[LW_EVENT_node_queue_conflicts] == 0);
	CHECK(counts[LW_EVENT_node_queues_taken] == 2);
}

/* A lock's memory is unmapped and mapped again, while another lock uses the queue and after. */
static void check_unmapped(struct lw_hq *among, size_t n)
{
	struct lw_hq *mapped = map_lock(NULL), *other = find_rival(mapped, among, n);
	struct queue queue;

	init(other, true);
	run(mapped, "0101", "0213");
	CHECK(counts[LW_EVENT_node_queues_taken] == 2);
	start_waiters(&queue, other, 4);
	queue_up(&queue, "0011");
	run(mapped, "0101", "0123");
	CHECK(counts[LW_EVENT_node_queue_conflicts] == 4);
	unmap_lock(mapped);
	serve(&queue, "0123");
	run(other, "0101", "0213");
	CHECK(counts[LW_EVENT_node_queues_taken] == 2);
	CHECK(counts[LW_EVENT_node_queue_conflicts] == 0);

	/* Another lock at the same address. */
	start_waiters(&queue, other, 4);
	queue_up(&queue, "0011");
	map_lock(mapped);
	run(mapped, "0101", "0123");
	serve(&queue, "0123");
	run(mapped, "0101", "0213");
	unmap_lock(mapped);
}

/* After the release a thread does not access the lock again. */
static void check_last_unmaps(void)
{
	for (int i = 0; i < 100; i++) {
		struct lw_hq *mapped = map_lock(NULL);
		struct queue queue;

		start_waiters(&queue, mapped, 2);
		queue.unmap = true;
		queue_up(&queue, i % 2 ? "00" : "01");
		serve(&queue, "01");
	}
}

/* Zero bytes are a plain queued spinlock. */
static void check_zeroed(void)
{
	enter_always();
	memset(&lock, 0, sizeof(lock));
	run(&lock, "01010", "01234");
	CHECK(counts[LW_EVENT_numa_mode_entered] == 0);
	CHECK(counts[LW_EVENT_node_queues_taken] == 0);
	CHECK(lw_load(&lock.word.val, relaxed) == 0);
	CHECK(lw_hq_trylock(&lock) && !lw_hq_trylock(&lock));
	CHECK(lw_load(&lock.word.val, relaxed) == LW_LOCKED);
	lw_hq_unlock(&lock);
	enter_never();
}

/* The setting decides whether nodes are told apart; switching it off holds from the next hand-over.
 */
static void check_switch(void)
{
	CHECK(lw_set_numa_spinlock(LW_NUMA_OFF) == 0);
	init(&lock, true);
	run(&lock, "0101", "0213");
	CHECK(counts[LW_EVENT_numa_mode_left] == 1 && !by_node(&lock));
	enter_always();
	run(&lock, "0101", "0123");
	CHECK(counts[LW_EVENT_numa_mode_entered] == 0 && !by_node(&lock));

	CHECK(lw_set_numa_spinlock(LW_NUMA_ON) == 0);
	run(&lock, "0101", "0123");
	CHECK(counts[LW_EVENT_numa_mode_entered] == 1 && by_node(&lock));
	enter_never();
	run(&lock, "0101", "0213");

	CHECK(lw_set_numa_spinlock(LW_NUMA_AUTO) == 0);
	run(&lock, "0101", "0213");
	CHECK(by_node(&lock));
	CHECK(lw_user_topology_parse("0-8000"));
	lw_hq_lock(&lock);
	lw_hq_unlock(&lock);
	CHECK(!by_node(&lock));
}

/* No thread waits in the child of a fork. It initialises the lock again and uses it. */
static void child_goes_on(void *arg)
{
	(void)arg;
	for (int node = 0; node < NODES; node++)
		CHECK(!is_mapped(node) ||
		      !lw_load(&lw_hq_part(mapped_queue(&lock, node))->waiters, relaxed));
	init(&lock, true);
	run(&lock, "01010", "02413");
	CHECK(counts[LW_EVENT_node_queues_taken] == 2);
	CHECK(counts[LW_EVENT_node_queue_conflicts] == 0);
}

static void check_fork(void)
{
	struct queue queue;

	init(&lock, true);
	start_waiters(&queue, &lock, 5);
	queue_up(&queue, "00110");
	CHECK(in_child(child_goes_on, NULL) == 0);
	serve(&queue, "01423");
}

/* Signal handlers queue for further locks, one of which shares its queues with the first. */
static struct lw_hq inside = LW_HQ_INIT;

static void on_signal(int signal)
{
	struct lw_hq *hq = signal == SIGUSR1 ? &inside : rival;

	lw_hq_lock(hq);
	lw_hq_unlock(hq);
}

static void await_handler(struct lw_hq *hq, uint32_t index)
{
	uint32_t tail;

	while (!(tail = lw_load(&hq->word.val, acquire) & LW_TAIL_MASK))
		usleep(100);
	if (tail >= LW_HQ_FIRST_QUEUE_TAIL)
		tail = (uint32_t)waiters_of(hq, 0) << LW_TAIL_SHIFT;
	CHECK((tail >> LW_TAIL_SHIFT & LW_TAIL_INDEX_MASK) == index);
}

static void check_nesting(void)
{
	struct sigaction action = {.sa_handler = on_signal};
	struct queue outer, first, second;

	CHECK(sigaction(SIGUSR1, &action, NULL) == 0);
	CHECK(sigaction(SIGUSR2, &action, NULL) == 0);
	init(&lock, true);
	init(&inside, true);
	init(rival, true);
	start_waiters(&outer, &lock, 3);
	start_waiters(&first, &inside, 1);
	start_waiters(&second, rival, 1);
	queue_up(&outer, "000");

	make_busy(&inside.word);
	CHECK(pthread_kill(outer.waiters[1].thread, SIGUSR1) == 0);
	await_handler(&inside, 1);
	let_queue(&first.waiters[0], 0);
	begin_count();
	make_busy(&rival->word);
	CHECK(pthread_kill(outer.waiters[1].thread, SIGUSR2) == 0);
	await_handler(rival, 2);
	let_queue(&second.waiters[0], 0);
	end_count();
	CHECK(counts[LW_EVENT_node_queue_conflicts] == 2);

	serve(&second, "0");
	serve(&first, "0");
	serve(&outer, "012");
}

/*
 * All at once: threads that start and end, locks that share their queues, NUMA nodes and settings
 * that change.
 */
#define WORKERS 6
#define ROUNDS	30

static struct contended {
	struct lw_hq *lock;
	unsigned long count; /* the lock protects it */
} contended[2];

static void *take_both(void *arg)
{
	unsigned int number = *(unsigned int *)arg;

	for (unsigned int i = 0; i < 2; i++) {
		struct contended *c = &contended[(number + i) % 2];

		lw_hq_lock(c->lock);
		c->count++;
		usleep(20);
		lw_hq_unlock(c->lock);
	}
	return NULL;
}

static void *work(void *arg)
{
	unsigned int number = *(unsigned int *)arg;

	for (unsigned int i = 0; i < ROUNDS; i++) {
		pthread_t thread;

		if (number % 2) {
			take_both(arg);
			continue;
		}
		thread_start(&thread, SMALL_STACK, take_both, arg);
		CHECK(pthread_join(thread, NULL) == 0);
	}
	__atomic_fetch_add((unsigned int *)arg + WORKERS, 1, __ATOMIC_RELEASE);
	return NULL;
}

static void check_changes(void)
{
	static unsigned int numbers[2 * WORKERS] = {0, 1, 2, 3, 4, 5};
	pthread_t threads[WORKERS];
	unsigned int random = 1, ended;

	contended[0] = (struct contended){.lock = &lock};
	contended[1] = (struct contended){.lock = rival};
	init(&lock, true);
	init(rival, true);
	SET(probability_of_force_stay_numa, 5000);
	enter_always();
	begin_count();
	for (int i = 0; i < WORKERS; i++)
		thread_start(&threads[i], 0, work, &numbers[i]);
	do {
		random = random * 1103515245 + 12345;
		be_on_node((int)(random >> 16) % NODES);
		/* Mostly queueing by node, with a change now and then. */
		SET(general_handoffs_turn_numa, !(random >> 20 & 7));
		SET(remote_handoffs_keep_numa, random >> 22 & 7 ? 0 : 2);
		SET(fairness_threshold, random >> 25 & 7);
		CHECK(lw_set_numa_spinlock(random >> 27 ? LW_NUMA_AUTO : LW_NUMA_OFF) == 0);
		usleep(50);
		ended = 0;
		for (int i = 0; i < WORKERS; i++)
			ended += __atomic_load_n(&numbers[WORKERS + i], __ATOMIC_ACQUIRE);
	} while (ended < WORKERS);
	for (int i = 0; i < WORKERS; i++)
		CHECK(pthread_join(threads[i], NULL) == 0);
	end_count();
	for (int i = 0; i < 2; i++) {
		CHECK(contended[i].count == WORKERS * ROUNDS);
		CHECK(lw_word_is_free(lw_load(&contended[i].lock->word.val, relaxed)));
	}
	for (int node = 0; node < NODES; node++)
		CHECK(!is_mapped(node) ||
		      !lw_load(&lw_hq_part(mapped_queue(&lock, node))->waiters, relaxed));
	CHECK(counts[LW_EVENT_node_queues_taken] > 0);
	CHECK(lw_set_numa_spinlock(LW_NUMA_AUTO) == 0);
	SET(fairness_threshold, NEVER);
}

int main(void)
{
	static struct lw_hq many[50000];
	const size_t n = sizeof(many) / sizeof(*many);

	rival = find_rival(&lock, many, n);

	check_pool();
	CHECK(in_child(without_memory, NULL) == 0);
	CHECK(in_child(tails_differ, NULL) == 0);
	check_entering();
	check_defaults();
	check_leaving();
	check_doubts();
	check_order();
	check_longest_run();
	check_fairness();
	check_conflict();
	check_unmapped(many, n);
	check_last_unmaps();
	check_zeroed();
	check_switch();
	check_fork();
	check_nesting();
	check_changes();
	return 0;
}
