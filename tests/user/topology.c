// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/* The topology that is read from made-up sysfs trees and texts. */
#include "test.h"

#include <ftw.h>
#include <sys/stat.h>

#include "topology.h"

static char root[] = "/tmp/lockworks-topology-XXXXXX";

static int remove_entry(const char *path, const struct stat *status, int type, struct FTW *walk)
{
	(void)status;
	(void)type;
	return walk->level > 0 ? remove(path) : 0;
}

static void clear_tree(void)
{
	CHECK(nftw(root, remove_entry, 8, FTW_DEPTH | FTW_PHYS) == 0);
}

static void put(const char *path, const char *text)
{
	char full[PATH_MAX];
	FILE *file;

	snprintf(full, sizeof(full), "%s/%s", root, path);
	for (char *slash = full + strlen(root) + 1; (slash = strchr(slash, '/')); *slash++ = '/') {
		*slash = '\0';
		CHECK(mkdir(full, 0700) == 0 || errno == EEXIST);
	}
	file = fopen(full, "w");
	CHECK(file);
	CHECK(fprintf(file, "%s\n", text) > 0);
	CHECK(fclose(file) == 0);
}

static void put_cache(unsigned int cpu, unsigned int index, const char *level, const char *shared)
{
	char path[PATH_MAX];

	snprintf(path, sizeof(path), "cpu/cpu%u/cache/index%u/level", cpu, index);
	put(path, level);
	snprintf(path, sizeof(path), "cpu/cpu%u/cache/index%u/shared_cpu_list", cpu, index);
	put(path, shared);
}

static void check_nodes(void)
{
	put("node/online", "0,2-3");
	put("node/node0/cpulist", "0-3,64");
	put("node/node2/cpulist", "8,10-11,8191");
	put("node/node3/cpulist", ""); /* memory without CPUs */
	lw_user_topology_read(root, LW_NEAR_NODE);
	CHECK(!lw_topology_warning());
	CHECK(lw_topology_nodes() == 2);
	CHECK(lw_topology_node_of_cpu(3) == 0 && lw_topology_node_of_cpu(64) == 0);
	CHECK(lw_topology_node_of_cpu(8) == 1 && lw_topology_node_of_cpu(11) == 1);
	CHECK(lw_topology_node_of_cpu(8191) == 1);
	/* Unknown CPUs */
	CHECK(lw_topology_node_of_cpu(9) == 0 && lw_topology_node_of_cpu(UINT_MAX) == 0);

	/* A node without a CPU list */
	put("node/online", "0-1");
	lw_user_topology_read(root, LW_NEAR_NODE);
	CHECK(lw_topology_warning());
	CHECK(lw_topology_nodes() == 1 && lw_topology_node_of_cpu(8) == 0);

	/* A text that is not a list */
	put("node/online", "zero");
	lw_user_topology_read(root, LW_NEAR_NODE);
	CHECK(lw_topology_warning() && lw_topology_nodes() == 1);

	clear_tree();
	lw_user_topology_read(root, LW_NEAR_NODE);
	CHECK(lw_topology_warning() && lw_topology_nodes() == 1);
}

static void check_caches(void)
{
	put("cpu/online", "0-1,4-5,9");
	/* The last level is the highest one, not the last index. CPU 9 has one level less. */
	for (unsigned int cpu = 0; cpu < 6; cpu++) {
		if (cpu == 2 || cpu == 3)
			continue;
		put_cache(cpu, 0, "1", cpu < 2 ? "0-1" : "4-5");
		put_cache(cpu, 1, "3", cpu % 2 ? "1,5" : "0,4");
		put_cache(cpu, 2, "2", cpu < 2 ? "0-1" : "4-5");
	}
	put_cache(9, 0, "2", "9");
	lw_user_topology_read(root, LW_NEAR_LLC);
	CHECK(!lw_topology_warning());
	CHECK(lw_topology_nodes() == 3);
	CHECK(lw_topology_node_of_cpu(0) == 0 && lw_topology_node_of_cpu(4) == 0);
	CHECK(lw_topology_node_of_cpu(1) == 1 && lw_topology_node_of_cpu(5) == 1);
	CHECK(lw_topology_node_of_cpu(9) == 2);
	CHECK(lw_topology_node_of_cpu(2) == 0);

	put("cpu/online", "0-2");
	lw_user_topology_read(root, LW_NEAR_LLC);
	CHECK(lw_topology_warning() && lw_topology_nodes() == 1);
	clear_tree();
}

static void check_texts(void)
{
	static const char *const bad[] = {
		"",	":",	 "0:",	":1",	    "0-",   "3-1",
		"0,,1", "0:1 ",	 "a",	"0-2:2",    "0:0",  "-1",
		"8192", "0x1:2", "0;1", "0:1-8192", "0-3,", "99999999999999999999:0"};

	CHECK(lw_user_topology_parse("0-3,8:4-7"));
	CHECK(lw_topology_nodes() == 2);
	CHECK(lw_topology_node_of_cpu(8) == 0 && lw_topology_node_of_cpu(4) == 1);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		CHECK(!lw_user_topology_parse(bad[i]));
		CHECK(lw_topology_nodes() == 2 && lw_topology_node_of_cpu(4) == 1);
	}
	CHECK(lw_user_topology_parse("0:1:5"));
	CHECK(lw_topology_nodes() == 3 && lw_topology_node_of_cpu(5) == 2);
	CHECK(lw_topology_node_of_cpu(4) == 0);
}

static void check_current(void)
{
	cpu_set_t allowed;
	char text[32];
	int cpu = 0;

	/* Run on one CPU that this process may use, and put it into the second domain. */
	CHECK(sched_getaffinity(0, sizeof(allowed), &allowed) == 0);
	while (!CPU_ISSET(cpu, &allowed))
		cpu++;
	CPU_ZERO(&allowed);
	CPU_SET(cpu, &allowed);
	CHECK(sched_setaffinity(0, sizeof(allowed), &allowed) == 0);
	snprintf(text, sizeof(text), "%d:%d", cpu + 1, cpu);
	CHECK(lw_user_topology_parse(text));
	CHECK(lw_current_node() == 1);
}

int main(void)
{
	CHECK(mkdtemp(root));
	check_nodes();
	check_caches();
	check_texts();
	check_current();
	CHECK(rmdir(root) == 0);

	CHECK(lw_set_near((enum lw_near)2) == EINVAL);
	CHECK(lw_topology_nodes() == 2);
	/* The topology of this machine has none of the made-up domains. */
	CHECK(lw_set_near(LW_NEAR_NODE) == 0);
	CHECK(lw_topology_warning() || lw_topology_node_of_cpu(8191) == 0);
	return 0;
}
