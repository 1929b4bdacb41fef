// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <threads.h>
#include <time.h>
#include <unistd.h>

#include "create.h"
#include "holder.h"
#include "steps.h"

struct lw_profile_steps *lw_profile_steps;

/* The time without a CPU since the last step, in units of 16 ns, and whether the thread slept. */
struct lw_away {
	uint64_t units;
	bool slept;
};

/* The blocks and the CPU time of this thread. */
struct lw_own_steps {
	struct lw_profile_block *block; /* NULL: none yet */
	uint64_t blocks;		/* that it has had */
	uint64_t used;			/* steps of this one */
	struct lw_away away;
	uint64_t at_ns, ran_ns; /* the time, and its CPU time, when it last asked for them */
	long slept;		/* how often it had waited in the kernel then */
	uint32_t held;		/* acquisitions without a release yet */
	bool is_full;		/* there is no other block */
	bool is_busy;		/* adds a step, which a signal handler may interrupt */
};

static __thread struct lw_own_steps lw_own_steps __attribute__((tls_model("initial-exec")));

/* Time without a CPU */

/* The part of the kernel's struct rseq that is used here. */
struct lw_rseq {
	uint32_t cpu_id_start, cpu_id;
	volatile uint64_t section; /* the address of a struct lw_rseq_section; 0: none */
};

/* A restartable sequence, as the kernel reads it. */
struct lw_rseq_section {
	uint32_t version, flags;
	uint64_t start, length, abort;
} lw_aligned(32);

/* The word before the address to continue at, which glibc has told the kernel. */
#ifdef __aarch64__
#define LW_RSEQ_SIGNATURE 0xd428bc00
#elif defined(__x86_64__)
#define LW_RSEQ_SIGNATURE 0x53053053
#endif

#ifdef LW_RSEQ_SIGNATURE
static const uint32_t lw_no_code[4] = {0, LW_RSEQ_SIGNATURE, 0, 0};

/* No thread is ever within it, so the kernel clears it of every thread that it switches out. */
static struct lw_rseq_section lw_no_section;
#endif

/* The place of struct rseq, from the thread pointer on. 0: glibc has none. */
static ptrdiff_t lw_rseq_at;

static void lw_rseq_find(void)
{
#ifdef LW_RSEQ_SIGNATURE
	const ptrdiff_t *at = dlsym(RTLD_DEFAULT, "__rseq_offset");
	const unsigned int *size = dlsym(RTLD_DEFAULT, "__rseq_size");

	lw_no_section.start = (uintptr_t)&lw_no_code[0];
	lw_no_section.length = 1;
	lw_no_section.abort = (uintptr_t)&lw_no_code[2];
	lw_rseq_at = at && size && *size ? *at : 0;
#endif
}

static inline struct lw_rseq *lw_rseq(void)
{
	return (struct lw_rseq *)((char *)__builtin_thread_pointer() + lw_rseq_at);
}

/* Does without, if the kernel does not clear it of a thread that sleeps. */
static void lw_rseq_try(void)
{
#ifdef LW_RSEQ_SIGNATURE
	const struct timespec pause = {0, 50000};

	for (int i = 0; i < 3 && lw_rseq_at; i++) {
		lw_rseq()->section = (uintptr_t)&lw_no_section;
		nanosleep(&pause, NULL);
		if (lw_rseq()->section == (uintptr_t)&lw_no_section) {
			lw_rseq()->section = 0;
			lw_rseq_at = 0;
		}
	}
#endif
}

/* Returns the number of this CPU. */
static inline uint16_t lw_cpu(void)
{
	return lw_rseq_at ? (uint16_t)lw_rseq()->cpu_id : UINT16_MAX;
}

/* Returns how often this thread has waited in the kernel. */
static long lw_slept(void)
{
	struct rusage usage;

	return getrusage(RUSAGE_THREAD, &usage) ? 0 : usage.ru_nvcsw;
}

/* Begins to measure the time without a CPU. */
static void lw_away_begin(struct lw_own_steps *own)
{
	own->at_ns = lw_profile_clock_ns(CLOCK_MONOTONIC);
	own->ran_ns = lw_profile_clock_ns(CLOCK_THREAD_CPUTIME_ID);
	own->slept = lw_slept();
}

/* Adds the time without a CPU since the last call, or since it was begun. */
static void lw_add_away(struct lw_own_steps *own)
{
	const struct lw_own_steps before = *own;
	uint64_t passed, ran;

	lw_away_begin(own);
	passed = own->at_ns - before.at_ns;
	ran = own->ran_ns - before.ran_ns;
	if (before.at_ns) {
		own->away.units += passed > ran ? (passed - ran) / 16 : 0;
		own->away.slept |= own->slept != before.slept;
	}
}

/*
 * Returns the time of a step, and adds the time without a CPU until then. If the thread is switched
 * out after the clock was read, the clock is read again, so that both are of the same step.
 */
static uint64_t lw_step_time(struct lw_own_steps *own)
{
	uint64_t now = lw_profile_now();
#ifdef LW_RSEQ_SIGNATURE
	if (!lw_rseq_at)
		return now;
	while (lw_unlikely(lw_rseq()->section != (uintptr_t)&lw_no_section)) {
		lw_rseq()->section = (uintptr_t)&lw_no_section;
		lw_add_away(own);
		now = lw_profile_now();
	}
#else
	(void)own;
#endif
	return now;
}

/* Steps */

/* Notes whether this thread has a real-time priority. */
static void lw_note_priority(void)
{
	const int policy = sched_getscheduler(0) & ~SCHED_RESET_ON_FORK;

	if (policy == SCHED_FIFO || policy == SCHED_RR || policy == SCHED_DEADLINE)
		lw_store(&lw_profile_steps->real_time, 1, relaxed);
}

/* Takes another block. Returns whether there is one. */
static bool lw_block_take(struct lw_own_steps *own, struct lw_profile *profile, uint64_t caller)
{
	struct lw_profile_steps *steps = lw_profile_steps;
	uint64_t taken = lw_fetch_add(&steps->blocks, 1, relaxed);
	struct lw_profile_block *block = &steps->block[taken];
	int saved = errno;

	/* Without room in memory, writing would end the process. */
	own->is_full = taken >= steps->most ||
		       (madvise(block, sizeof(*block), MADV_POPULATE_WRITE) && errno != EINVAL);
	errno = saved;
	if (own->is_full)
		return false;
	/* Of libraries that are loaded later, this finds those that lock often. */
	lw_profile_add_module_of(profile, caller);
	lw_note_priority();
	block->thread = lw_profile_self(profile);
	block->number = own->blocks++;
	own->block = block;
	own->used = 0;
	return true;
}

/* Takes another block, and counts the time for it as time without a CPU. */
static bool lw_take_room(struct lw_own_steps *own, struct lw_profile *profile, uint64_t caller)
{
	uint64_t begun;
	bool is_taken;

	if (own->is_full)
		return false;
	lw_step_time(own);
	begun = lw_profile_clock_ns(CLOCK_MONOTONIC);
	is_taken = lw_block_take(own, profile, caller);
	lw_away_begin(own);
	if (lw_rseq_at)
		own->away.units += (own->at_ns - begun) / 16;
	return is_taken;
}

/* Adds a step of a thread that is not adding one. Returns false if it is lost. */
static bool lw_step_write(struct lw_own_steps *own, struct lw_profile *profile,
			  enum lw_profile_step_kind kind, unsigned int flags, const void *object,
			  uint64_t caller)
{
	struct lw_profile_step *step;
	uint64_t now;

	if (lw_unlikely(!own->block || own->used == LW_PROFILE_BLOCK_STEPS) &&
	    !lw_take_room(own, profile, caller))
		return false;
	now = lw_step_time(own);
	if (now > lw_profile_steps->until)
		return true;
	step = &own->block->step[own->used++];
	step->time = now;
	step->object = (uintptr_t)object;
	step->caller = caller;
	step->away = own->away.units < UINT32_MAX ? (uint32_t)own->away.units : UINT32_MAX;
	step->flags = (uint8_t)(flags | (own->away.slept ? LW_PROFILE_STEP_SLEPT : 0));
	own->away = (struct lw_away){0, false};
	step->cpu = lw_cpu();
	if (kind == LW_STEP_ACQUIRES)
		own->held++;
	else if (kind == LW_STEP_RELEASES && own->held)
		own->held--;
	/* release: a step that has a kind is complete */
	lw_store(&step->kind, (uint8_t)kind, release);
	return true;
}

void lw_profile_add_step(enum lw_profile_step_kind kind, unsigned int flags, const void *object,
			 uint64_t caller)
{
	struct lw_profile *profile = lw_load(&lw_profile_own.record, acquire);
	struct lw_own_steps *own = &lw_own_steps;
	const uint64_t now = lw_profile_now();
	bool is_written = false;

	if (!profile || now < lw_profile_steps->from || now > lw_profile_steps->until)
		return;
	if (!own->is_busy) {
		own->is_busy = true;
		__atomic_signal_fence(__ATOMIC_SEQ_CST);
		is_written = lw_step_write(own, profile, kind, flags, object, caller);
		__atomic_signal_fence(__ATOMIC_SEQ_CST);
		own->is_busy = false;
	}
	if (!is_written)
		lw_fetch_add(&lw_profile_steps->lost, 1, relaxed);
}

/* With fewer steps left, a thread takes another block after a section. */
#define LW_STEPS_LEFT 64

void lw_profile_take_room(const void *caller)
{
	struct lw_profile *profile = lw_load(&lw_profile_own.record, acquire);
	struct lw_own_steps *own = &lw_own_steps;

	if (!profile || !own->block || own->used < LW_PROFILE_BLOCK_STEPS - LW_STEPS_LEFT ||
	    own->held || own->is_busy || own->is_full)
		return;
	own->is_busy = true;
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	lw_take_room(own, profile, (uintptr_t)caller);
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	own->is_busy = false;
}

/* The file */

/* Returns the number of blocks that the file may have. */
static uint64_t lw_blocks_most(void)
{
	const char *text = secure_getenv("LOCKWORKS_RECORD_BLOCKS");
	const uint64_t asked = text ? strtoull(text, NULL, 10) : 0;
	uint64_t most = asked && asked < LW_PROFILE_BLOCKS ? asked : LW_PROFILE_BLOCKS;
	struct rlimit limit;

	if (getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY) {
		const uint64_t room = limit.rlim_cur / sizeof(struct lw_profile_block);

		most = most < room ? most : room ? room - 1 : 0;
	}
	/* A quarter of the addresses: the program needs some. */
	if (getrlimit(RLIMIT_AS, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY) {
		const uint64_t room = limit.rlim_cur / 4 / sizeof(struct lw_profile_block);

		most = most < room ? most : room;
	}
	return most;
}

static struct lw_profile_steps *lw_steps_map(const char *path, uint64_t most)
{
	const size_t size =
		sizeof(struct lw_profile_steps) + (size_t)most * sizeof(struct lw_profile_block);
	int file = lw_profile_open(path, O_RDWR | O_CREAT | O_EXCL);
	void *at = MAP_FAILED;

	if (file < 0)
		return NULL;
	if (ftruncate(file, (off_t)size) == 0)
		at = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, file, 0);
	lw_profile_close(file);
	if (at != MAP_FAILED && madvise(at, 4096, MADV_POPULATE_WRITE) && errno != EINVAL) {
		munmap(at, size);
		at = MAP_FAILED;
	}
	if (at == MAP_FAILED)
		unlink(path);
	return at == MAP_FAILED ? NULL : at;
}

#define LW_TRIALS 512

static int lw_compare_times(const void *a, const void *b)
{
	const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

/* Returns the median time from every other step to the next, from the step `first` on. */
static uint64_t lw_median_time(const struct lw_profile_step *steps, int first)
{
	uint64_t times[LW_TRIALS / 2];
	int n = 0;

	for (int i = first; i + 1 < LW_TRIALS; i += 2)
		times[n++] = steps[i + 1].time - steps[i].time;
	qsort(times, (size_t)n, sizeof(times[0]), lw_compare_times);
	return times[n / 2];
}

/* Measures what the steps themselves take, and removes them. */
static void lw_steps_measure(struct lw_profile_steps *steps)
{
	static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
	struct lw_own_steps *own = &lw_own_steps;

	for (int i = 0; i < LW_TRIALS; i++) {
		pthread_mutex_lock(&mutex);
		pthread_mutex_unlock(&mutex);
	}
	if (own->used == 2 * LW_TRIALS) {
		/* The first half meets cold caches. */
		steps->empty_held = lw_median_time(own->block->step + LW_TRIALS, 0);
		steps->empty_apart = lw_median_time(own->block->step + LW_TRIALS, 1);
	}
	if (own->block)
		memset(own->block->step, 0, sizeof(own->block->step));
	own->used = 0;
}

/* Returns the time of the record that is this many milliseconds after its beginning. */
static uint64_t lw_time_after(const char *name, uint64_t otherwise)
{
	const char *text = secure_getenv(name);
	const uint64_t begin = lw_profile_clock_ns(CLOCK_MONOTONIC);
	const uint64_t time = lw_profile_now();
	uint64_t rate = 1000000, ms = text ? strtoull(text, NULL, 10) : 0, passed;

	if (!ms)
		return otherwise;
	if (lw_profile_own.has_tsc) {
		/* Ticks in a millisecond. The thread may lose its CPU meanwhile. */
		while ((passed = lw_profile_clock_ns(CLOCK_MONOTONIC) - begin) < 1000000) {
		}
		rate = (lw_profile_now() - time) * 1000000 / passed;
	}
	return time + ms * rate;
}

void lw_profile_steps_begin(const char *path_of_record)
{
	struct lw_profile_steps *steps;
	uint64_t most;
	char path[4096];

	if (!secure_getenv("LOCKWORKS_RECORD"))
		return;
	snprintf(path, sizeof(path), "%s.steps", path_of_record);
	most = lw_blocks_most();
	steps = most ? lw_steps_map(path, most) : NULL;
	if (!steps)
		return;
	lw_rseq_find();
	lw_rseq_try();
	steps->size = sizeof(struct lw_profile_block);
	steps->most = most;
	steps->knows_away = lw_rseq_at != 0;
	steps->until = UINT64_MAX;
	lw_profile_steps = steps;
	lw_steps_measure(steps);
	steps->from = lw_time_after("LOCKWORKS_RECORD_AFTER_MS", 0);
	steps->until = lw_time_after("LOCKWORKS_RECORD_UNTIL_MS", UINT64_MAX);
	steps->magic = LW_PROFILE_STEPS_MAGIC;
	lw_profile_step(LW_STEP_BEGINS, 0, NULL, NULL);
}

void lw_profile_steps_forget(void)
{
	struct lw_profile_steps *of_parent = lw_profile_steps;

	if (!of_parent)
		return;
	lw_profile_steps = NULL;
	munmap(of_parent,
	       sizeof(*of_parent) + (size_t)of_parent->most * sizeof(struct lw_profile_block));
	memset(&lw_own_steps, 0, sizeof(lw_own_steps));
}

/* Threads */

void lw_creates_thread(void)
{
}

void lw_thread_begins(const void *run)
{
	lw_profile_step(LW_STEP_BEGINS, 0, run, NULL);
}

void lw_thread_ends(void)
{
	if (lw_profile_steps)
		lw_note_priority();
	lw_profile_step(LW_STEP_ENDS, 0, NULL, NULL);
}

static int lw_yield(const void *caller)
{
	int error;

	lw_profile_step(LW_STEP_YIELDS, 0, NULL, caller);
	error = (int)syscall(SYS_sched_yield);
	lw_profile_step(LW_STEP_RETURNS, 0, NULL, NULL);
	return error;
}

LW_EXPORT int sched_yield(void)
{
	return lw_yield(__builtin_return_address(0));
}

LW_EXPORT void thrd_yield(void)
{
	lw_yield(__builtin_return_address(0));
}
