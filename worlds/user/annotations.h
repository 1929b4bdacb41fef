/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What tools that look for data races are told of the operations: which of them order what one
 * thread did before and another does after, and that they are in no race themselves. Nothing
 * unless compiled for such a tool, so that a lock costs the same:
 *
 *   -DLW_VALGRIND      helgrind and DRD, to which every access is a plain one
 *   -fsanitize=thread  ThreadSanitizer, which sees atomics, but not fences
 *
 * A read-modify-write that orders at all is told as ordering both ways, for it may have a fence
 * beside it, which is not told.
 */
#ifndef LW_USER_ANNOTATIONS_H
#define LW_USER_ANNOTATIONS_H

#ifdef __has_feature
#define LW_HAS_FEATURE(feature) __has_feature(feature)
#else
#define LW_HAS_FEATURE(feature) 0
#endif

#if defined(LW_VALGRIND)
#include <valgrind/helgrind.h>
#include <valgrind/drd.h> /* second, so that each has its own way to ignore a race */
/* Both look at the memory again once it has been freed. */
#define LW_TELL_ATOMIC(p)                                        \
	do {                                                     \
		VALGRIND_HG_DISABLE_CHECKING(p, sizeof(*(p)));   \
		ANNOTATE_BENIGN_RACE_SIZED(p, sizeof(*(p)), ""); \
	} while (0)
#define LW_TELL_BEFORE(p) ANNOTATE_HAPPENS_BEFORE(p)
#define LW_TELL_AFTER(p)  ANNOTATE_HAPPENS_AFTER(p)
#elif defined(__SANITIZE_THREAD__) || LW_HAS_FEATURE(thread_sanitizer)
#ifdef __cplusplus
extern "C" {
#endif
void __tsan_acquire(void *address);
void __tsan_release(void *address);
#ifdef __cplusplus
}
#endif
#define LW_TELL_ATOMIC(p) ((void)0)
#define LW_TELL_BEFORE(p) __tsan_release((void *)(p))
#define LW_TELL_AFTER(p)  __tsan_acquire((void *)(p))
#endif

#ifdef LW_TELL_ATOMIC
#define LW_ORDERS_relaxed    0
#define LW_ORDERS_acquire    1
#define LW_ORDERS_dependency 1
#define LW_ORDERS_release    1
#define LW_ORDERS_acq_rel    1
#define LW_ORDERS_seq_cst    1

#define LW_TOLD_READ(p, order, read)      \
	__extension__({                   \
		__typeof__(read) lw_was;  \
		LW_TELL_ATOMIC(p);        \
		lw_was = (read);          \
		if (LW_ORDERS_##order)    \
			LW_TELL_AFTER(p); \
		lw_was;                   \
	})
#define LW_TOLD_WRITE(p, order, write)     \
	__extension__({                    \
		LW_TELL_ATOMIC(p);         \
		if (LW_ORDERS_##order)     \
			LW_TELL_BEFORE(p); \
		write;                     \
	})
/* `taken`: has lw_was, what it gave, been read in order? */
#define LW_TOLD_BOTH(p, order, both, taken)       \
	__extension__({                           \
		__typeof__(both) lw_was;          \
		LW_TELL_ATOMIC(p);                \
		if (LW_ORDERS_##order)            \
			LW_TELL_BEFORE(p);        \
		lw_was = (both);                  \
		if (LW_ORDERS_##order && (taken)) \
			LW_TELL_AFTER(p);         \
		lw_was;                           \
	})
#else
#define LW_TOLD_READ(p, order, read)	    read
#define LW_TOLD_WRITE(p, order, write)	    write
#define LW_TOLD_BOTH(p, order, both, taken) both
#endif

#endif
