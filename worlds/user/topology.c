// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/* The topology, read from sysfs or from the environment. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "settings.h"
#include "tas.h"

#define LW_NO_DOMAIN UINT16_MAX

struct lw_user_topology lw_user_topology;

static lw_atomic(const char *) lw_topology_problem;
/* This lock protects lw_draft, in which a new table is built before it is published, and lw_text.
 */
static struct lw_tas lw_topology_lock;
static uint16_t lw_draft[LW_USER_MAX_CPUS];
/* Large enough for a list of all even CPU numbers below 8192. */
static char lw_text[65536];

static void lw_draft_clear(void)
{
	memset(lw_draft, 0xff, sizeof(lw_draft));
}

static void lw_draft_publish(uint32_t domains)
{
	for (unsigned int cpu = 0; cpu < LW_USER_MAX_CPUS; cpu++) {
		uint16_t domain = lw_draft[cpu] == LW_NO_DOMAIN ? 0 : lw_draft[cpu];

		if (lw_load(&lw_user_topology.domain_of_cpu[cpu], relaxed) != domain)
			lw_store(&lw_user_topology.domain_of_cpu[cpu], domain, relaxed);
	}
	lw_store(&lw_user_topology.domains, domains ? domains : 1, release);
}

/*
 * Parses a decimal number below LW_USER_MAX_CPUS and moves *text past it. Returns the number, or
 * -1 if there is none.
 */
static long lw_parse_number(const char **text)
{
	long number = 0;

	if (**text < '0' || **text > '9')
		return -1;
	for (; **text >= '0' && **text <= '9'; ++*text) {
		number = number * 10 + (**text - '0');
		if (number >= LW_USER_MAX_CPUS)
			return -1;
	}
	return number;
}

/*
 * Parses a list as in sysfs, "0-3,8", and moves *text past it. Calls `each` with every number of
 * the list. Returns false if the text does not begin with a list, or once `each` returns false.
 */
static bool lw_parse_list(const char **text, bool (*each)(unsigned int number, void *arg),
			  void *arg)
{
	for (;; ++*text) {
		long first = lw_parse_number(text), last = first;

		if (first >= 0 && **text == '-') {
			++*text;
			last = lw_parse_number(text);
		}
		if (first < 0 || last < first)
			return false;
		for (; first <= last; first++) {
			if (!each((unsigned int)first, arg))
				return false;
		}
		if (**text != ',')
			return true;
	}
}

/* Puts a CPU into domain *arg. Returns false if it is in a domain already. */
static bool lw_draft_put(unsigned int cpu, void *arg)
{
	if (lw_draft[cpu] != LW_NO_DOMAIN)
		return false;
	lw_draft[cpu] = *(uint16_t *)arg;
	return true;
}

/*
 * Reads a file into lw_text. Returns false if it cannot be read or does not fit. The first lock of
 * a program may read, so the system calls are made directly: the functions of the C library are
 * cancellation points.
 */
static bool lw_read_file(const char *path)
{
	size_t length = 0;
	ssize_t got = -1;
	int fd = (int)syscall(SYS_openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		return false;
	while (length < sizeof(lw_text) - 1) {
		got = syscall(SYS_read, fd, lw_text + length, sizeof(lw_text) - 1 - length);
		if (got <= 0)
			break;
		length += (size_t)got;
	}
	syscall(SYS_close, fd);
	lw_text[length] = '\0';
	return got == 0;
}

static bool lw_set_add(unsigned int number, void *set)
{
	((bool *)set)[number] = true;
	return true;
}

/* Reads a file that holds one list, which may be empty, into a set. Returns false on failure. */
static bool lw_read_set(const char *path, bool set[LW_USER_MAX_CPUS])
{
	const char *text = lw_text;

	memset(set, 0, LW_USER_MAX_CPUS * sizeof(bool));
	if (!lw_read_file(path))
		return false;
	return *text == '\n' || *text == '\0' || lw_parse_list(&text, lw_set_add, set);
}

/* Puts the CPUs of a set that are in no domain yet into `domain`. Returns how many it put. */
static unsigned int lw_draft_put_set(const bool set[LW_USER_MAX_CPUS], uint16_t domain)
{
	unsigned int put = 0;

	for (unsigned int cpu = 0; cpu < LW_USER_MAX_CPUS; cpu++)
		put += set[cpu] && lw_draft_put(cpu, &domain);
	return put;
}

/*
 * Makes a domain of each NUMA node that has CPUs, in the order of the node numbers. Returns the
 * number of domains; 0 if sysfs cannot be read.
 */
static uint16_t lw_draft_nodes(const char *root)
{
	static bool nodes[LW_USER_MAX_CPUS], cpus[LW_USER_MAX_CPUS];
	char path[256];
	uint16_t domains = 0;

	snprintf(path, sizeof(path), "%s/node/online", root);
	if (!lw_read_set(path, nodes))
		return 0;
	for (unsigned int node = 0; node < LW_USER_MAX_CPUS; node++) {
		if (!nodes[node])
			continue;
		snprintf(path, sizeof(path), "%s/node/node%u/cpulist", root, node);
		if (!lw_read_set(path, cpus))
			return 0;
		domains += lw_draft_put_set(cpus, domains) > 0;
	}
	return domains;
}

/* Reads which CPUs share the last-level cache of `cpu`. Returns false on failure. */
static bool lw_read_llc(const char *root, unsigned int cpu, bool cpus[LW_USER_MAX_CPUS])
{
	char path[256];
	int last = -1, highest = 0;

	for (int index = 0;; index++) {
		snprintf(path, sizeof(path), "%s/cpu/cpu%u/cache/index%d/level", root, cpu, index);
		if (!lw_read_file(path))
			break;
		if (atoi(lw_text) > highest) {
			highest = atoi(lw_text);
			last = index;
		}
	}
	if (last < 0)
		return false;
	snprintf(path, sizeof(path), "%s/cpu/cpu%u/cache/index%d/shared_cpu_list", root, cpu, last);
	return lw_read_set(path, cpus);
}

/*
 * Makes a domain of each last-level cache, in the order of their first CPUs. Returns the number of
 * domains; 0 if sysfs cannot be read.
 */
static uint16_t lw_draft_llcs(const char *root)
{
	static bool online[LW_USER_MAX_CPUS], cpus[LW_USER_MAX_CPUS];
	char path[256];
	uint16_t domains = 0;

	snprintf(path, sizeof(path), "%s/cpu/online", root);
	if (!lw_read_set(path, online))
		return 0;
	for (unsigned int cpu = 0; cpu < LW_USER_MAX_CPUS; cpu++) {
		if (!online[cpu] || lw_draft[cpu] != LW_NO_DOMAIN)
			continue;
		if (!lw_read_llc(root, cpu, cpus))
			return 0;
		domains += lw_draft_put_set(cpus, domains) > 0;
	}
	return domains;
}

void lw_user_topology_read(const char *root, enum lw_near near)
{
	const char *problem = NULL;
	uint16_t domains;

	lw_tas_lock(&lw_topology_lock);
	lw_draft_clear();
	domains = near == LW_NEAR_LLC ? lw_draft_llcs(root) : lw_draft_nodes(root);
	if (!domains) {
		lw_draft_clear();
		problem = near == LW_NEAR_LLC
				  ? "last-level caches unreadable in sysfs: all CPUs taken as one"
				  : "NUMA nodes unreadable in sysfs: all CPUs taken as one node";
	}
	lw_draft_publish(domains);
	lw_store(&lw_topology_problem, problem, relaxed);
	lw_tas_unlock(&lw_topology_lock);
}

bool lw_user_topology_parse(const char *text)
{
	uint16_t domains = 0;
	bool good;

	lw_tas_lock(&lw_topology_lock);
	lw_draft_clear();
	for (;; text++) {
		good = lw_parse_list(&text, lw_draft_put, &domains);
		domains++;
		if (!good || *text != ':')
			break;
	}
	good = good && *text == '\0';
	if (good) {
		lw_draft_publish(domains);
		lw_store(&lw_topology_problem, NULL, relaxed);
	}
	lw_tas_unlock(&lw_topology_lock);
	return good;
}

static enum lw_near lw_near_from_environment(void)
{
	const char *near = secure_getenv("LOCKWORKS_NEAR");

	if (near && strcmp(near, "llc") == 0)
		return LW_NEAR_LLC;
	if (near && strcmp(near, "node") != 0)
		lw_user_report_ignored("LOCKWORKS_NEAR", near, "it must be node or llc");
	return LW_NEAR_NODE;
}

uint32_t lw_user_topology_start(void)
{
	static lw_atomic(bool) begun;
	const char *override;

	/* Only the first caller reads. Until it is done, all others see 0 domains. */
	if (!lw_xchg(&begun, true, acquire)) {
		override = secure_getenv("LOCKWORKS_TOPOLOGY");
		if (!override || !lw_user_topology_parse(override)) {
			if (override)
				lw_user_report_ignored("LOCKWORKS_TOPOLOGY", override,
						       "it must be CPU lists separated by ':', no "
						       "CPU in two of them");
			lw_user_topology_read(LW_USER_SYSFS, lw_near_from_environment());
		}
	}
	return lw_load(&lw_user_topology.domains, relaxed);
}

static void lw_fork_prepare(void)
{
	lw_tas_lock(&lw_topology_lock);
}

static void lw_fork_done(void)
{
	lw_tas_unlock(&lw_topology_lock);
}

__attribute__((constructor(101))) static void lw_topology_constructor(void)
{
	lw_user_topology_start();
	pthread_atfork(lw_fork_prepare, lw_fork_done, lw_fork_done);
}

uint16_t lw_user_domain_of_cpu(unsigned int cpu)
{
	return cpu < LW_USER_MAX_CPUS ? lw_load(&lw_user_topology.domain_of_cpu[cpu], relaxed) : 0;
}

uint16_t lw_user_numa_node(void)
{
	if (lw_user_domains() < 2)
		return 0;
	/* sched_getcpu() gives -1 on failure, which is no CPU of the table. */
	return lw_user_domain_of_cpu((unsigned int)sched_getcpu());
}

const char *lw_user_topology_problem(void)
{
	return lw_load(&lw_topology_problem, relaxed);
}
