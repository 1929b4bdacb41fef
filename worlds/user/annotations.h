/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Annotations for tools that search for data races. They report to the tool which operations order
 * the accesses of one thread before those of another, and that the operations themselves do not
 * race. They compile to nothing unless the code is compiled for such a tool:
 *
 *   -DLW_VALGRIND      helgrind and DRD, for which every access is a plain one
 *   -fsanitize=thread  ThreadSanitizer, which understands atomics but not fences
 *
 * The tools do not learn of fences. A fence may make an acquire of what is only a release, or the
 * reverse. So a read-modify-write that has any order is reported as both acquire and release.
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
#include <valgrind/drd.h> /* after helgrind.h, so that each tool has its own way to ignore a race */
/* Both tools check the memory again after it has been freed. */
#define LW_REPORT_ATOMIC(p)                                      \
	do {                                                     \
		VALGRIND_HG_DISABLE_CHECKING(p, sizeof(*(p)));   \
		ANNOTATE_BENIGN_RACE_SIZED(p, sizeof(*(p)), ""); \
	} while (0)
#define LW_REPORT_BEFORE(p) ANNOTATE_HAPPENS_BEFORE(p)
#define LW_REPORT_AFTER(p)  ANNOTATE_HAPPENS_AFTER(p)
#elif defined(__SANITIZE_THREAD__) || LW_HAS_FEATURE(thread_sanitizer)
#ifdef __cplusplus
extern "C" {
#endif
void __tsan_acquire(void *address);
void __tsan_release(void *address);
#ifdef __cplusplus
}
#endif
#define LW_REPORT_ATOMIC(p) ((void)0)
#define LW_REPORT_BEFORE(p) __tsan_release((void *)(p))
#define LW_REPORT_AFTER(p)  __tsan_acquire((void *)(p))
#endif

#ifdef LW_REPORT_ATOMIC
#define LW_ORDERS_relaxed    0
#define LW_ORDERS_acquire    1
#define LW_ORDERS_dependency 1
#define LW_ORDERS_release    1
#define LW_ORDERS_acq_rel    1
#define LW_ORDERS_seq_cst    1

#define LW_REPORTED_READ(p, order, read)    \
	__extension__({                     \
		__typeof__(read) lw_was;    \
		LW_REPORT_ATOMIC(p);        \
		lw_was = (read);            \
		if (LW_ORDERS_##order)      \
			LW_REPORT_AFTER(p); \
		lw_was;                     \
	})
#define LW_REPORTED_WRITE(p, order, write)   \
	__extension__({                      \
		LW_REPORT_ATOMIC(p);         \
		if (LW_ORDERS_##order)       \
			LW_REPORT_BEFORE(p); \
		write;                       \
	})
/* `taken`, which may use the result lw_was: whether the operation has acquire order. */
#define LW_REPORTED_BOTH(p, order, both, taken)   \
	__extension__({                           \
		__typeof__(both) lw_was;          \
		LW_REPORT_ATOMIC(p);              \
		if (LW_ORDERS_##order)            \
			LW_REPORT_BEFORE(p);      \
		lw_was = (both);                  \
		if (LW_ORDERS_##order && (taken)) \
			LW_REPORT_AFTER(p);       \
		lw_was;                           \
	})
#else
#define LW_REPORTED_READ(p, order, read)	read
#define LW_REPORTED_WRITE(p, order, write)	write
#define LW_REPORTED_BOTH(p, order, both, taken) both
#endif

#endif
