// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/* A plugin that locks: load.c opens it. */
#include <lockworks/lockworks.h>

static struct lw_mutex mutex = LW_MUTEX_INIT;
static unsigned int uses; /* protected by mutex */

/* Threads that call this keep a slot until they exit, as those that wait for a lock do. */
unsigned int plugin_use(void)
{
	lw_mutex_lock(&mutex);
	uses++;
	lw_mutex_unlock(&mutex);
	return lw_thread_attach();
}
