/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What can be set of the HQ-spinlock, by the names of the published series:
 * LW_HQLOCK_TUNABLE(name, default, maximum, meaning), defined by who includes this.
 * The least is 0 for all. No more than LW_HANDOFFS_MAX hand-offs are counted: a higher
 * fairness threshold is this one, and more of the others never come.
 */
LW_HQLOCK_TUNABLE(fairness_threshold, 1000, LW_HQLOCK_TUNABLE_MAX,
		  "local hand-offs in a row before another node has its turn")
LW_HQLOCK_TUNABLE(general_handoffs_turn_numa, 50, LW_HQLOCK_TUNABLE_MAX,
		  "hand-offs that must be exceeded before waiters queue by node")
LW_HQLOCK_TUNABLE(remote_handoffs_turn_numa, 2, LW_HQLOCK_TUNABLE_MAX,
		  "of these to another node, at least, before waiters queue by node")
LW_HQLOCK_TUNABLE(local_handoffs_to_increase_remotes, 2, LW_HQLOCK_TUNABLE_MAX,
		  "local hand-offs before one to another node is counted")
LW_HQLOCK_TUNABLE(remote_handoffs_keep_numa, 1, LW_HQLOCK_TUNABLE_MAX,
		  "of these to another node, at least, for waiters to go on queueing by node")
LW_HQLOCK_TUNABLE(probability_of_force_stay_numa, 5000, 10000,
		  "how often of 10000 times they do so anyway")

#undef LW_HQLOCK_TUNABLE
