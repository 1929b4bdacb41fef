// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/* The mutex of Abseil (Debian: libabsl-dev). */
#include <new>

#include <absl/synchronization/mutex.h>

#include "peer.h"

static void read_lock(void *state)
{
	static_cast<absl::Mutex *>(state)->ReaderLock();
}

static void read_unlock(void *state)
{
	static_cast<absl::Mutex *>(state)->ReaderUnlock();
}

PEER(abseil, "Abseil", BENCH_UNFAIR, absl::Mutex, struct bench_nothing, new (s) absl::Mutex,
     (void)0, s->Lock(), s->Unlock(), .read_lock = read_lock, .read_unlock = read_unlock)

extern "C" const struct peer *const peer_abseil[] = {&abseil_peer, NULL};
