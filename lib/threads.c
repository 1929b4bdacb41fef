// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/* The slot and the priority of a thread, which it can set itself. And how we learn that it exits.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <link.h>
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

/*
 * Has the library or plugin that contains us stay in memory after dlclose(). Threads that used its
 * locks call us when they exit, which may be later. In other C libraries dlclose() does nothing.
 */
static void lw_stay_loaded(void)
{
#ifdef __GLIBC__
	/* Weak, and dlopen() is looked up: a static program may not have them. */
	extern __typeof__(dladdr1) dladdr1 __attribute__((weak));
	extern __typeof__(dlsym) dlsym __attribute__((weak));
	__typeof__(dlopen) *open = NULL;
	struct link_map *map;
	Dl_info info;

	if (dlsym)
		*(void **)&open = dlsym(RTLD_DEFAULT, "dlopen");
	/* A program itself has no name. */
	if (open && dladdr1 && dladdr1(&lw_exit_key, &info, (void **)&map, RTLD_DL_LINKMAP) &&
	    *map->l_name)
		open(map->l_name, RTLD_LAZY | RTLD_NOLOAD | RTLD_NODELETE);
#endif
}

__attribute__((constructor(101))) static void lw_threads_start(void)
{
	lw_stay_loaded();
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
