/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The reader-writer lock for other files of the kernel: struct lw_rwlock, all zero when unlocked,
 * and the functions of rwlock.h. They are not exported to modules. It is a spinning lock, and does
 * not replace rwlock_t. lockdep does not watch it.
 *
 *   - The caller disables preemption, from before an acquisition until after the release. So do
 *     readers: they announce themselves in the slot of their CPU.
 *   - If interrupt handlers acquire a lock, everybody acquires it with these interrupts disabled:
 *     local_irq_save(), or local_bh_disable() for softirqs. That is so for readers too, unlike
 *     those of rwlock_t. A reader enters, and reads again, in more than one step. A handler that
 *     reads the same lock in between would join a reader that is not in, or end its announcement.
 *   - If NMI handlers acquire a lock, nothing else does.
 *   - All contexts of a CPU share its slot. While they read more than LW_READS_PER_SLOT locks, they
 *     enter any lock that a writer waits for, as a reader with priority does.
 *
 * With lockworks_guest=pv-mutex, waiters in the queue halt. A writer does not halt while it waits
 * for readers.
 */
#ifndef LW_LOCKWORKS_RWLOCK_H
#define LW_LOCKWORKS_RWLOCK_H

#include "numa_spinlock.h"
#include "world.h"

/* Other files call this lock. They call all other locks through the hooks only. */
#undef LW_EXPORT
#define LW_EXPORT extern
#include "rwlock.h"
#undef LW_EXPORT
#define LW_EXPORT static

#endif
