// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/* What a thread can set for itself: its slot and its priority. */
#include <errno.h>

#include <lockworks/lockworks.h>

#include "slots.h"

unsigned int lw_thread_attach(void)
{
	unsigned int slot;

	lw_user_slot_enter();
	slot = lw_user_slot_attach() ? lw_user_thread.slot : 0;
	lw_user_slot_leave();
	return slot;
}

int lw_thread_set_priority(enum lw_thread_priority priority)
{
	switch (priority) {
	case LW_PRIORITY_AUTO:
		lw_user_look_up_priority();
		return 0;
	case LW_PRIORITY_ON:
	case LW_PRIORITY_OFF:
		lw_user_thread.priority = priority == LW_PRIORITY_ON;
		lw_user_thread.priority_known = true;
		return 0;
	}
	return EINVAL;
}
