// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/* The mutex of nsync (Debian: libnsync-dev). */
#include <nsync.h>

#include "peer.h"

PEER(nsync, "nsync", BENCH_UNFAIR, nsync_mu, struct bench_nothing, nsync_mu_init(s), (void)0,
     nsync_mu_lock(s), nsync_mu_unlock(s))

const struct peer *const peer_nsync[] = {&nsync_peer, NULL};
