/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Annotations for clang's thread-safety analysis (clang++ -Wthread-safety), which checks when it
 * compiles that a thread holds a lock where it uses what the lock guards. For other compilers they
 * are empty.
 *
 *   int balance LW_GUARDED_BY(lock);           is used only by a thread that holds the lock
 *   void pay(int amount) LW_REQUIRES(lock);    is called only by a thread that holds the lock
 *   void settle() LW_EXCLUDES(lock);           is called only by a thread that does not hold it
 *
 * ..._SHARED stands for a lock that is held for reading.
 */
#ifndef LW_THREAD_SAFETY_H
#define LW_THREAD_SAFETY_H

#ifdef __has_attribute
#if __has_attribute(capability)
#define LW_THREAD_SAFETY(attribute) __attribute__((attribute))
#endif
#endif
#ifndef LW_THREAD_SAFETY
#define LW_THREAD_SAFETY(attribute)
#endif

/* Of data */
#define LW_GUARDED_BY(lock)    LW_THREAD_SAFETY(guarded_by(lock))
#define LW_PT_GUARDED_BY(lock) LW_THREAD_SAFETY(pt_guarded_by(lock))

/* Of functions, which the caller calls with the locks or without them */
#define LW_REQUIRES(...)	LW_THREAD_SAFETY(requires_capability(__VA_ARGS__))
#define LW_REQUIRES_SHARED(...) LW_THREAD_SAFETY(requires_shared_capability(__VA_ARGS__))
#define LW_EXCLUDES(...)	LW_THREAD_SAFETY(locks_excluded(__VA_ARGS__))

/* Of functions, which acquire or release the locks; without arguments: the object */
#define LW_ACQUIRE(...)		   LW_THREAD_SAFETY(acquire_capability(__VA_ARGS__))
#define LW_ACQUIRE_SHARED(...)	   LW_THREAD_SAFETY(acquire_shared_capability(__VA_ARGS__))
#define LW_TRY_ACQUIRE(...)	   LW_THREAD_SAFETY(try_acquire_capability(__VA_ARGS__))
#define LW_TRY_ACQUIRE_SHARED(...) LW_THREAD_SAFETY(try_acquire_shared_capability(__VA_ARGS__))
#define LW_RELEASE(...)		   LW_THREAD_SAFETY(release_capability(__VA_ARGS__))
#define LW_RELEASE_SHARED(...)	   LW_THREAD_SAFETY(release_shared_capability(__VA_ARGS__))

/* Of classes: a lock, and an object that holds locks while it is in scope */
#define LW_CAPABILITY(name)  LW_THREAD_SAFETY(capability(name))
#define LW_SCOPED_CAPABILITY LW_THREAD_SAFETY(scoped_lockable)

/* Of a function that the analysis cannot follow */
#define LW_NO_THREAD_SAFETY_ANALYSIS LW_THREAD_SAFETY(no_thread_safety_analysis)

#endif
