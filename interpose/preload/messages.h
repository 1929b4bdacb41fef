/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Messages of this library on standard error. */
#ifndef LW_PRELOAD_MESSAGES_H
#define LW_PRELOAD_MESSAGES_H

#include <stdbool.h>

/*
 * Returns whether LOCKWORKS_VERBOSE has this value: 0 suppresses warnings, 1 reports which lock
 * serves and what it did not serve.
 */
bool lw_verbose_is(const char *value);

/* Remembers the file that is behind standard error now. */
void lw_note_stderr(void);
/* Returns whether that file is still there. */
bool lw_has_stderr(void);

#endif
