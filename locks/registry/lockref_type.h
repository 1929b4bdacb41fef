/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The description of a lockref, by which all tools know it, whatever lock it contains. */
#ifndef LW_LOCKREF_TYPE_H
#define LW_LOCKREF_TYPE_H

#include "lock_type.h"

/* One interface to all lockrefs. */
struct lw_lockref_type {
	const char *name;
	/* The lock in it, at the same address; it needs no node. */
	const struct lw_lock_type *lock;
	/* See lockref.h. All take 8 bytes, 8-aligned. */
	void (*init)(void *ref, int32_t n);
	void (*get)(void *ref);
	bool (*get_not_zero)(void *ref);
	bool (*get_not_dead)(void *ref);
	bool (*put_or_lock)(void *ref);
	bool (*put_not_zero)(void *ref);
	int32_t (*put_return)(void *ref);
	int32_t (*count)(void *ref);
	void (*set_count)(void *ref, int32_t n);
	void (*mark_dead)(void *ref);
};

#define LW_LOCKREF_CALL(result, id, operation)                                      \
	static result lw_lockref_##id##_type_##operation(void *ref)                 \
	{                                                                           \
		return lw_lockref_##id##_##operation((union lw_lockref_##id *)ref); \
	}

/* Describe the lockref of LW_DEFINE_LOCKREF(id, ...), given the description of its lock. */
#define LW_DESCRIBE_LOCKREF(id, lock_described)                               \
	LW_LOCKREF_CALL(void, id, get)                                        \
	LW_LOCKREF_CALL(bool, id, get_not_zero)                               \
	LW_LOCKREF_CALL(bool, id, get_not_dead)                               \
	LW_LOCKREF_CALL(bool, id, put_or_lock)                                \
	LW_LOCKREF_CALL(bool, id, put_not_zero)                               \
	LW_LOCKREF_CALL(int32_t, id, put_return)                              \
	LW_LOCKREF_CALL(int32_t, id, count)                                   \
	LW_LOCKREF_CALL(void, id, mark_dead)                                  \
	static void lw_lockref_##id##_type_init(void *ref, int32_t n)         \
	{                                                                     \
		lw_lockref_##id##_init((union lw_lockref_##id *)ref, n);      \
	}                                                                     \
	static void lw_lockref_##id##_type_set_count(void *ref, int32_t n)    \
	{                                                                     \
		lw_lockref_##id##_set_count((union lw_lockref_##id *)ref, n); \
	}                                                                     \
	LW_EXPORT const struct lw_lockref_type lw_lockref_##id##_type = {     \
		.name = "lockref-" #id,                                       \
		.lock = lock_described,                                       \
		.init = lw_lockref_##id##_type_init,                          \
		.get = lw_lockref_##id##_type_get,                            \
		.get_not_zero = lw_lockref_##id##_type_get_not_zero,          \
		.get_not_dead = lw_lockref_##id##_type_get_not_dead,          \
		.put_or_lock = lw_lockref_##id##_type_put_or_lock,            \
		.put_not_zero = lw_lockref_##id##_type_put_not_zero,          \
		.put_return = lw_lockref_##id##_type_put_return,              \
		.count = lw_lockref_##id##_type_count,                        \
		.set_count = lw_lockref_##id##_type_set_count,                \
		.mark_dead = lw_lockref_##id##_type_mark_dead,                \
	};

#endif
