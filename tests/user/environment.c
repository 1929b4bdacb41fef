// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * The environment with any values: they are refused in a short line without control characters, and
 * a process that has more rights than its user does not read them. The random numbers begin with
 * the same seed in every run.
 */
#include "../runner.h"
#include "test.h"

#include <sys/auxv.h>
#include <sys/prctl.h>
#include <sys/stat.h>

#define RUNS	repetitions(300)
#define MOST	6000
#define LONGEST 1400 /* a line that lists the tunables that there are */

static const char *const names[] = {
	"LOCKWORKS_TOPOLOGY",
	"LOCKWORKS_NEAR",
	"LOCKWORKS_NUMA_SPINLOCK",
	"LOCKWORKS_NUMA_SPINLOCK_THRESHOLD",
	"LOCKWORKS_PRIORITY_WAITERS",
	"LOCKWORKS_SHUFFLE_REDUCTION",
	"LOCKWORKS_MUTEX_SPIN",
	"LOCKWORKS_PV_STEAL",
	"LOCKWORKS_RWLOCK_GATHER",
	"LOCKWORKS_HQLOCK_PROBABILITY_OF_FORCE_STAY_NUMA",
	"LOCKWORKS_PV_",
	"LOCKWORKS_",
};
#define NAMES (sizeof(names) / sizeof(*names))

/* Writes any bytes but 0 and, before the =, but =. */
static char *random_bytes(char *to, uint32_t most)
{
	for (uint32_t n = random_below(most); n > 0; n--) {
		*to = (char)(1 + random_below(255));
		to += *to != '=';
	}
	*to = '\0';
	return to;
}

/* NAME=VALUE: a name that there is, perhaps with more behind it, and a number or any bytes. */
static void make_assignment(char to[MOST + 64])
{
	const uint32_t most = random_below(4) ? 16 : MOST / 2;

	to += sprintf(to, "%s", names[random_below(NAMES)]);
	if (!random_below(4))
		to = random_bytes(to, most);
	*to++ = '=';
	if (random_below(2))
		to += sprintf(to, "%u", random_below(20000));
	if (random_below(2))
		random_bytes(to, most);
	else
		*to = '\0';
}

/* Checks that `err` has at most `most` lines, each of them ours, bounded and printable. */
static unsigned int check_lines(const char *err, unsigned int most)
{
	unsigned int lines = 0;

	for (const char *line = err, *end; *line; line = end + 1) {
		end = strchr(line, '\n');
		CHECK(end && end - line <= LONGEST && strncmp(line, "lockworks: ", 11) == 0);
		for (const char *c = line; c < end; c++)
			CHECK(*c >= ' ' && *c <= '~');
		lines++;
	}
	CHECK(lines <= most);
	return lines;
}

static void check_any_values(const char *program)
{
	static char first[MOST + 64], second[MOST + 64], err[8 * LONGEST];
	char *const environment[] = {first, second, NULL};
	unsigned int refused = 0;

	for (unsigned int run = 0; run < RUNS; run++) {
		make_assignment(first);
		make_assignment(second);
		CHECK(run_program(program, environment, err, sizeof(err)) == 0);
		refused += check_lines(err, 2);
	}
	/* Some were good. */
	CHECK(refused > RUNS / 4 && refused < 2 * RUNS);
}

/* The process that this test starts sees no setting that is out of bounds. */
static int started(void)
{
	for (unsigned int i = 0; i < LW_TUNABLE_COUNT; i++)
		CHECK(lw_tunable_value((enum lw_tunable_id)i) <= lw_tunables[i].maximum);
	CHECK(lw_topology_nodes() >= 1);
	if (!getenv("HAS_MORE_RIGHTS"))
		return 0;
	if (!getauxval(AT_SECURE))
		return 3;
	/* The user's variables do not count here. */
	return lw_tunable_value(LW_TUNABLE_mutex_spin) == 77;
}

/* As a set-user-ID program: another user's rights, and the user's variables. */
static __attribute__((unused)) void check_more_rights(const char *program)
{
	char variables[][40] = {"HAS_MORE_RIGHTS=1", "LOCKWORKS_MUTEX_SPIN=77", "LOCKWORKS_NEAR=x"};
	char *const environment[] = {variables[0], variables[1], variables[2], NULL};
	char directory[] = "/tmp/lockworks-environment-XXXXXX", copy[64], command[PATH_MAX + 128];
	char err[1024];
	int status;

	if (getuid() != 0 || *test_runner()) {
		printf("set-user-ID not tested: only root can make such a program, for this "
		       "processor\n");
		return;
	}
	CHECK(mkdtemp(directory) && chmod(directory, 0755) == 0);
	snprintf(copy, sizeof(copy), "%s/program", directory);
	snprintf(command, sizeof(command), "cp '%s' %s && chown 1 %s && chmod 4755 %s", program,
		 copy, copy, copy);
	status = system(command) == 0 ? run_program(copy, environment, err, sizeof(err)) : 3;
	unlink(copy);
	rmdir(directory);
	if (status == 3)
		printf("set-user-ID not tested: no other user, or not in /tmp\n");
	else
		CHECK(status == 0 && !*err);
}

int main(int argc, char **argv)
{
	char program[PATH_MAX] = "";

	(void)argv;
	if (argc > 1)
		return started();
	CHECK(readlink("/proc/self/exe", program, sizeof(program) - 1) > 0);
	check_any_values(program);
#ifndef LW_TEST_IS_WATCHED /* LeakSanitizer does not work in such programs */
	check_more_rights(program);
#endif
	return 0;
}
