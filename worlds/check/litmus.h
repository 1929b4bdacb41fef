/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Litmus tests: small programs of which it is known what they may end with. */
#ifndef LW_LITMUS_H
#define LW_LITMUS_H

#include "client.h"

#define LW_LITMUS_THREADS 4

struct lw_litmus {
	const char *name; /* NULL ends a group */
	const char *summary;
	/*
	 * All that it may end with: outcomes with spaces between them, or the name
	 * of a violation. An outcome is each thread's digits, commas between the
	 * threads; those that report nothing are left out. sc is for sequentially
	 * consistent memory; NULL: as in weak memory.
	 */
	const char *weak;
	const char *sc;
	void (*threads[LW_LITMUS_THREADS])(struct lw_litmus_memory *m);
};

/* By kind; ends with NULL. */
extern const struct lw_litmus *const lw_litmus_groups[];

/* What a thread of client->litmus does. */
void lw_litmus_thread(const struct lw_check_client *client, uint32_t thread);

#endif
