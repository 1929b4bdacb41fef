/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Litmus tests: small programs whose allowed outcomes are known. */
#ifndef LW_LITMUS_H
#define LW_LITMUS_H

#include "client.h"

#define LW_LITMUS_THREADS 8

struct lw_litmus {
	const char *name; /* NULL ends a group */
	const char *summary;
	/*
	 * All allowed outcomes, with spaces between them, or the name of a violation. An outcome is
	 * the digits of each thread, with commas between threads; threads that report nothing are
	 * left out. c11 is for C11's memory; the others, for the models of those names, are NULL if
	 * they allow the same, kernel62 if it allows the same as kernel, tso as sc, and riscv as
	 * arm.
	 */
	const char *c11;
	const char *sc;
	void (*threads[LW_LITMUS_THREADS])(struct lw_litmus_memory *m);
	const char *arm;
	const char *kernel;
	const char *kernel62;
	const char *tso;
	const char *riscv;
	/*
	 * The initial values of so many variables of 8 bytes, whose final values are results too;
	 * NULL: all variables are 0 at first, and only threads have results.
	 */
	const uint64_t *initial;
	uint32_t variables;
};

/* The groups, one for each kind of test; ends with NULL. */
extern const struct lw_litmus *const lw_litmus_groups[];

/* Run a thread of client->litmus. */
void lw_litmus_thread(const struct lw_check_client *client, uint32_t thread);

#endif
