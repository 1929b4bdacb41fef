/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Choice of the spinlocks of a guest, after the kernel has detected its hypervisor. */
#ifndef __LINUX_LOCKWORKS_GUEST_H
#define __LINUX_LOCKWORKS_GUEST_H

#ifdef CONFIG_LOCKWORKS_GUEST
void lockworks_guest_init(void);
#else
static inline void lockworks_guest_init(void)
{
}
#endif

#endif
