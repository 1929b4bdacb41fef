// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * The kernel accepts one rseq area of each thread. If the C library has registered its own, and in
 * the size that has the two bytes, we use that area. If the C library registers none, we register
 * ours, which the thread maps, and unmaps when it exits. Ours is no thread-local variable, because
 * the C library has little room for those of a library that is loaded late.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "settings.h"
#include "slice.h"
#include "slots.h"

/* From Linux' headers, which may be older than the kernel that we run on. */
#ifndef AT_RSEQ_FEATURE_SIZE
#define AT_RSEQ_FEATURE_SIZE 27
#endif
#ifndef PR_RSEQ_SLICE_EXTENSION
#define PR_RSEQ_SLICE_EXTENSION	    79
#define PR_RSEQ_SLICE_EXTENSION_GET 1
#define PR_RSEQ_SLICE_EXTENSION_SET 2
#define PR_RSEQ_SLICE_EXT_ENABLE    1
#endif
#ifndef SYS_rseq_slice_yield
#define SYS_rseq_slice_yield 471
#endif

/* The offsets of both bytes in the kernel's struct rseq, and the size that never has them. */
#define LW_RSEQ_REQUEST	 28
#define LW_RSEQ_GRANTED	 29
#define LW_RSEQ_OLD_SIZE 32

/* No code of ours is a restartable sequence, so any signature will do. This is that of glibc. */
#define LW_RSEQ_SIGNATURE 0x53053053

/* A flag of the system call */
#define LW_RSEQ_UNREGISTER 1

struct lw_slice {
	volatile uint8_t *rseq; /* the area; NULL if this thread cannot ask */
	bool is_own;		/* the area is ours */
	bool is_tried;
	bool asks;
};
static __thread struct lw_slice lw_slice __attribute__((tls_model("initial-exec")));

/* glibc 2.35 and later. */
extern const unsigned int __rseq_size __attribute__((weak));

/*
 * Maps an area and registers it. Returns NULL and sets `why` if that is not possible, and only NULL
 * if we would not learn when the thread exits.
 */
static uint8_t *lw_own_area(const char **why)
{
	const unsigned long size = getauxval(AT_RSEQ_FEATURE_SIZE);
	uint8_t *area;

	if (lw_user_thread.exiting || !lw_user_hook_exit(false))
		return NULL;
	area = lw_user_map(size);
	if (area) {
		lw_slice.is_own =
			syscall(SYS_rseq, area, (uint32_t)size, 0, LW_RSEQ_SIGNATURE) == 0;
		if (lw_slice.is_own)
			return area;
		munmap(area, size);
	}
	*why = "the kernel does not register rseq, or another library has done so";
	return NULL;
}

void lw_slice_thread_exit(void)
{
	const unsigned long size = getauxval(AT_RSEQ_FEATURE_SIZE);
	uint8_t *area = (uint8_t *)lw_slice.rseq;

	if (!lw_slice.is_own)
		return;
	lw_slice.rseq = NULL;
	lw_slice.is_own = lw_slice.asks = false;
	lw_barrier();
	if (syscall(SYS_rseq, area, (uint32_t)size, LW_RSEQ_UNREGISTER, LW_RSEQ_SIGNATURE) == 0)
		munmap(area, size);
}

/* Finds or registers the area of this thread. Returns NULL if there can be none, as above. */
static volatile uint8_t *lw_rseq_area(const char **why)
{
	const unsigned int registered = &__rseq_size ? __rseq_size : 0;

	if (registered > LW_RSEQ_OLD_SIZE)
		return (volatile uint8_t *)lw_user_thread_pointer() + lw_rseq_offset;
	if (registered) {
		*why = "the C library has registered rseq as kernels before 7.0 have it; set "
		       "GLIBC_TUNABLES=glibc.pthread.rseq=0";
		return NULL;
	}
	return lw_own_area(why);
}

/* Has the kernel accept requests of this thread. Returns NULL if it does not, as above. */
static volatile uint8_t *lw_slice_enable(const char **why)
{
	volatile uint8_t *area;

	if (prctl(PR_RSEQ_SLICE_EXTENSION, PR_RSEQ_SLICE_EXTENSION_GET, 0, 0, 0) < 0) {
		*why = "it takes Linux 7.0 or later, with CONFIG_RSEQ_SLICE_EXTENSION";
		return NULL;
	}
	area = lw_rseq_area(why);
	if (area && prctl(PR_RSEQ_SLICE_EXTENSION, PR_RSEQ_SLICE_EXTENSION_SET,
			  PR_RSEQ_SLICE_EXT_ENABLE, 0, 0) != 0) {
		*why = "the kernel was booted with rseq_slice_ext=off";
		return NULL;
	}
	return area;
}

/* Tries to let this thread ask. The first thread that cannot says why, and ends the requests of
 * all. */
static lw_noinline void lw_slice_start(void)
{
	static lw_atomic(bool) is_reported;
	const int saved = errno;
	const char *why = NULL;

	lw_slice.is_tried = true;
	lw_slice.rseq = lw_slice_enable(&why);
	if (why) {
		lw_user_set_slices(false);
		if (!lw_xchg(&is_reported, true, relaxed))
			lw_user_write_line("lockworks: no time slice extensions: %s\n", why);
	}
	errno = saved;
}

void lw_slice_request_slow(void)
{
	if (lw_unlikely(!lw_slice.is_tried))
		lw_slice_start();
	if (!lw_slice.rseq || lw_slice.asks)
		return;
	lw_slice.asks = true;
	lw_slice.rseq[LW_RSEQ_REQUEST] = 1;
	lw_barrier();
}

/* Gives the CPU back. Returns whether that was in time. */
static bool lw_slice_yield(void)
{
	const int saved = errno;
	const bool in_time = syscall(SYS_rseq_slice_yield) == 1;

	errno = saved;
	return in_time;
}

void lw_slice_end_slow(void)
{
	bool granted, in_time = false;

	if (!lw_slice.asks)
		return;
	lw_barrier();
	lw_slice.asks = false;
	granted = !lw_slice.rseq[LW_RSEQ_REQUEST];
	lw_slice.rseq[LW_RSEQ_REQUEST] = 0;
	if (lw_slice.rseq[LW_RSEQ_GRANTED]) {
		granted = true;
		in_time = lw_slice_yield();
	}
	if (!granted)
		return;
	lw_user_count(LW_EVENT_slices_granted, 1);
	if (in_time)
		lw_user_count(LW_EVENT_slices_yielded, 1);
	else
		lw_user_count(LW_EVENT_slices_expired, 1);
}
