// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/* The lists of locks and lockrefs, and the version of the library. */
#include <string.h>

#include <lockworks/lockworks.h>

#define LW_LOCK(id) extern const struct lw_lock_type lw_##id##_type;
#include "locks_list.h"

const struct lw_lock_type *const lw_lock_types[] = {
#define LW_LOCK(id) &lw_##id##_type,
#include "locks_list.h"
	NULL,
};

const struct lw_lock_type *lw_lock_type_find(const char *name)
{
	for (const struct lw_lock_type *const *type = lw_lock_types; *type; type++) {
		if (strcmp((*type)->name, name) == 0)
			return *type;
	}
	return NULL;
}

#define LW_LOCKREF(id, ...) extern const struct lw_lockref_type lw_lockref_##id##_type;
#include "lockref_list.h"

const struct lw_lockref_type *const lw_lockref_types[] = {
#define LW_LOCKREF(id, ...) &lw_lockref_##id##_type,
#include "lockref_list.h"
	NULL,
};

const char *lw_version(void)
{
	return LW_VERSION;
}
