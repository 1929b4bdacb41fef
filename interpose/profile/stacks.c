// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#define _GNU_SOURCE
#include <errno.h>
#include <sys/uio.h>
#include <unistd.h>

#include <lockworks/lockworks.h>

#include "stacks.h"

/* The pages of a stack are mapped as a whole, so a copy that ends early ends between two of them.
 */
#define LW_STACK_PAGE 4096

/*
 * Copies the stack from here on. The system call copies as far as there is memory, so the end of
 * the stack need not be known; it works on any stack, also of coroutines and signal handlers.
 */
static __attribute__((noinline)) void lw_frames_copy(struct lw_profile_frames *frames)
{
	uint64_t code, stack, frame;
	struct iovec to = {frames->word, sizeof(frames->word)};
	struct iovec from[2];
	const int saved = errno;
	ssize_t got;

	/* All registers that a caller may need are on the stack then. */
	__builtin_unwind_init();
#if defined(__x86_64__)
	__asm__ volatile("lea 0(%%rip), %0\n\tmov %%rsp, %1\n\tmov %%rbp, %2"
			 : "=&r"(code), "=&r"(stack), "=&r"(frame));
#elif defined(__aarch64__)
	__asm__ volatile("adr %0, .\n\tmov %1, sp\n\tmov %2, x29"
			 : "=&r"(code), "=&r"(stack), "=&r"(frame));
#elif defined(__riscv)
	__asm__ volatile("auipc %0, 0\n\tmv %1, sp\n\tmv %2, s0"
			 : "=&r"(code), "=&r"(stack), "=&r"(frame));
#else
	return;
#endif
	from[0].iov_base = (void *)(uintptr_t)stack;
	from[0].iov_len = LW_STACK_PAGE - stack % LW_STACK_PAGE;
	if (from[0].iov_len > to.iov_len)
		from[0].iov_len = to.iov_len;
	from[1].iov_base = (void *)(uintptr_t)(stack + from[0].iov_len);
	from[1].iov_len = to.iov_len - from[0].iov_len;
	got = process_vm_readv(getpid(), &to, 1, from, 2, 0);
	errno = saved;
	frames->code = code;
	frames->stack = stack;
	frames->frame = frame;
	frames->words = got > 0 ? (uint64_t)got / sizeof(frames->word[0]) : 0;
}

/*
 * Returns how many acquisitions the `nth` of them stands for in the sample. 0: it is not in it. The
 * sample has the first eight, and eight of each doubling of their number.
 */
static uint64_t lw_stands_for(uint64_t nth)
{
	const int bits = 63 - __builtin_clzll(nth | 1);
	const uint64_t step = bits > 3 ? UINT64_C(1) << (bits - 3) : 1;

	return nth % step ? 0 : step;
}

/*
 * Of acquisitions that are not contended the first, the 64th, the 4096th and so on are in the
 * sample. They show whether others use the lock at the site.
 */
static bool lw_is_rare(uint64_t nth)
{
	return nth && !(nth & (nth - 1)) && __builtin_ctzll(nth) % 6 == 0;
}

uint32_t lw_profile_stack_acquired(struct lw_profile *profile, const struct lw_profile_site *site,
				   uint64_t waited)
{
	const uint64_t contended = lw_load(&site->contended.n, relaxed);
	uint64_t stands_for, taken;
	struct lw_profile_stack *stack;

	if (waited)
		stands_for = lw_stands_for(contended);
	else
		stands_for = lw_is_rare(lw_load(&site->acquisitions.n, relaxed));
	/* The longest wait so far is of interest by itself. */
	if (!stands_for && waited && waited == lw_load(&site->waited_max.n, relaxed))
		stands_for = 1;
	/* A quarter is for the contended. */
	taken = lw_load(&profile->stacks, relaxed);
	if (!stands_for || taken >= (waited ? LW_PROFILE_STACKS : LW_PROFILE_STACKS / 4 * 3))
		return 0;
	taken = lw_fetch_add(&profile->stacks, 1, relaxed);
	if (taken >= LW_PROFILE_STACKS)
		return 0;
	stack = &profile->stack[taken];
	if (!lw_profile_has(profile, stack, sizeof(*stack)))
		return 0;
	lw_frames_copy(&stack->acquired);
	stack->waited = waited;
	stack->stands_for = stands_for;
	/* release: the copy */
	lw_store(&stack->site, (uint64_t)(site - profile->site) + 1, release);
	return (uint32_t)taken + 1;
}

void lw_profile_stack_released(struct lw_profile *profile, uint32_t number)
{
	if (number)
		lw_frames_copy(&profile->stack[number - 1].released);
}
