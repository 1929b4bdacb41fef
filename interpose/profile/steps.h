/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The steps of threads: for `lockworks record`, all that each thread does with locks and
 * conditions, in its order. crates/profile/src/recording/ reads them.
 *
 * They are in a second file in shared memory, beside the record. The file has blocks; a thread
 * takes a block for itself, fills it, and takes another one. So what a thread writes within a
 * critical section is on lines that no other thread uses, and the file is complete however the
 * process ends.
 *
 * A step says how long the thread had no CPU since the step before: it waited in the kernel, or
 * another thread had the CPU. The kernel clears the restartable sequence (rseq) of a thread that
 * it switches out. So a thread sets one that does nothing, and only if that is gone it asks the
 * kernel for its CPU time.
 */
#ifndef LW_PROFILE_STEPS_H
#define LW_PROFILE_STEPS_H

#include "record.h"

#define LW_PROFILE_STEPS_MAGIC 0x316b6f4c
#define LW_PROFILE_BLOCK_STEPS 2047
#define LW_PROFILE_BLOCKS      16384 /* the most that a file has: 1 GiB */

/* 0 is none. */
enum lw_profile_step_kind {
	LW_STEP_BEGINS =
		1,	  /* the thread; the object is the function that it runs, 0 of the first */
	LW_STEP_ENDS,	  /* the thread */
	LW_STEP_WAITS,	  /* for a lock that another thread has */
	LW_STEP_ACQUIRES, /* a lock */
	LW_STEP_FAILS,	  /* to acquire a lock, without a wait or until a deadline */
	LW_STEP_RELEASES, /* a lock */
	LW_STEP_AWAITS,	  /* begins to wait for a condition, before it releases the mutex */
	LW_STEP_WOKEN,	  /* of a condition, with the mutex: the next step acquires it */
	LW_STEP_EXPIRED,  /* the same, at the deadline */
	LW_STEP_SIGNALS,  /* a condition */
	LW_STEP_BROADCASTS,
	LW_STEP_RETURNS, /* from the call of the step before, in which it may have woken another */
	LW_STEP_YIELDS,	 /* lets other threads have the CPU, until it returns */
};

/* A further kind, which is not in the file of a recording: a call initialises a mutex. */
#define LW_PROFILE_STEP_INITIALISES 255

/* Bits of a step's flags: the mode of a lock, why the thread had no CPU, and how it acquired. */
#define LW_PROFILE_STEP_MODE  3
#define LW_PROFILE_STEP_SLEPT 4 /* it waited in the kernel */
#define LW_PROFILE_STEP_TRIED 8 /* a trylock acquired it */

struct lw_profile_step {
	uint64_t time;
	uint64_t object; /* the address of the lock or of the condition */
	uint64_t caller; /* return address of the call */
	uint32_t away;	 /* time without a CPU since the last step, in units of 16 ns */
	uint16_t cpu;	 /* the CPU's number; 65535: not known */
	uint8_t flags;
	lw_atomic(uint8_t) kind; /* written last */
};

struct lw_profile_block {
	uint64_t thread; /* number of the thread, from 1 */
	uint64_t number; /* of the block among those of the thread, from 0 */
	uint64_t unused[2];
	struct lw_profile_step step[LW_PROFILE_BLOCK_STEPS];
};

struct lw_profile_steps {
	uint64_t magic, size;	       /* size of a block */
	uint64_t from, until;	       /* the time that is recorded */
	uint64_t knows_away;	       /* whether the time without a CPU is known */
	lw_atomic(uint64_t) real_time; /* whether a thread had a real-time priority */
	uint64_t most;		       /* blocks that the file has room for */
	lw_atomic(uint64_t) blocks;    /* that were asked for */
	lw_atomic(uint64_t) lost;      /* steps that did not fit */
	/* The time from a free mutex' acquisition to its release, and back, of a thread that does
	 * nothing else: what the recording adds. */
	uint64_t empty_held, empty_apart;
	uint64_t unused[8181];
	struct lw_profile_block block[];
};

/* The steps of this process. NULL: they are not recorded. */
extern struct lw_profile_steps *lw_profile_steps __attribute__((visibility("hidden")));

/* Begins the steps of this process, in a file beside its record. */
void lw_profile_steps_begin(const char *path_of_record);

/* Ends them, in a process that has just been forked. */
void lw_profile_steps_forget(void);

/* Adds a step of this thread. `flags` has the mode of the lock, and may have the bit `TRIED`. */
void lw_profile_add_step(enum lw_profile_step_kind kind, unsigned int flags, const void *object,
			 uint64_t caller);

/* The same, if steps are recorded. */
static inline void lw_profile_step(enum lw_profile_step_kind kind, unsigned int flags,
				   const void *object, const void *caller)
{
	if (lw_unlikely(lw_profile_steps != NULL))
		lw_profile_add_step(kind, flags, object, (uintptr_t)caller);
}

/*
 * Takes room for further steps if there is little, and this thread holds no lock: that takes long,
 * and within a section other threads would wait.
 */
void lw_profile_take_room(const void *caller);

#endif
