// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/* The library's own tables: its locks, its events, its version. */
#include <string.h>

#include <lockworks/lockworks.h>

#define X(id) extern const struct lw_lock_type lw_##id##_type;
LW_LOCKS(X)
#undef X

#define X(id) &lw_##id##_type,
const struct lw_lock_type *const lw_lock_types[] = {LW_LOCKS(X) NULL};
#undef X

const struct lw_lock_type *lw_lock_type_find(const char *name)
{
	for (const struct lw_lock_type *const *type = lw_lock_types; *type; type++) {
		if (strcmp((*type)->name, name) == 0)
			return *type;
	}
	return NULL;
}

static const char *const lw_event_names[] = {
#define X(name, meaning) #name,
	LW_EVENTS(X)
#undef X
};

static const char *const lw_event_meanings[] = {
#define X(name, meaning) meaning,
	LW_EVENTS(X)
#undef X
};

const char *lw_event_name(unsigned int event)
{
	return event < LW_EVENT_COUNT ? lw_event_names[event] : NULL;
}

const char *lw_event_meaning(unsigned int event)
{
	return event < LW_EVENT_COUNT ? lw_event_meanings[event] : NULL;
}

const char *lw_version(void)
{
	return LW_VERSION;
}
