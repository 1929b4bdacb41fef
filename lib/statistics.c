// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/* Statistics: the events, and what the slots have counted. */
#include <lockworks/lockworks.h>

#include "slots.h"

static const char *const lw_event_names[] = {
#define LW_EVENT(name, ...) #name,
#include "events_list.h"
};

static const char *const lw_event_meanings[] = {
#define LW_EVENT(name, meaning) meaning,
#include "events_list.h"
};

static const bool lw_event_maxima[LW_EVENT_COUNT] = {
#define LW_EVENT(name, ...)
#define LW_MAXIMUM(name, ...) [LW_EVENT_##name] = true,
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

bool lw_event_is_maximum(unsigned int event)
{
	return event < LW_EVENT_COUNT && lw_event_maxima[event];
}

void lw_statistics_restart_maxima(void)
{
	uint32_t slots = lw_user_slots();

	for (unsigned int event = 0; event < LW_EVENT_COUNT; event++) {
		for (uint32_t slot = 0; slot <= slots && lw_event_is_maximum(event); slot++)
			lw_store(&lw_user_counts(slot)->events[event], 0, relaxed);
	}
}

void lw_statistics(uint64_t counts[LW_EVENT_COUNT])
{
	uint32_t slots = lw_user_slots();

	for (unsigned int event = 0; event < LW_EVENT_COUNT; event++) {
		counts[event] = 0;
		for (uint32_t slot = 0; slot <= slots; slot++) {
			uint64_t count = lw_load(&lw_user_counts(slot)->events[event], relaxed);

			if (!lw_event_is_maximum(event))
				counts[event] += count;
			else if (counts[event] < count)
				counts[event] = count;
		}
	}
}
