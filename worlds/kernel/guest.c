// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * The choice of a guest's spinlocks at boot. A paravirt lock makes waiting virtual CPUs halt. It
 * replaces the native lock in pv_ops before alternatives are patched in, as the lock of a
 * hypervisor does. It halts and kicks virtual CPUs with the functions of the hypervisor, or with
 * interrupts if the hypervisor has none.
 */
#define pr_fmt(fmt) "lockworks: " fmt

#include <linux/init.h>
#include <linux/irqflags.h>
#include <linux/jump_label.h>
#include <linux/kernel.h>
#include <linux/lockworks_guest.h>
#include <linux/preempt.h>
#include <linux/string.h>
#include <asm/apic.h>
#include <asm/irq_vectors.h>
#include <asm/qspinlock.h>

#include "numa_spinlock.h"

enum guest_spinlock guest_spinlock __ro_after_init;

const char *const guest_spinlock_names[GUEST_SPINLOCKS] = {
	[GUEST_SPINLOCK_AUTO] = "auto",		[GUEST_SPINLOCK_NATIVE] = "native",
	[GUEST_SPINLOCK_BYTE] = "byte",		[GUEST_SPINLOCK_UNFAIR] = "unfair",
	[GUEST_SPINLOCK_STOCK_PV] = "stock-pv", [GUEST_SPINLOCK_PV] = "pv",
	[GUEST_SPINLOCK_PV_MUTEX] = "pv-mutex",
};

static bool __init is_paravirt(void)
{
	return guest_spinlock >= GUEST_SPINLOCK_STOCK_PV;
}

static void __init refuse(const char *arg, const char *why)
{
	pr_warn("lockworks_guest=%s refused: %s\n", arg ?: "", why);
}

static int __init lockworks_guest_setup(char *arg)
{
	int chosen = match_string(guest_spinlock_names, GUEST_SPINLOCKS, arg ?: "");

	if (chosen < 0)
		refuse(arg, "use auto, native, byte, unfair, stock-pv, pv or pv-mutex");
	else if (chosen >= GUEST_SPINLOCK_STOCK_PV && !IS_ENABLED(CONFIG_PARAVIRT_SPINLOCKS))
		refuse(arg, "CONFIG_PARAVIRT_SPINLOCKS is not set");
	else if (chosen == GUEST_SPINLOCK_PV_MUTEX && !IS_ENABLED(CONFIG_LOCKWORKS_MUTEX))
		refuse(arg, "CONFIG_LOCKWORKS_MUTEX is not set");
	else
		guest_spinlock = chosen;
	return 0;
}
early_param("lockworks_guest", lockworks_guest_setup);

#ifdef CONFIG_PARAVIRT_SPINLOCKS
static void wait_for_interrupt(u8 *at, u8 value)
{
	/*
	 * An interrupt kicks a halted CPU. A CPU must not halt, therefore, while interrupts are
	 * disabled, as they are in an NMI.
	 */
	if (in_nmi() || irqs_disabled()) {
		cpu_relax();
		return;
	}
	/* A kick after this point stays pending until the halt, which enables interrupts. */
	local_irq_disable();
	if (READ_ONCE(*at) == value)
		safe_halt();
	else
		local_irq_enable();
}

/* If the CPU is not halted, the interrupt has no effect. */
static void kick_by_interrupt(int cpu)
{
	/*
	 * The NMI may have interrupted the sending of another IPI between its two register
	 * writes, so it must not send one. The next tick then ends the halt of the CPU.
	 */
	if (in_nmi() && !x2apic_mode)
		return;
	apic->send_IPI(cpu, RESCHEDULE_VECTOR);
}

static bool __init hypervisor_has_its_own(void)
{
	return lw_pv_lock_slowpath() != native_queued_spin_lock_slowpath;
}

static void __init choose_native(void)
{
	lw_pv_lock_choose(native_queued_spin_lock_slowpath,
			  __raw_callee_save___native_queued_spin_unlock);
}

static void __init become_native(const char *why)
{
	pr_info("native, not %s: %s\n", guest_spinlock_names[guest_spinlock], why);
	guest_spinlock = GUEST_SPINLOCK_NATIVE;
}

static void __init choose_paravirt(void)
{
	bool provided = hypervisor_has_its_own();

	if (!provided) {
		lw_pv_lock_ops.wait = wait_for_interrupt;
		lw_pv_lock_ops.kick = kick_by_interrupt;
	}
	if (guest_spinlock == GUEST_SPINLOCK_PV) {
		lw_pv_lock_choose(pv_spin_lock_slowpath, pv_spin_unlock);
#ifdef CONFIG_LOCKWORKS_MUTEX
	} else if (guest_spinlock == GUEST_SPINLOCK_PV_MUTEX) {
		lw_pv_lock_choose(pv_mutex_lock_slowpath, pv_mutex_unlock);
#endif
	} else {
		if (!provided)
			__pv_init_lock_hash();
		lw_pv_lock_choose(__pv_queued_spin_lock_slowpath,
				  __raw_callee_save___pv_queued_spin_unlock);
	}
	pr_info("guest's spinlocks %s, kicked by %s\n", guest_spinlock_names[guest_spinlock],
		provided ? "the hypervisor" : "interrupts");
}
#else
static bool __init hypervisor_has_its_own(void)
{
	return false;
}

static void __init choose_native(void)
{
}

static void __init choose_paravirt(void)
{
}
#endif

/* The lock that numa_spinlock= asks for goes before the choice of a guest, by anybody. */
static void __init give_way(void)
{
	if (guest_spinlock > GUEST_SPINLOCK_NATIVE)
		pr_warn("lockworks_guest=%s ignored: numa_spinlock= is on\n",
			guest_spinlock_names[guest_spinlock]);
	else if (hypervisor_has_its_own())
		pr_warn("numa_spinlock= replaces the paravirt spinlock: waiters will not halt\n");
	else
		return;
	guest_spinlock = GUEST_SPINLOCK_NATIVE;
}

/* Called while no other CPU is up, so nothing waits for a lock that this CPU holds. */
void __init lockworks_guest_init(void)
{
	if (numa_spinlock_is_forced())
		give_way();
	else if (IS_ENABLED(CONFIG_LOCKWORKS_GUEST_UNFAIR) &&
		 guest_spinlock == GUEST_SPINLOCK_AUTO && static_key_enabled(&virt_spin_lock_key))
		guest_spinlock = GUEST_SPINLOCK_UNFAIR;
	if (guest_spinlock == GUEST_SPINLOCK_AUTO)
		return;
#ifdef CONFIG_PARAVIRT_SPINLOCKS
	if (nopvspin && is_paravirt())
		become_native("nopvspin");
	if (guest_spinlock >= GUEST_SPINLOCK_PV && !guest_parked_heads_provide())
		become_native("no memory");
#endif
	if (is_paravirt()) {
		choose_paravirt();
	} else {
		choose_native();
		pr_info("guest's spinlocks %s\n", guest_spinlock_names[guest_spinlock]);
	}
	if (guest_spinlock == GUEST_SPINLOCK_BYTE)
		static_branch_enable(&virt_spin_lock_key);
	else
		static_branch_disable(&virt_spin_lock_key);
}
