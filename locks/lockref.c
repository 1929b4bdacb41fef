// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "lockref_type.h"
#include "lockrefs.h"

#define LW_LOCKREF(id, ...)                                                            \
	_Static_assert(sizeof(union lw_lockref_##id) == 8, "a lockref takes 8 bytes"); \
	extern const struct lw_lock_type lw_##id##_type;                               \
	LW_DESCRIBE_LOCKREF(id, &lw_##id##_type)
#include "lockref_list.h"
