// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/* The tunables, set by call and by environment, also to values that are not allowed. */
#include "../runner.h"
#include "test.h"

#include <ctype.h>
#include <inttypes.h>

#include "slots.h"

static char program[PATH_MAX];

/* Prints the settings that a child process sees, which was started with an environment. */
static void report(void)
{
	printf("%d %d %u %d %d %u %u %u", lw_numa_spinlock(), lw_numa_spinlock_active(),
	       lw_numa_spinlock_threshold(), lw_shuffle_reduction(), lw_priority_waiters(),
	       lw_topology_nodes(), lw_topology_node_of_cpu(0), lw_topology_node_of_cpu(1));
	for (unsigned int i = 0; i < LW_TUNABLE_COUNT; i++) {
		const uint64_t value = lw_tunable_value((enum lw_tunable_id)i);

		if (value != lw_tunables[i].default_value)
			printf(" %s=%" PRIu64, lw_tunables[i].name, value);
	}
}

static void read_all(FILE *file, char *text, size_t size)
{
	CHECK(file);
	text[fread(text, 1, size - 1, file)] = '\0';
}

/*
 * Runs this program with a variable in its environment. Checks that it reports `expected`, and
 * writes one line with `complaint` to standard error, or nothing if `complaint` is NULL.
 */
static void check_environment(const char *variable, const char *value, const char *expected,
			      const char *complaint)
{
	char command[2 * PATH_MAX], out[256], err[512];
	char errors[] = "/tmp/lockworks-tunables-XXXXXX";
	int fd = mkstemp(errors);
	FILE *file;

	CHECK(fd >= 0);
	snprintf(command, sizeof(command), "%s='%s' %s '%s' report 2>%s", variable, value,
		 test_runner(), program, errors);
	file = popen(command, "r");
	read_all(file, out, sizeof(out));
	CHECK(pclose(file) == 0);
	file = fdopen(fd, "r");
	read_all(file, err, sizeof(err));
	fclose(file);
	unlink(errors);

	if (strcmp(out, expected) != 0 || !!*err != !!complaint)
		fprintf(stderr, "%s=%s: %s, not %s; %s\n", variable, value, out, expected, err);
	CHECK(strcmp(out, expected) == 0);
	if (!complaint) {
		CHECK(!*err);
		return;
	}
	CHECK(strncmp(err, "lockworks: ", strlen("lockworks: ")) == 0);
	CHECK(strstr(err, variable) && strstr(err, complaint));
	CHECK(strchr(err, '\n') == err + strlen(err) - 1);
}

/* This test does not know the machine's nodes, so it sets LOCKWORKS_TOPOLOGY first. */
static void check_environments(void)
{
	static const char normal[] = "0 1 10 1 1 2 0 1";
	static const char threshold[] = "LOCKWORKS_NUMA_SPINLOCK_THRESHOLD";
	static const char bounds[] = "1 to 100";

	CHECK(setenv("LOCKWORKS_TOPOLOGY", "0:1", 1) == 0);
	check_environment("LOCKWORKS_NUMA_SPINLOCK", "auto", normal, NULL);
	check_environment("LOCKWORKS_NUMA_SPINLOCK", "on", "1 1 10 1 1 2 0 1", NULL);
	check_environment("LOCKWORKS_NUMA_SPINLOCK", "off", "2 0 10 1 1 2 0 1", NULL);
	check_environment("LOCKWORKS_NUMA_SPINLOCK", "yes", normal, "auto, on or off");
	check_environment("LOCKWORKS_NUMA_SPINLOCK", "", normal, "auto, on or off");

	check_environment(threshold, "1", "0 1 1 1 1 2 0 1", NULL);
	check_environment(threshold, "100", "0 1 100 1 1 2 0 1", NULL);
	check_environment(threshold, "0", normal, bounds);
	check_environment(threshold, "101", normal, bounds);
	check_environment(threshold, "-1", normal, bounds);
	check_environment(threshold, "+1", normal, bounds);
	check_environment(threshold, "5ms", normal, bounds);
	check_environment(threshold, "", normal, bounds);
	check_environment(threshold, "4294967297", normal, bounds);
	check_environment(threshold, "18446744073709551617", normal, bounds);

	check_environment("LOCKWORKS_SHUFFLE_REDUCTION", "off", "0 1 10 0 1 2 0 1", NULL);
	check_environment("LOCKWORKS_SHUFFLE_REDUCTION", "on", normal, NULL);
	check_environment("LOCKWORKS_SHUFFLE_REDUCTION", "0", normal, "on or off");
	check_environment("LOCKWORKS_PRIORITY_WAITERS", "off", "0 1 10 1 0 2 0 1", NULL);
	check_environment("LOCKWORKS_PRIORITY_WAITERS", "on", normal, NULL);
	check_environment("LOCKWORKS_PRIORITY_WAITERS", "1", normal, "on or off");

	check_environment("LOCKWORKS_TOPOLOGY", "0-1:2", "0 1 10 1 1 2 0 0", NULL);
	check_environment("LOCKWORKS_TOPOLOGY", "0-1", "0 0 10 1 1 1 0 0", NULL);
	check_environment("LOCKWORKS_NEAR", "core", normal, NULL); /* not read */
}

/* For each tunable: its bounds are accepted, and a refusal of a greater value names the bounds. */
static void check_environments_by_name(void)
{
	static const char normal[] = "0 1 10 1 1 2 0 1";
	static const char *const bad[] = {
		"-1", "+1", " 1", "1 ", "", "0x10", "1e3", "on", "18446744073709551616"};

	for (unsigned int i = 0; i < LW_TUNABLE_COUNT; i++) {
		const struct lw_tunable_description *tunable = &lw_tunables[i];
		const uint64_t good[] = {0, 1, tunable->maximum};
		char variable[64] = "LOCKWORKS_", *at = strchr(variable, '\0');
		char expected[128], value[32], bounds[64];

		for (const char *from = tunable->name; *from; from++)
			*at++ = (char)toupper((unsigned char)*from);
		*at = '\0';
		snprintf(bounds, sizeof(bounds), "it must be 0 to %" PRIu64 "\n", tunable->maximum);
		for (size_t g = 0; g < sizeof(good) / sizeof(*good); g++) {
			snprintf(value, sizeof(value), "%" PRIu64, good[g]);
			snprintf(expected, sizeof(expected), "%s %s=%s", normal, tunable->name,
				 value);
			check_environment(variable, value,
					  good[g] == tunable->default_value ? normal : expected,
					  NULL);
		}
		snprintf(value, sizeof(value), "%" PRIu64, tunable->maximum + 1);
		check_environment(variable, value, normal, bounds);
		for (size_t b = 0; b < sizeof(bad) / sizeof(*bad); b++)
			check_environment(variable, bad[b], normal, bounds);
	}
}

/* A variable that begins like tunables' variables is reported together with these. */
static void check_unknown_environments(void)
{
	static const char normal[] = "0 1 10 1 1 2 0 1";

	check_environment("LOCKWORKS_HQLOCK_FAIRNESS", "1", normal,
			  "there are LOCKWORKS_HQLOCK_FAIRNESS_THRESHOLD, ");
	check_environment("LOCKWORKS_HQLOCK_FAIRNESS_THRESHOLDS", "1", normal, "no such tunable");
	check_environment("LOCKWORKS_PV_SPINS", "", normal, ", LOCKWORKS_PV_SPIN\n");
	check_environment("LOCKWORKS_PV_", "1", normal, "there are LOCKWORKS_PV_");
	check_environment("LOCKWORKS_UNFAIR_PV_SPIN", "1", normal,
			  "there are LOCKWORKS_UNFAIR_PARK, LOCKWORKS_UNFAIR_SPIN, ");
	/* Variables that may belong to another program. */
	check_environment("LOCKWORKS_PVX_SPIN", "1", normal, NULL);
	check_environment("LOCKWORKS_PV", "1", normal, NULL);
	check_environment("LOCKWORKS_pv_spin", "1", normal, NULL);
	check_environment("LOCKWORKS_", "1", normal, NULL);
}

/* After a refusal the topology is that of the machine. */
static void check_refused_topology(void)
{
	char real[64];

	CHECK(unsetenv("LOCKWORKS_TOPOLOGY") == 0);
	snprintf(real, sizeof(real), "0 %d 10 1 1 %u %u %u", lw_topology_nodes() >= 2,
		 lw_topology_nodes(), lw_topology_node_of_cpu(0), lw_topology_node_of_cpu(1));
	check_environment("LOCKWORKS_TOPOLOGY", "0-1:1", real, "no CPU in two");
	check_environment("LOCKWORKS_TOPOLOGY", "zero", real, "CPU lists");
	check_environment("LOCKWORKS_NEAR", "core", real, "node or llc");
	check_environment("LOCKWORKS_NEAR", "node", real, NULL);
}

static void check_calls_by_name(void)
{
	static const struct {
		const char *name;
		uint64_t default_value, kernel_default, maximum;
	} expected[] = {
		{"hqlock_fairness_threshold", 1000, 1000, INT64_MAX},
		{"hqlock_general_handoffs_turn_numa", 50, 50, INT64_MAX},
		{"hqlock_remote_handoffs_turn_numa", 2, 2, INT64_MAX},
		{"hqlock_local_handoffs_to_increase_remotes", 2, 2, INT64_MAX},
		{"hqlock_remote_handoffs_keep_numa", 1, 1, INT64_MAX},
		{"hqlock_probability_of_force_stay_numa", 5000, 5000, 10000},
		{"pv_kick_at_unlock", 1, 1, 1},
		{"pv_kick_ahead", 0, 0, 8},
		{"pv_wait_early", 1, 1, 1},
		{"pv_pending", 1, 1, 1},
		{"pv_steal", 1, 1, 1},
		{"pv_starvation_limit", 4, 4, UINT32_MAX},
		{"pv_latencies", 0, 0, 1},
		{"pv_arrival_spin", 16, 256, UINT32_MAX},
		{"pv_spin", 500, 512, UINT32_MAX},
		{"unfair_park", 1, 0, 1},
		{"unfair_spin", 500, 2048, UINT32_MAX},
		{"unfair_arrival_spin", 16, 256, UINT32_MAX},
		{"unfair_starvation_limit", 4, 1000, UINT32_MAX},
		{"mutex_spin", 2000, 512, UINT32_MAX},
		{"mutex_trials", 156, 156, 10000},
		{"mutex_slice", 0, 0, 1},
		{"rwlock_spread_after", 64, 64, 128},
		{"rwlock_gather", 64, 64, UINT32_MAX},
		{"rqspinlock_timeout", 1000, 250, 3600000},
#ifdef LW_WITH_HISTORIC
		{"pv42_spin", 200, 32768, UINT32_MAX},
		{"pvticket_spin", 200, 32768, UINT32_MAX},
		{"mutex37_spin", 16, UINT32_MAX, UINT32_MAX},
#endif
	};

	CHECK(LW_TUNABLE_COUNT == sizeof(expected) / sizeof(*expected));
	for (unsigned int i = 0; i < LW_TUNABLE_COUNT; i++) {
		const enum lw_tunable_id id = (enum lw_tunable_id)i;

		CHECK(strcmp(lw_tunables[i].name, expected[i].name) == 0);
		CHECK(lw_tunables[i].default_value == expected[i].default_value);
		CHECK(lw_tunables[i].kernel_default == expected[i].kernel_default);
		CHECK(lw_tunables[i].maximum == expected[i].maximum);
		CHECK(*lw_tunables[i].meaning);
		CHECK(lw_tunable_value(id) == expected[i].default_value);
		CHECK(lw_set_tunable(id, expected[i].maximum + 1) == EINVAL);
		CHECK(lw_set_tunable(id, UINT64_MAX) == EINVAL);
		CHECK(lw_tunable_value(id) == expected[i].default_value);
		CHECK(lw_set_tunable(id, expected[i].maximum) == 0);
		CHECK(lw_tunable_value(id) == expected[i].maximum);
		CHECK(lw_set_tunable(id, 0) == 0 && lw_tunable_value(id) == 0);
		/* The other tunables have not changed. */
		for (unsigned int j = i + 1; j < LW_TUNABLE_COUNT; j++)
			CHECK(lw_tunable_value((enum lw_tunable_id)j) == expected[j].default_value);
	}
	CHECK(lw_set_tunable(LW_TUNABLE_COUNT, 0) == EINVAL);
	CHECK(lw_tunable_value(LW_TUNABLE_COUNT) == 0);
	CHECK(lw_set_tunable((enum lw_tunable_id) - 1, 0) == EINVAL);
}

static void check_calls(void)
{
	CHECK(lw_set_numa_spinlock(LW_NUMA_ON) == 0);
	CHECK(lw_numa_spinlock() == LW_NUMA_ON && lw_numa_spinlock_active());
	CHECK(lw_set_numa_spinlock((enum lw_numa_mode)3) == EINVAL);
	CHECK(lw_numa_spinlock() == LW_NUMA_ON);
	CHECK(lw_set_numa_spinlock(LW_NUMA_OFF) == 0);
	CHECK(lw_numa_spinlock() == LW_NUMA_OFF && !lw_numa_spinlock_active());
	CHECK(lw_set_numa_spinlock(LW_NUMA_AUTO) == 0);
	CHECK(lw_numa_spinlock_active() == (lw_topology_nodes() >= 2));

	CHECK(lw_numa_spinlock_threshold() == 10);
	CHECK(lw_set_numa_spinlock_threshold(0) == EINVAL);
	CHECK(lw_set_numa_spinlock_threshold(101) == EINVAL);
	CHECK(lw_numa_spinlock_threshold() == 10);
	CHECK(lw_set_numa_spinlock_threshold(1) == 0 && lw_numa_spinlock_threshold() == 1);
	CHECK(lw_set_numa_spinlock_threshold(100) == 0 && lw_numa_spinlock_threshold() == 100);

	lw_set_shuffle_reduction(false);
	CHECK(!lw_shuffle_reduction() && lw_priority_waiters());
	lw_set_shuffle_reduction(true);
	lw_set_priority_waiters(false);
	CHECK(lw_shuffle_reduction() && !lw_priority_waiters());
	lw_set_priority_waiters(true);
	CHECK(lw_priority_waiters());

	check_calls_by_name();

	CHECK(lw_thread_set_priority(LW_PRIORITY_ON) == 0);
	CHECK(lw_thread_set_priority((enum lw_thread_priority)3) == EINVAL);

	for (unsigned int event = 0; event < LW_EVENT_COUNT; event++)
		CHECK(*lw_event_name(event) && *lw_event_meaning(event));
	CHECK(!lw_event_name(LW_EVENT_COUNT) && !lw_event_meaning(LW_EVENT_COUNT));
	CHECK(strcmp(lw_version(), LW_VERSION) == 0);
}

/* A real-time thread is a priority thread. Skipped if this process may not have one. */
static void check_real_time(void)
{
	struct sched_param param = {.sched_priority = 1}, normal = {0};

	CHECK(lw_thread_set_priority(LW_PRIORITY_AUTO) == 0);
	CHECK(!lw_user_thread.priority);
	if (sched_setscheduler(0, SCHED_RR | SCHED_RESET_ON_FORK, &param) != 0) {
		printf("real-time priority not tested: %s\n", strerror(errno));
		return;
	}
	CHECK(lw_thread_set_priority(LW_PRIORITY_AUTO) == 0);
	CHECK(lw_user_thread.priority);
	CHECK(lw_thread_set_priority(LW_PRIORITY_OFF) == 0);
	CHECK(!lw_user_thread.priority);
	CHECK(sched_setscheduler(0, SCHED_OTHER, &normal) == 0);
}

int main(int argc, char **argv)
{
	(void)argv;
	if (argc > 1) {
		report();
		return 0;
	}
	CHECK(readlink("/proc/self/exe", program, sizeof(program) - 1) > 0);
	check_environments();
	check_environments_by_name();
	check_unknown_environments();
	check_refused_topology();
	check_calls();
	check_real_time();
	return 0;
}
