/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The settings of the HQ-spinlock, by the names of the published series, for tunables_list.h. At
 * most LW_HANDOFFS_MAX hand-overs are counted. A higher fairness threshold has the effect of
 * LW_HANDOFFS_MAX, and higher values of the other thresholds are never reached.
 */
LW_TUNABLE(hqlock_fairness_threshold, 1000, 1000, LW_TUNABLE_MAX, 1,
	   "consecutive hand-overs within a NUMA node before the lock goes to another")
LW_TUNABLE(hqlock_general_handoffs_turn_numa, 50, 50, LW_TUNABLE_MAX, 0,
	   "hand-overs that must be exceeded before waiters queue by NUMA node")
LW_TUNABLE(hqlock_remote_handoffs_turn_numa, 2, 2, LW_TUNABLE_MAX, 0,
	   "counted hand-overs to another NUMA node before waiters queue by NUMA node")
LW_TUNABLE(hqlock_local_handoffs_to_increase_remotes, 2, 2, LW_TUNABLE_MAX, 0,
	   "in plain mode, hand-overs within a NUMA node before one to another is counted")
LW_TUNABLE(hqlock_remote_handoffs_keep_numa, 1, 1, LW_TUNABLE_MAX, 1,
	   "hand-overs to another NUMA node that are needed to keep queueing by NUMA node")
LW_TUNABLE(hqlock_probability_of_force_stay_numa, 5000, 5000, 10000, 5000,
	   "probability, in 1/10000, to keep queueing by NUMA node with fewer hand-overs to others")
