// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/* The slot and the priority of a thread, which it can set itself. And how we learn that it exits.
 */
#include <errno.h>
#include <pthread.h>

#include <lockworks/lockworks.h>

#include "slots.h"

static pthread_key_t lw_exit_key;
static bool lw_exit_key_made;
/* glibc keeps the values of these keys in the thread itself, so setting one allocates nothing. */
#define LW_CHEAP_KEYS 32

static void lw_exit_destructor(void *value)
{
	(void)value;
	lw_user_thread_exit();
}

__attribute__((constructor(101))) static void lw_threads_start(void)
{
	lw_exit_key_made = pthread_key_create(&lw_exit_key, lw_exit_destructor) == 0;
}

bool lw_user_hook_exit(bool may_allocate)
{
	return lw_exit_key_made && (may_allocate || lw_exit_key < LW_CHEAP_KEYS) &&
	       pthread_setspecific(lw_exit_key, &lw_user_thread) == 0;
}

unsigned int lw_thread_attach(void)
{
	unsigned int slot;

	lw_user_slot_enter();
	slot = lw_user_slot_attach(true) ? lw_user_thread.slot : 0;
	lw_user_slot_leave();
	return slot;
}

int lw_thread_set_priority(enum lw_thread_priority priority)
{
	switch (priority) {
	case LW_PRIORITY_AUTO:
		lw_user_thread.priority_declared = false;
		lw_user_look_up_class();
		return 0;
	case LW_PRIORITY_ON:
	case LW_PRIORITY_OFF:
		lw_user_thread.priority = priority == LW_PRIORITY_ON;
		lw_user_thread.priority_declared = true;
		return 0;
	}
	return EINVAL;
}
