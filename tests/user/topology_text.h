/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The property of LOCKWORKS_TOPOLOGY, for any text: the parser agrees with a second parser, which
 * is written another way. tests/user/topology_text.c checks it for texts that are always the same,
 * fuzz/topology.c for those that libFuzzer finds.
 */
#ifndef LW_TEST_TOPOLOGY_TEXT_H
#define LW_TEST_TOPOLOGY_TEXT_H

#include "test.h"

#include "topology.h"

/* A topology as the second parser reads it. */
struct text_topology {
	unsigned int domains;
	uint16_t domain_of_cpu[LW_USER_MAX_CPUS]; /* domain + 1; 0: listed nowhere */
};

/* Parses `length` characters that must be digits. Returns the CPU, or -1 if there is none. */
static inline long cpu_of_digits(const char *digits, size_t length)
{
	long cpu = 0;

	for (size_t i = 0; i < length; i++) {
		if (!strchr("0123456789", digits[i]))
			return -1;
		cpu = cpu > LW_USER_MAX_CPUS ? cpu : 10 * cpu + (digits[i] - '0');
	}
	return length && cpu < LW_USER_MAX_CPUS ? cpu : -1;
}

/* Adds the CPUs of one item, N or N-M, to the last domain. Returns false if it is not allowed. */
static inline bool add_item(struct text_topology *topology, const char *item, size_t length)
{
	const char *dash = memchr(item, '-', length);
	size_t before = dash ? (size_t)(dash - item) : length;
	long first = cpu_of_digits(item, before);
	long last = dash ? cpu_of_digits(dash + 1, length - before - 1) : first;

	if (first < 0 || last < first)
		return false;
	for (long cpu = first; cpu <= last; cpu++) {
		if (topology->domain_of_cpu[cpu])
			return false;
		topology->domain_of_cpu[cpu] = (uint16_t)topology->domains;
	}
	return true;
}

/* The second parser: splits the text at colons and commas. Returns false if it is malformed. */
static inline bool split_topology(struct text_topology *topology, const char *text)
{
	memset(topology, 0, sizeof(*topology));
	topology->domains = 1;
	for (;;) {
		size_t length = strcspn(text, ",:");

		if (!add_item(topology, text, length))
			return false;
		if (!text[length])
			return true;
		topology->domains += text[length] == ':';
		text += length + 1;
	}
}

/* Checks the property for `text`. Returns whether the text is a topology. */
static inline bool check_topology_text(const char *text)
{
	static struct text_topology now = {.domains = 1}, next;
	bool good = split_topology(&next, text);

	if (lw_user_topology_parse(text) != good) {
		fprintf(stderr, "LOCKWORKS_TOPOLOGY=%s is %s\n", text, good ? "good" : "bad");
		LW_TEST_FAIL();
	}
	if (good)
		now = next;
	/* A text that is refused changes nothing. */
	CHECK(lw_topology_nodes() == now.domains);
	for (unsigned int cpu = 0; cpu < LW_USER_MAX_CPUS; cpu++) {
		uint16_t domain = now.domain_of_cpu[cpu];

		CHECK(lw_topology_node_of_cpu(cpu) == (domain ? domain - 1u : 0));
	}
	return good;
}

#endif
