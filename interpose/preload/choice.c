// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#define _GNU_SOURCE
#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <lockworks/lockworks.h>

#include "choice.h"
#include "glibc.h"
#include "messages.h"
#include "mutex_parts.h"
#include "not_served.h"
#include "plan.h"
#include "settings.h"

struct lw_choice lw_choice = {.plain = {LW_NO_KIND}};

/*
 * Returns the number of threads of this process, or 0 if it is unknown. /proc/self/task has a link
 * for each thread and two more.
 */
static unsigned int lw_threads(void)
{
	struct stat tasks;

	return stat("/proc/self/task", &tasks) == 0 && tasks.st_nlink > 2
		       ? (unsigned int)tasks.st_nlink - 2
		       : 0;
}

/* Returns the number of CPUs that this thread may run on. */
static unsigned int lw_cpus(void)
{
	cpu_set_t cpus;

	return sched_getaffinity(0, sizeof(cpus), &cpus) == 0 ? (unsigned int)CPU_COUNT(&cpus)
							      : UINT32_MAX;
}

/*
 * lw_choice.lock for a lock that spins, until it has warned. Each thread compares the numbers of
 * threads and CPUs at its first acquisition.
 */
static void lw_lock_and_warn(void *lock, void *node)
{
	static __thread bool checked __attribute__((tls_model("initial-exec")));
	const struct lw_lock_type *type = lw_chosen();

	if (!checked) {
		int saved = errno;
		unsigned int threads = lw_threads(), cpus = lw_cpus();

		checked = true;
		if (threads > cpus && lw_load(&lw_choice.lock, relaxed) != type->lock &&
		    lw_has_stderr()) {
			lw_store(&lw_choice.lock, type->lock, relaxed);
			lw_user_write_line(
				"lockworks: warning: waiters of '%s' spin, and %u threads on %u "
				"CPUs wait for each other's time slices; use "
				"--lock " LW_DEFAULT_LOCK
				", or LOCKWORKS_VERBOSE=0 to hide this warning\n",
				type->name, threads, cpus);
		}
		errno = saved;
	}
	type->lock(lock, node);
}

const char *lw_unfit(const struct lw_lock_type *type)
{
	if (!type)
		return "there is no such lock";
	if (type->traits & LW_BROKEN)
		return "it does not exclude";
	if (type->size > sizeof(int) || type->node_size)
		return "it needs more than the 4 bytes that a mutex has for it";
	return NULL;
}

static unsigned int lw_lock_number(const struct lw_lock_type *type)
{
	unsigned int number = 0;

	while (lw_lock_types[number] != type)
		number++;
	return number;
}

/* Once this is set, an absent environment means that the program has cleared it. */
static bool lw_started;

const struct lw_lock_type *lw_choose_lock(void)
{
	const struct lw_lock_type *type, *none = NULL;
	const char *name, *unfit, *plan;

	if (lw_is_too_early() || !(environ || lw_started))
		return NULL;
	lw_note_stderr();
	plan = secure_getenv("LOCKWORKS_PLAN");
	if (plan)
		lw_plan_read(plan);
	name = plan ? NULL : secure_getenv("LOCKWORKS_LOCK");
	name = name ?: LW_DEFAULT_LOCK;
	type = lw_lock_type_find(name);
	unfit = lw_unfit(type);
	if (unfit)
		type = lw_lock_type_find(LW_DEFAULT_LOCK);
	lw_store(&lw_choice.lock,
		 type->traits & LW_SPINS && !lw_verbose_is("0") ? lw_lock_and_warn : type->lock,
		 relaxed);
	lw_store(&lw_choice.mark, plan ? LW_KIND_SERVED : 0, relaxed);
	/* release: threads that see the type see lw_choice.lock and lw_choice.mark */
	if (lw_try_cmpxchg(&lw_choice.type, &none, type, release)) {
		char why[128];

		snprintf(why, sizeof(why), "%s; " LW_DEFAULT_LOCK " serves instead", unfit ?: "");
		if (unfit)
			lw_user_report_ignored("LOCKWORKS_LOCK", name, why);
		if (lw_verbose_is("1") && !plan)
			lw_user_write_line("lockworks: '%s' serves process %d (%s)\n", type->name,
					   (int)getpid(), program_invocation_short_name);
	}
	return type;
}

void lw_choose_path(void)
{
	const struct lw_lock_type *type = lw_load(&lw_choice.type, acquire);
	int mark = lw_load(&lw_choice.mark, relaxed), plain = LW_NO_KIND;

	if (strcmp(type->name, LW_DEFAULT_LOCK) == 0)
		plain = mark ? lw_planned_kind(lw_lock_number(type)) : 0;
	lw_store(&lw_choice.served, true, relaxed);
	lw_store(&lw_choice.plain, plain, relaxed);
	lw_tell_served();
}

/*
 * Warns under a race detector of valgrind. Such a tool preloads a library too, by which it learns
 * what pthread functions do, and then does not see those of ours.
 */
static void lw_warn_of_detector(void)
{
	const char *preloaded = secure_getenv("LD_PRELOAD"), *detector = NULL;

	if (preloaded && strstr(preloaded, "/vgpreload_helgrind"))
		detector = "Helgrind";
	else if (preloaded && strstr(preloaded, "/vgpreload_drd"))
		detector = "DRD";
	if (detector && !lw_verbose_is("0"))
		lw_user_write_line("lockworks: warning: %s knows glibc's mutexes only, and reports "
				   "races that are none; run it without Lockworks, or use "
				   "LOCKWORKS_VERBOSE=0 to hide this warning\n",
				   detector);
}

__attribute__((constructor(102))) static void lw_choice_start(void)
{
	lw_started = true;
	lw_chosen();
	lw_warn_of_detector();
}

LW_EXPORT const char *lw_preload_lock_name(void)
{
	return lw_has_plan() ? "plan" : lw_chosen()->name;
}
