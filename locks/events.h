/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The events of events_list.h, numbered. */
#ifndef LW_EVENTS_H
#define LW_EVENTS_H

#include "events_list.h"

enum lw_event {
#define X(name, meaning) LW_EVENT_##name,
	LW_EVENTS(X)
#undef X
		LW_EVENT_COUNT
};

#endif
