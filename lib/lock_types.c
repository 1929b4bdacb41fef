// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/* The library's own tables: its locks, its lockrefs, its events, its version. */
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

static const char *const lw_event_names[] = {
#define LW_EVENT(name, ...) #name,
#include "events_list.h"
};

static const char *const lw_event_meanings[] = {
#define LW_EVENT(name, meaning) meaning,
#include "events_list.h"
};

const char *lw_event_name(unsigned int event)
{
	return event < LW_EVENT_COUNT ? lw_event_names[event] : NULL;
}

const char *lw_event_meaning(unsigned int event)
{
	return event < LW_EVENT_COUNT ? lw_event_meanings[event] : NULL;
}

static const bool lw_event_maxima[LW_EVENT_COUNT] = {
#define LW_EVENT(name, ...)
#define LW_MAXIMUM(name, ...) [LW_EVENT_##name] = true,
#include "events_list.h"
};

bool lw_event_is_maximum(unsigned int event)
{
	return event < LW_EVENT_COUNT && lw_event_maxima[event];
}

const char *lw_version(void)
{
	return LW_VERSION;
}
