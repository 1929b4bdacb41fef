// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#define _GNU_SOURCE
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "messages.h"

bool lw_verbose_is(const char *value)
{
	const char *verbose = secure_getenv("LOCKWORKS_VERBOSE");

	return verbose && strcmp(verbose, value) == 0;
}

/* The file behind descriptor 2 when we start. Later a program may have another file there. */
static struct stat lw_stderr;

void lw_note_stderr(void)
{
	int saved = errno;

	fstat(STDERR_FILENO, &lw_stderr);
	errno = saved;
}

bool lw_has_stderr(void)
{
	struct stat now;

	return fstat(STDERR_FILENO, &now) == 0 && now.st_dev == lw_stderr.st_dev &&
	       now.st_ino == lw_stderr.st_ino;
}
