// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#define _GNU_SOURCE
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
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

void lw_write_line(const char *format, ...)
{
	char line[512];
	va_list values;
	int length;

	va_start(values, format);
	length = vsnprintf(line, sizeof(line), format, values);
	va_end(values);
	if (length >= (int)sizeof(line))
		length = sizeof(line) - 1;
	if (length > 0 && write(STDERR_FILENO, line, (size_t)length) < 0)
		return; /* nowhere else to report it */
}
