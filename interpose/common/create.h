/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* What a library that stands in for pthread_create() does with threads. Each of them has its own.
 */
#ifndef LW_INTERPOSE_CREATE_H
#define LW_INTERPOSE_CREATE_H

/* This thread is about to create another one. */
void lw_creates_thread(void);

/* This thread begins to run a function of the program. */
void lw_thread_begins(const void *run);

/* This thread exits. */
void lw_thread_ends(void);

#endif
