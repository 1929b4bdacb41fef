// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/* The report of a process at its exit, with LOCKWORKS_VERBOSE=1, on its time slice extensions. */
#include <inttypes.h>
#include <unistd.h>

#include <lockworks/lockworks.h>

#include "messages.h"
#include "settings.h"

/* At the exit, the environment may be another. */
static bool lw_reports;

__attribute__((constructor(102))) static void lw_slices_start(void)
{
	lw_reports = lw_verbose_is("1");
}

__attribute__((destructor)) static void lw_slices_report(void)
{
	uint64_t counts[LW_EVENT_COUNT];

	if (!lw_reports || !lw_slices_wanted || !lw_has_stderr())
		return;
	lw_statistics(counts);
	lw_user_write_line("lockworks: time slices extended in process %d: %" PRIu64
			   " (CPU given back in time %" PRIu64 ", too short %" PRIu64 ")\n",
			   (int)getpid(), counts[LW_EVENT_slices_granted],
			   counts[LW_EVENT_slices_yielded], counts[LW_EVENT_slices_expired]);
}
