/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What can be set of the HQ-spinlock, by the names of the published series, for
 * tunables_list.h. No more than LW_HANDOFFS_MAX hand-offs are counted: a higher fairness
 * threshold is this one, and more of the others never come.
 */
LW_TUNABLE(hqlock_fairness_threshold, 1000, 1000, LW_TUNABLE_MAX,
	   "local hand-offs in a row before another node has its turn")
LW_TUNABLE(hqlock_general_handoffs_turn_numa, 50, 50, LW_TUNABLE_MAX,
	   "hand-offs that must be exceeded before waiters queue by node")
LW_TUNABLE(hqlock_remote_handoffs_turn_numa, 2, 2, LW_TUNABLE_MAX,
	   "of these to another node, at least, before waiters queue by node")
LW_TUNABLE(hqlock_local_handoffs_to_increase_remotes, 2, 2, LW_TUNABLE_MAX,
	   "local hand-offs before one to another node is counted")
LW_TUNABLE(hqlock_remote_handoffs_keep_numa, 1, 1, LW_TUNABLE_MAX,
	   "of these to another node, at least, for waiters to go on queueing by node")
LW_TUNABLE(hqlock_probability_of_force_stay_numa, 5000, 5000, 10000,
	   "how often of 10000 times they do so anyway")
