// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/* The mutex of nsync (Debian: libnsync-dev). */
#include <nsync.h>

#include "peer.h"

static void read_lock(void *state)
{
	nsync_mu_rlock((nsync_mu *)state);
}

static void read_unlock(void *state)
{
	nsync_mu_runlock((nsync_mu *)state);
}

PEER(nsync, "nsync", BENCH_UNFAIR, nsync_mu, struct bench_nothing, nsync_mu_init(s), (void)0,
     nsync_mu_lock(s), nsync_mu_unlock(s), .read_lock = read_lock, .read_unlock = read_unlock)

const struct peer *const peer_nsync[] = {&nsync_peer, NULL};
