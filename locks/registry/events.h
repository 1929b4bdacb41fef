/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The events of events_list.h as an enumeration. */
#ifndef LW_EVENTS_H
#define LW_EVENTS_H

enum lw_event {
#define LW_EVENT(name, ...) LW_EVENT_##name,
#include "events_list.h"
	LW_EVENT_COUNT
};

#endif
