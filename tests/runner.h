/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* For tests that may run under an emulator: how they start programs, and how often they repeat
 * steps. */
#ifndef LW_TEST_RUNNER_H
#define LW_TEST_RUNNER_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* The emulator that runs programs of another processor here, and its options: RUNNER of make. */
static inline const char *test_runner(void)
{
	const char *runner = getenv("RUNNER");

	return runner ? runner : "";
}

/*
 * Repetitions of a step: fewer under an emulator, which makes each one slow, and with FEWER in the
 * environment.
 */
static inline unsigned int repetitions(unsigned int n)
{
	return *test_runner() || getenv("FEWER") ? n / 25 : n;
}

/* Replaces this process by `program`. As execve(), except that a failure ends the process. */
static inline void exec_program(const char *program, char *const arguments[],
				char *const environment[])
{
	char runner[1024];
	char *words[64];
	int n = 0;

	snprintf(runner, sizeof(runner), "%s", test_runner());
	for (char *word = strtok(runner, " "); word && n < 32; word = strtok(NULL, " "))
		words[n++] = word;
	words[n++] = (char *)program;
	while (*arguments && *++arguments && n < 63)
		words[n++] = *arguments;
	words[n] = NULL;
	execvpe(words[0], words, environment);
	perror(words[0]);
	_exit(127);
}

/*
 * Runs `program` with the argument "start" and only these variables. Writes what it says on
 * standard error to `err`. Returns its exit status, or -1.
 */
static inline int run_program(const char *program, char *const environment[], char *err,
			      size_t size)
{
	char start[] = "start";
	char *const arguments[] = {start, start, NULL};
	size_t length = 0;
	ssize_t got;
	int ends[2], status;
	pid_t child;

	if (pipe(ends) != 0 || (child = fork()) < 0)
		return -1;
	if (child == 0) {
		dup2(ends[1], STDERR_FILENO);
		exec_program(program, arguments, environment);
	}
	close(ends[1]);
	while ((got = read(ends[0], err + length, size - 1 - length)) > 0)
		length += (size_t)got;
	err[length] = '\0';
	close(ends[0]);
	return waitpid(child, &status, 0) == child && WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

#endif
