// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/* For each slot a note of what its thread is parked for: lw_slot_wanted(). */
#include "historic.h"
#include "lock_word.h"

struct lw_slot_wanted lw_user_wanted[LW_MAX_SLOTS + 1];
