// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * HQ-spinlock in user space. First, in one thread: the memory of the queues, and when the lock
 * enters and leaves NUMA mode. Then the order in which threads acquire the lock. The checker shows
 * what happens when operations of several threads overlap. The NUMA nodes are made up: the test
 * puts all CPUs into one, and a waiter that queues then is of that node.
 */
#include "order.h"

#include <sys/mman.h>
#include <sys/syscall.h>

#include "../../locks/hq.c"

#define POOL_SIZE	 (256 * 1024)
#define NEVER		 LW_TUNABLE_MAX
#define SET(name, value) CHECK(lw_set_tunable(LW_TUNABLE_hqlock_##name, value) == 0)

static struct lw_hq many[50000];
static struct lw_hq *lock = many;

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

/* Prepares the lock, which no thread uses. `service`: its service bits besides LW_HQ. */
static void init(uint32_t service)
{
	lw_store(&lock->word.val, LW_HQ | service, relaxed);
}

static bool by_node(void)
{
	return lw_load(&lock->word.val, relaxed) & LW_HQ_NUMA;
}

static uint32_t doubts(void)
{
	return (lw_load(&lock->word.val, relaxed) & LW_HQ_DOUBTS) / LW_HQ_DOUBT;
}

static void lock_once(void)
{
	lw_hq_lock(lock);
	lw_hq_unlock(lock);
}

/* Counts the bytes that are mapped, and refuses to map more than `most` of them. */
static size_t mapped_bytes, most_mapped_bytes = SIZE_MAX;

void *mmap(void *at, size_t size, int protection, int flags, int fd, off_t offset)
{
	if (mapped_bytes + size > most_mapped_bytes) {
		errno = ENOMEM;
		return MAP_FAILED;
	}
	mapped_bytes += size;
	return (void *)syscall(SYS_mmap, at, size, protection, flags, fd, offset);
}

static bool is_mapped(int numa_node)
{
	return lw_load(&lw_user_node_queues_of[numa_node].mapped, relaxed) != NULL;
}

/* The queues of a node are mapped when they are first needed, and only once. */
static void check_pool(void)
{
	const size_t bytes = mapped_bytes;
	struct lw_node *queues;

	for (int node = 0; node < NODES; node++)
		CHECK(!is_mapped(node));
	queues = lw_node_queues(0);
	CHECK(queues && lw_node_queues(0) == queues);
	CHECK(is_mapped(0) && !is_mapped(1) && !is_mapped(2));
	CHECK(mapped_bytes == bytes + POOL_SIZE);
}

/* As tails, queues of NUMA nodes and queue nodes differ. NUMA nodes beyond the limit have none. */
static void tails_differ(void *arg)
{
	const uint32_t last = LW_MAX_NUMA_NODES - 1;

	(void)arg;
	CHECK(lw_node_queue_tail(0) > lw_encode_tail(LW_MAX_SLOTS, LW_NODES_PER_SLOT - 1));
	CHECK(lw_node_queue_tail(last) > lw_node_queue_tail(0));
	CHECK(!(lw_node_queue_tail(last) & ~LW_TAIL_MASK));
	CHECK(lw_node_queue_of(&lock->word, last));
	CHECK(lw_decode_place(&lock->word, lw_node_queue_tail(last)) ==
	      lw_node_queue_of(&lock->word, last));
	CHECK(!lw_node_queue_of(&lock->word, last + 1) &&
	      !lw_node_queue_of(&lock->word, UINT16_MAX));
}

/* Locks that share their queues are told apart. */
static void check_identity(void)
{
	uint64_t key = lw_lock_key(&lock->word);
	size_t rivals = 0;

	for (struct lw_hq *hq = many + 1; hq < many + sizeof(many) / sizeof(*many); hq++) {
		if (lw_lock_key(&hq->word) >> LW_LOCK_ID_BITS != key >> LW_LOCK_ID_BITS)
			continue;
		rivals++;
		CHECK(!lw_node_queue_is_of(lw_node_queue_waiters(&lock->word, 0),
					   lw_node_queue_waiters(&hq->word, 0)));
	}
	CHECK(rivals > 0);
}

/* Takes the lock as waiters of these nodes do, which all queue before the first one takes it. */
static void take_turns(const char *numa_nodes)
{
	struct lw_node place, *queue = by_node() ? &place : NULL;
	bool within = false;

	start_counting();
	for (const char *node = numa_nodes; *node; node++) {
		uint32_t val = lw_load(&lock->word.val, relaxed);
		struct lw_hq_waiter me = {
			.queue = queue, .place = &place, .history = {.numa_node = *node - '0'}};

		if (within)
			me.history.packed = lw_load(&lw_hq_part(&place)->history, relaxed);
		else if (node > numa_nodes)
			lw_hq_receive(&me);
		within = queue && me.history.numa_mode && node[1] == *node && me.history.left;
		if (!within)
			lw_hq_end_turn(&me);
		if (node[1]) {
			lw_hq_take(&lock->word, val, &me.history);
			if (within)
				lw_hq_count_local(&me.history);
			lw_hq_hand_over(&me.history, &place);
		} else {
			uint32_t service = lw_hq_service(val, &me.history, true);

			CHECK(lw_hq_try_take_last(&lock->word, &val, service));
		}
		lw_hq_unlock(lock);
	}
}

/* When NUMA mode is entered, whatever the mode was before. */
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

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		SET(general_handoffs_turn_numa, cases[i].general);
		SET(remote_handoffs_turn_numa, cases[i].remotes);
		SET(local_handoffs_to_increase_remotes, cases[i].locals);
		init(0);
		take_turns(cases[i].numa_nodes);
		CHECK(by_node() == cases[i].enters);
		CHECK_COUNTED(numa_mode_entered, cases[i].enters);
		CHECK_COUNTED(numa_mode_left, 0);
	}
	SET(local_handoffs_to_increase_remotes, 0);

	/* Zero bytes are a plain queued spinlock. */
	SET(remote_handoffs_turn_numa, 0);
	lw_store(&lock->word.val, 0, relaxed);
	take_turns("01010");
	CHECK(lw_load(&lock->word.val, relaxed) == 0);
	CHECK(lw_hq_trylock(lock) && !lw_hq_trylock(lock));
	CHECK(lw_load(&lock->word.val, relaxed) == LW_LOCKED);
	lw_hq_unlock(lock);
}

static void *lock_until_plain(void *unused)
{
	for (int times = 0; times < 200 && by_node(); times++)
		lock_once();
	return unused;
}

/* When NUMA mode is left: only when the queue becomes empty. */
static void check_leaving(void)
{
	static const struct {
		uint64_t keep, probability;
		bool stays;
	} cases[] = {
		{1, 0, true}, {2, 0, false}, {2, 10000, true}, {NEVER, 0, false}, {0, 0, true}};
	pthread_t thread;

	SET(general_handoffs_turn_numa, NEVER);
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		SET(remote_handoffs_keep_numa, cases[i].keep);
		SET(probability_of_force_stay_numa, cases[i].probability);
		init(LW_HQ_NUMA);
		take_turns("0011");
		CHECK(by_node() == cases[i].stays);
		CHECK_COUNTED(numa_mode_left, !cases[i].stays);
		CHECK_COUNTED(numa_mode_entered, 0);
	}

	for (int probability = 0; probability <= 10000; probability += 10000) {
		SET(probability_of_force_stay_numa, (uint64_t)probability);
		SET(remote_handoffs_keep_numa, 1);
		init(LW_HQ_NUMA);
		CHECK(lw_hq_trylock(lock));
		lw_hq_unlock(lock);
		CHECK(by_node());
		lock_once();
		CHECK(by_node() == (probability > 0));
	}

	/* Half of the time, also for a thread without a slot. */
	SET(probability_of_force_stay_numa, 5000);
	init(LW_HQ_NUMA);
	thread_start(&thread, 0, lock_until_plain, NULL);
	CHECK(pthread_join(thread, NULL) == 0);
	CHECK(!by_node());
	SET(remote_handoffs_keep_numa, 0);
}

/* NUMA mode is also left if hand-overs do not stay within nodes. It is entered again later. */
static void check_doubts(void)
{
	SET(general_handoffs_turn_numa, 1);
	SET(remote_handoffs_turn_numa, 1);
	init(0);
	for (uint32_t times = 1; times <= 9; times++) {
		lw_fetch_or(&lock->word.val, LW_HQ_NUMA, relaxed);
		take_turns("0122");
		CHECK(!by_node() && doubts() == (times < 7 ? times : 7));
		CHECK_COUNTED(numa_mode_left, 1);
	}

	init(LW_HQ_DOUBT);
	take_turns("0101");
	CHECK(!by_node() && doubts() == 1);
	take_turns("01010");
	CHECK(by_node() && doubts() == 1);
	/* Most hand-overs stay within a node, which shows when a turn is over. */
	take_turns("0000");
	CHECK(by_node() && doubts() == 1);
	take_turns("00000000011");
	CHECK(by_node() && !doubts());

	/* Without contention there is one doubt less each time, until the fast path suffices. */
	init(2 * LW_HQ_DOUBT);
	for (uint32_t left = 2; left-- > 0;) {
		lock_once();
		CHECK(doubts() == left);
	}
}

/* The setting decides whether nodes are told apart. Off holds from the next hand-over. */
static void check_switch(void)
{
	SET(general_handoffs_turn_numa, 0);
	SET(remote_handoffs_turn_numa, 0);
	CHECK(lw_set_numa_spinlock(LW_NUMA_OFF) == 0);
	init(LW_HQ_NUMA);
	take_turns("0011");
	CHECK_COUNTED(numa_mode_left, 1);
	take_turns("0101");
	CHECK_COUNTED(numa_mode_entered, 0);
	CHECK(!by_node());

	CHECK(lw_set_numa_spinlock(LW_NUMA_ON) == 0);
	take_turns("0101");
	CHECK_COUNTED(numa_mode_entered, 1);

	SET(general_handoffs_turn_numa, NEVER);
	CHECK(lw_set_numa_spinlock(LW_NUMA_AUTO) == 0);
	take_turns("0011");
	CHECK(by_node());
	CHECK(lw_user_topology_parse("0-8000"));
	lock_once();
	CHECK(!by_node());
	be_on_node(0);
}

/* The waiters of the lock, and the order in which they acquire it, a digit each. */

static void *wait_for_lock(void *number)
{
	bool last;

	lw_hq_lock(lock);
	order[served++] = (char)('0' + (uintptr_t)number);
	last = served == waiting;
	lw_hq_unlock(lock);
	/* After the release no thread accesses the lock again. */
	if (last && lock != many)
		CHECK(munmap(lock, 1) == 0);
	return NULL;
}

/* Starts a waiter on this node, and waits until it has queued behind the last one. */
static void let_queue(uintptr_t number, int numa_node)
{
	uint32_t tail = tail_of(&lock->word);
	uint64_t waiters = by_node() ? waiters_of(&lock->word, numa_node) : 0;
	struct lw_node *last = waiters ? lw_decode_tail((uint32_t)waiters << LW_TAIL_SHIFT)
			       : tail  ? lw_decode_place(&lock->word, tail)
				       : NULL;

	be_on_node(numa_node);
	thread_start(&threads[number], 0, wait_for_lock, (void *)number);
	while (waiters ? waiters_of(&lock->word, numa_node) == waiters
		       : tail_of(&lock->word) == tail)
		usleep(100);
	while (last && !lw_load(&last->next, acquire))
		usleep(100);
}

/* Makes the lock busy and lets waiters queue on these nodes, one after the other. */
static void queue_up(const char *numa_nodes)
{
	start_counting();
	served = 0;
	waiting = strlen(numa_nodes);
	make_busy(&lock->word);
	for (size_t i = 0; i < waiting; i++)
		let_queue(i, numa_nodes[i] - '0');
}

static void run(const char *numa_nodes, const char *expected)
{
	queue_up(numa_nodes);
	serve(&lock->word, expected);
}

/* Waiters of a node acquire the lock in a row; nodes come in the order of their first waiters. */
static void check_order(void)
{
	init(0);
	run("01010", "01234");
	CHECK_COUNTED(node_queues_taken, 0);
	init(LW_HQ_NUMA);
	run("01010", "02413");
	CHECK_COUNTED(node_queues_taken, 2);
	CHECK_COUNTED(local_handoffs, 3);
	CHECK_COUNTED(remote_handoffs, 1);
	CHECK_COUNTED(fairness_handoffs, 0);
	CHECK_COUNTED(node_queue_conflicts, 0);

	/* The longest run counts for all threads, since the last restart. */
	lw_statistics_restart_maxima();
	run("0000100", "0123564");
	run("21020112", "03715624");
	CHECK(counted(LW_EVENT_longest_local_run) == 5);
	lw_statistics_restart_maxima();
	CHECK(counted(LW_EVENT_longest_local_run) == 0);

	/* Such a run ends while another node waits: the others queue again behind it. */
	SET(fairness_threshold, 1);
	run("01001", "02143");
	CHECK(since(LW_EVENT_fairness_handoffs) >= 1);
	SET(fairness_threshold, 0);
	run("0001", "0312");
	SET(fairness_threshold, 2);
	run("000000", "012345");
	CHECK_COUNTED(fairness_handoffs, 0);
	SET(fairness_threshold, NEVER);
}

/*
 * If the system refuses memory for the queues of a node, it is not asked again. Waiters of that
 * node then have places of their own.
 */
static void without_memory(void *arg)
{
	(void)arg;
	most_mapped_bytes = mapped_bytes;
	errno = ENOTNAM;
	CHECK(!lw_node_queues(2) && errno == ENOTNAM);
	most_mapped_bytes = SIZE_MAX;
	init(LW_HQ_NUMA);
	run("0202", "0213");
	CHECK_COUNTED(node_queues_taken, 1);
	CHECK(!is_mapped(2));
}

/* After the release of the last thread the lock's memory may be gone. */
static void check_last_unmaps(void)
{
	for (int i = 0; i < 100; i++) {
		lock = mmap(NULL, 1, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		CHECK(lock != MAP_FAILED);
		init(LW_HQ_NUMA);
		run(i % 2 ? "00" : "01", "01");
	}
	lock = many;
}

/*
 * The forking thread holds the lock. The waiters, one with the pending bit, are not in the child,
 * where waiters have places of their own.
 */
static void child_goes_on(void *arg)
{
	(void)arg;
	CHECK((lw_load(&lock->word.val, relaxed) & LW_TAIL_MASK) >= LW_FIRST_QUEUE_TAIL);
	for (int node = 0; node < NODES; node++)
		CHECK(!lw_node_queues((uint32_t)node));
	lw_hq_unlock(lock);
	lock_once();
	CHECK(lw_word_is_free(lw_load(&lock->word.val, relaxed)));
	run("01010", "01234");
	CHECK_COUNTED(node_queues_taken, 0);
}

static void check_fork(void)
{
	init(LW_HQ_NUMA);
	queue_up("00110");
	CHECK(in_child(child_goes_on, NULL) == 0);
	serve(&lock->word, "01423");
}

int main(void)
{
	init(0);
	be_on_node(0);
	SET(remote_handoffs_keep_numa, 0);
	SET(fairness_threshold, NEVER);
	check_pool();
	CHECK(in_child(tails_differ, NULL) == 0);
	check_identity();
	check_entering();
	check_leaving();
	check_doubts();
	check_switch();
	/* While no queues of node 2 are mapped. */
	CHECK(in_child(without_memory, NULL) == 0);
	check_order();
	check_last_unmaps();
	check_fork();
	return 0;
}
