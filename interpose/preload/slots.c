// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * Takes back the slots of threads that exit. Threads that glibc starts for itself only borrow
 * slots.
 */
#include "create.h"
#include "not_served.h"
#include "slots.h"

/* Is this thread one that calls lw_user_thread_exit()? */
static __thread bool lw_exit_is_seen __attribute__((tls_model("initial-exec")));

bool lw_user_hook_exit(bool may_allocate)
{
	(void)may_allocate;
	return lw_exit_is_seen;
}

/* The main thread usually ends with the process. If it ends before that, its slot is lost. */
__attribute__((constructor(101))) static void lw_slots_start(void)
{
	lw_exit_is_seen = true;
}

void lw_creates_thread(void)
{
	lw_store(&lw_not_served.has_threads, true, relaxed);
	lw_tell_served();
}

void lw_thread_begins(const void *run)
{
	(void)run;
	lw_exit_is_seen = true;
}

void lw_thread_ends(void)
{
	lw_user_thread_exit();
}
