// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * The slot table and its free list.
 *
 * The state of the list is one 64-bit word, so each step is one compare-and-swap. The list is
 * lock-free and safe in signal handlers, and it shows at once that no slot is free. Slots that were
 * never used are not on the list but counted: zero bytes are their initial state, and they may have
 * no memory yet.
 *
 *   bits  0-15  first free slot; 0 if there is none
 *   bits 16-31  number of slots ever used
 *   bits 32-63  number of changes, so that a list that was changed and changed back differs (ABA)
 */
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "forked_child.h"
#include "slice.h"

_Static_assert(LW_MAX_SLOTS <= UINT16_MAX, "a slot number fits the free list");
_Static_assert(sizeof(struct lw_node) == 64, "a queue node fills one cache line");
__thread struct lw_user_thread lw_user_thread __attribute__((tls_model("initial-exec")));
bool lw_user_is_forked;

static struct lw_user_block lw_first_block;

_Static_assert(sizeof(struct lw_node[LW_NODES_PER_SLOT]) == sizeof(lw_first_block.nodes[0]) &&
		       sizeof(struct lw_read[LW_READS_PER_SLOT]) ==
			       sizeof(lw_first_block.reads[0]) &&
		       sizeof(struct lw_held) <= sizeof(lw_first_block.held[0]),
	       "a block has room for what its slots have");

struct lw_user_block_of lw_user_blocks[LW_MAX_SLOTS / LW_BLOCK_SLOTS + 1] = {
	{{&lw_first_block}},
};

static struct lw_parked_head lw_parked_heads_table[1 << LW_USER_PARKED_HEADS_BITS];
struct lw_parked_head *const lw_user_parked_heads = lw_parked_heads_table;

static lw_atomic(uint64_t) lw_slot_list;
static lw_atomic(uint16_t) lw_slot_next[LW_MAX_SLOTS + 1];

static inline uint32_t lw_list_first(uint64_t list)
{
	return list & 0xffff;
}

static inline uint32_t lw_list_used(uint64_t list)
{
	return list >> 16 & 0xffff;
}

static inline uint64_t lw_list_make(uint64_t old, uint32_t first, uint32_t used)
{
	return ((old >> 32) + 1) << 32 | (uint64_t)used << 16 | first;
}

/*
 * The number of slots in each block that are not free. A slot is counted before its thread can
 * announce a reader in it. A writer that finds none in a block is in the lock already, and readers
 * that take a slot of the block later will find it there.
 */
static struct {
	lw_atomic(uint16_t) slots;
} lw_taken[LW_MAX_SLOTS / LW_BLOCK_SLOTS + 1];

uint32_t lw_user_next_slot(uint32_t slot)
{
	slot++;
	/* acquire: what readers did that have returned their slots; seq_cst: see lw_slot_pop() */
	while (slot % LW_BLOCK_SLOTS == 0 && slot <= LW_MAX_SLOTS &&
	       !lw_load(&lw_taken[slot / LW_BLOCK_SLOTS].slots, seq_cst))
		slot += LW_BLOCK_SLOTS;
	return slot;
}

uint32_t lw_user_slots(void)
{
	return lw_list_used(lw_load(&lw_slot_list, seq_cst));
}

void *lw_user_map(size_t size)
{
	int saved = errno;
	void *memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	errno = saved;
	return memory == MAP_FAILED ? NULL : memory;
}

/* Has the block of the slot exist. Returns false if there is no memory for it. */
static bool lw_block_make(uint32_t slot)
{
	struct lw_user_block *block = lw_user_block(slot), *others = NULL;

	if (block)
		return true;
	block = lw_user_map(sizeof(*block));
	if (!block)
		return false;
	if (!lw_try_cmpxchg(&lw_user_blocks[slot / LW_BLOCK_SLOTS].mapped, &others, block, acq_rel))
		munmap(block, sizeof(*block));
	return true;
}

static uint32_t lw_slot_pop(void)
{
	uint64_t list = lw_load(&lw_slot_list, relaxed), now;
	uint32_t slot;

	do {
		uint32_t used = lw_list_used(list);

		/* Pairs with the release of lw_slot_push(): we see the links of this list. */
		lw_fence(acquire);

		slot = lw_list_first(list);
		if (slot) {
			now = lw_list_make(list, lw_load(&lw_slot_next[slot], relaxed), used);
		} else {
			if (used == LW_MAX_SLOTS)
				return 0;
			slot = used + 1;
			if (!lw_block_make(slot))
				return 0;
			now = lw_list_make(list, 0, slot);
		}
		/*
		 * acquire: we see what the last owner wrote to the slot; seq_cst: see lw_slots()
		 */
	} while (!lw_try_cmpxchg(&lw_slot_list, &list, now, seq_cst));
	/* seq_cst: see lw_taken */
	lw_fetch_add(&lw_taken[slot / LW_BLOCK_SLOTS].slots, 1, seq_cst);
	return slot;
}

static void lw_slot_push(uint32_t slot)
{
	uint64_t list = lw_load(&lw_slot_list, relaxed), now;

	/* release: a writer that leaves the block out sees what our reader did */
	lw_fetch_add(&lw_taken[slot / LW_BLOCK_SLOTS].slots, (uint16_t)-1, release);
	do {
		lw_store(&lw_slot_next[slot], (uint16_t)lw_list_first(list), relaxed);
		now = lw_list_make(list, slot, lw_list_used(list));
	} while (!lw_try_cmpxchg(&lw_slot_list, &list, now, acq_rel));
}

void lw_user_look_up_class(void)
{
	int saved = errno;
	/* The system call, since musl's function always fails. */
	int policy = (int)syscall(SYS_sched_getscheduler, 0) & ~SCHED_RESET_ON_FORK;

	errno = saved;
	lw_user_thread.realtime =
		policy == SCHED_FIFO || policy == SCHED_RR || policy == SCHED_DEADLINE;
	lw_user_thread.class_known = true;
	if (!lw_user_thread.priority_declared)
		lw_user_thread.priority = lw_user_thread.realtime;
}

/* The thread's slot has changed, or is attached now. */
static void lw_user_slot_changed(void)
{
	bool keeps = lw_user_thread.attached && lw_user_thread.slot;

	lw_user_thread.reads = keeps ? lw_slot_reads(lw_user_thread.slot) : NULL;
	lw_user_thread.held = keeps ? lw_slot_held(lw_user_thread.slot) : NULL;
}

bool lw_user_slot_attach(bool may_allocate)
{
	if (!lw_user_thread.attached && lw_user_thread.slot && !lw_user_thread.exiting)
		lw_user_thread.attached = lw_user_hook_exit(may_allocate);
	lw_user_slot_changed();
	return lw_user_thread.attached;
}

uint32_t lw_user_slot_take(void)
{
	uint32_t slot = lw_slot_pop();
	uint32_t none = 0;

	if (!slot)
		return 0;
	if (!__atomic_compare_exchange_n(&lw_user_thread.slot, &none, slot, false, __ATOMIC_RELAXED,
					 __ATOMIC_RELAXED)) {
		/* A signal handler has taken one meanwhile. We keep it, since depth is not 0. */
		lw_slot_push(slot);
		return none;
	}
	if (!lw_user_thread.class_known)
		lw_user_look_up_class();
	lw_user_slot_attach(false);
	return slot;
}

/* While the slot is neither ours nor free, depth is not 0, so lw_fork_child() can tell. */
void lw_user_slot_give_back(void)
{
	uint32_t slot;

	while ((slot = lw_user_thread.slot) != 0) {
		lw_user_thread.depth++;
		lw_barrier();
		/* One step, because a signal handler may have returned the slot just before. */
		slot = __atomic_exchange_n(&lw_user_thread.slot, 0, __ATOMIC_RELAXED);
		if (slot)
			lw_slot_push(slot);
		lw_barrier();
		lw_user_thread.depth--;
		/* A signal handler may have taken a slot while depth was not 0. Check again. */
		lw_barrier();
	}
}

void lw_user_slot_restore(uint32_t slot)
{
	/* A signal handler may have taken another slot meanwhile. */
	uint32_t other = __atomic_exchange_n(&lw_user_thread.slot, slot, __ATOMIC_RELAXED);

	if (other)
		lw_slot_push(other);
	lw_user_slot_changed();
}

/* The number of abandoned slots. It can be -1, if a slot is reclaimed before it is counted. */
static lw_atomic(int32_t) lw_abandoned;

void lw_user_slot_abandoned(void)
{
	lw_fetch_add(&lw_abandoned, 1, relaxed);
}

/* Does the thread read a lock, or has it entered one, so that it keeps its slot? */
static bool lw_user_slot_is_needed(void)
{
	return !lw_reads_none(lw_slot_reads(lw_user_thread.slot)) ||
	       lw_held_count(lw_slot_held(lw_user_thread.slot));
}

bool lw_user_slot_may_be_abandoned(void)
{
	if (lw_user_slot_is_needed())
		return false;
	/* Otherwise cancelled waits could take all slots from the threads that still wait. */
	return lw_load(&lw_abandoned, relaxed) < (int32_t)(LW_MAX_SLOTS / 2);
}

void lw_user_slot_reclaim(uint32_t slot)
{
	lw_fetch_add(&lw_abandoned, -1, relaxed);
	lw_slot_push(slot);
}

void lw_user_thread_exit(void)
{
	lw_user_thread.exiting = true;
	lw_slice_thread_exit();
	/* A thread that still reads a lock, or has entered one, keeps its slot for good. */
	if (lw_user_slot_is_needed())
		return;
	lw_store(&lw_slot_reads(lw_user_thread.slot)->unnoted, 0, relaxed);
	lw_user_thread.reads = NULL;
	lw_user_thread.held = NULL;
	lw_user_thread.attached = false;
	/*
	 * This returns the slot, unless the thread ended inside a slow path: other threads may
	 * still find its queue nodes then, so the slot is never used again.
	 */
	lw_user_slot_enter();
	lw_user_slot_leave();
}

/*
 * In the child of a fork only the forking thread is left, so all slots but its own are free or
 * retired. No slot becomes free if the thread forked in a signal handler that interrupted a slow
 * path: a slot may then be neither on the list nor the thread's. Abandoned slots are in queues, so
 * they are retired, and none is abandoned any more.
 */
static void lw_fork_child(void)
{
	uint32_t used = lw_list_used(lw_load(&lw_slot_list, relaxed));
	bool idle = lw_user_thread.depth == 0, retired;

	lw_user_is_forked = true;
	if (idle) {
		lw_store(&lw_slot_list, lw_list_make(0, 0, used), relaxed);
		/* All are taken, up to number 0, until they are pushed. */
		for (uint32_t slot = 1; slot <= used; slot++)
			lw_store(&lw_taken[slot / LW_BLOCK_SLOTS].slots,
				 (uint16_t)(slot % LW_BLOCK_SLOTS + (slot >= LW_BLOCK_SLOTS)),
				 relaxed);
	}
	retired = lw_forked_slots(used, lw_user_thread.slot, idle ? lw_slot_push : NULL);
	lw_store(&lw_abandoned, 0, relaxed);
	lw_store(&lw_user_pausing.threads, 0, relaxed);
	if (retired) {
		lw_user_node_queues_end();
		lw_forked_empty_parked_heads(idle ? NULL : lw_slot_nodes(lw_user_thread.slot));
	}
}

__attribute__((constructor(101))) static void lw_slots_start(void)
{
	pthread_atfork(NULL, NULL, lw_fork_child);
}

void lw_user_count_slow(enum lw_event event, uint64_t n)
{
	if (lw_user_slot_enter())
		lw_user_count(event, n);
	else
		lw_fetch_add(&lw_user_counts(0)->events[event], n, relaxed);
	lw_user_slot_leave();
}
