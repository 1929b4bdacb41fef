// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/* Waits with a limit: deadlines, cancellation, and leaving a queue from every place in it. */
#include "waiters.h"

/* An hour in nanoseconds: no test takes as long. */
#define LONG 3600000000000L

struct wait {
	const struct subject *subject;
	const struct timespec *deadline;
	struct lw_cancel *cancel;
	int result;
	pthread_t thread;
};

static void *wait_for_lock(void *arg)
{
	struct wait *wait = arg;

	wait->result = wait->subject->lock_until(wait->deadline, wait->cancel);
	if (wait->result == 0) {
		hold();
		wait->subject->unlock();
	}
	return NULL;
}

static void begin(struct wait *wait)
{
	thread_start(&wait->thread, 0, wait_for_lock, wait);
}

static int end(struct wait *wait)
{
	CHECK(pthread_join(wait->thread, NULL) == 0);
	return wait->result;
}

static void check_results(const struct subject *subject)
{
	struct timespec past = {0}, before_all = {.tv_sec = -1}, invalid = from_now(LONG);
	struct timespec soon, late = from_now(LONG);
	struct lw_cancel cancel = LW_CANCEL_INIT, cancelled = LW_CANCEL_INIT;
	struct wait wait = {.subject = subject};

	watch(subject->name);
	lw_cancel(&cancelled);
	/* A free lock is acquired, whatever the limit. */
	CHECK(subject->lock_until(NULL, NULL) == 0);
	subject->unlock();
	CHECK(subject->lock_until(&past, &cancelled) == 0);

	wait.deadline = &past;
	begin(&wait);
	CHECK(end(&wait) == ETIMEDOUT);
	wait.deadline = &before_all;
	begin(&wait);
	CHECK(end(&wait) == ETIMEDOUT);
	invalid.tv_nsec = 1000000000;
	wait.deadline = &invalid;
	begin(&wait);
	CHECK(end(&wait) == EINVAL);

	soon = from_now(5000000);
	wait.deadline = &soon;
	begin(&wait);
	CHECK(end(&wait) == ETIMEDOUT);
	CHECK(is_past(&soon));

	wait.deadline = &late;
	wait.cancel = &cancelled;
	begin(&wait);
	CHECK(end(&wait) == ECANCELED);
	CHECK(!is_past(&late));

	/* A wait that reaches no limit ends with the lock. */
	wait.cancel = &cancel;
	begin(&wait);
	usleep(5000);
	subject->unlock();
	CHECK(end(&wait) == 0);
	check_free(subject);
}

/* Cancels waits without a deadline: of a parked queue head and of parked waiters behind it. */
static void check_cancel_asleep(const struct subject *subject)
{
	struct lw_cancel cancels[4] = {LW_CANCEL_INIT};
	struct wait waits[4];
	uint64_t before = halts();

	watch(subject->name);
	acquired = 0;
	subject->lock();
	for (int i = 0; i < 4; i++) {
		waits[i] = (struct wait){.subject = subject, .cancel = &cancels[i]};
		begin(&waits[i]);
		await_halts(before, (unsigned int)i + 1);
	}
	/* Cancel in the middle, at the end and at the head. The remaining waiter gets the lock. */
	lw_cancel(&cancels[1]);
	CHECK(end(&waits[1]) == ECANCELED);
	lw_cancel(&cancels[3]);
	CHECK(end(&waits[3]) == ECANCELED);
	lw_cancel(&cancels[0]);
	CHECK(end(&waits[0]) == ECANCELED);
	CHECK(acquired == 0);
	subject->unlock();
	CHECK(end(&waits[2]) == 0);
	CHECK(acquired == 1);
	check_free(subject);
}

/* All waiters leave the queue. Then the lock is free, though none of them acquired it. */
static void check_all_leave(const struct subject *subject)
{
	struct timespec deadline = from_now(30000000);
	struct wait waits[8];

	watch(subject->name);
	subject->lock();
	for (int i = 0; i < 8; i++) {
		waits[i] = (struct wait){.subject = subject, .deadline = &deadline};
		begin(&waits[i]);
	}
	for (int i = 0; i < 8; i++)
		CHECK(end(&waits[i]) == ETIMEDOUT);
	subject->unlock();
	check_free(subject);
}

#define CROWD  16
#define LEAVES 2000

struct member {
	const struct subject *subject;
	unsigned int random;
	unsigned int got, timed_out, cancelled;
	atomic_bool over;
	/* Cancels its wait; NULL between two waits. */
	_Atomic(struct lw_cancel *) cancel;
	pthread_t thread;
};

/* Acquires the lock over and over, without a limit or with a short one. */
static void *come_and_go(void *arg)
{
	struct member *self = arg;
	/* A cancellation may come late, so no struct lw_cancel is used twice. */
	static struct lw_cancel cancels[CROWD][LEAVES];
	static atomic_uint members;
	struct lw_cancel *mine = cancels[atomic_fetch_add(&members, 1) % CROWD];

	memset(mine, 0, sizeof(cancels[0]));
	for (int turn = 0; turn < LEAVES; turn++) {
		struct timespec deadline;
		int result = 0;

		self->random = self->random * 1103515245 + 12345;
		switch (self->random >> 16 & 3) {
		case 0:
			self->subject->lock();
			break;
		case 1:
			atomic_store(&self->cancel, &mine[turn]);
			result = self->subject->lock_until(NULL, &mine[turn]);
			atomic_store(&self->cancel, NULL);
			break;
		default:
			deadline = from_now(self->random >> 18 & 0x3ffff);
			result = self->subject->lock_until(&deadline, NULL);
			CHECK(result == 0 || is_past(&deadline));
		}
		if (result == 0) {
			hold();
			self->subject->unlock();
			self->got++;
		} else if (result == ETIMEDOUT) {
			self->timed_out++;
		} else {
			CHECK(result == ECANCELED);
			self->cancelled++;
		}
	}
	atomic_store(&self->over, true);
	return NULL;
}

static struct lw_pv inner;
static unsigned int inner_count; /* protected by `inner` */
static atomic_uint interruptions;

/* This handler also interrupts threads that are about to abandon their slot. */
static void lock_another(int signal)
{
	(void)signal;
	lw_pv_lock(&inner);
	inner_count++;
	lw_pv_unlock(&inner);
	atomic_fetch_add(&interruptions, 1);
}

static void check_come_and_go(const struct subject *subject)
{
	timer_t timer = interrupt_with(lock_another);
	static struct member members[CROWD];
	unsigned long got = 0, timed_out = 0, cancelled = 0;

	watch(subject->name);
	acquired = 0;
	for (unsigned int i = 0; i < CROWD; i++) {
		members[i] = (struct member){.subject = subject, .random = i + 1};
		thread_start(&members[i].thread, 0, come_and_go, &members[i]);
	}
	for (unsigned int i = 0; i < CROWD; i++) {
		while (!atomic_load(&members[i].over)) {
			for (unsigned int other = 0; other < CROWD; other++) {
				struct lw_cancel *cancel = atomic_load(&members[other].cancel);

				if (cancel)
					lw_cancel(cancel);
			}
			usleep(100);
		}
		CHECK(pthread_join(members[i].thread, NULL) == 0);
		got += members[i].got;
		timed_out += members[i].timed_out;
		cancelled += members[i].cancelled;
	}
	CHECK(timer_delete(timer) == 0);
	CHECK(atomic_load(&interruptions) > 0 && inner_count == atomic_load(&interruptions));
	CHECK(acquired == got);
	CHECK(got > 0 && timed_out > 0 && cancelled > 0);
	check_free(subject);
}

/* Times out more often than there are slots. */
static void *time_out_often(void *arg)
{
	const struct subject *subject = arg;
	struct timespec past = from_now(0);

	for (uint32_t i = 0; i < LW_MAX_SLOTS + 1; i++)
		CHECK(subject->lock_until(&past, NULL) == ETIMEDOUT);
	return NULL;
}

static void *attach(void *attached)
{
	*(bool *)attached = lw_thread_attach() != 0;
	return NULL;
}

/*
 * Runs in the child of a fork at which half of all slots were abandoned. None is in the child, so
 * a wait with a limit can use a queue node there.
 */
static void time_out_in_child(void *arg)
{
	struct timespec past = from_now(0);
	struct wait wait = {.subject = arg, .deadline = &past};
	uint64_t nodeless = counted(LW_EVENT_nodeless_acquisitions);

	begin(&wait);
	CHECK(end(&wait) == ETIMEDOUT);
	CHECK(counted(LW_EVENT_nodeless_acquisitions) == nodeless);
}

/*
 * Behind a parked queue head, every wait that times out abandons its slot. Half of all slots must
 * remain for waits without a limit.
 */
static void check_slots_remain(const struct subject *subject)
{
	uint64_t before = halts(), nodeless;
	struct wait head = {.subject = subject};
	bool attached = false;
	pthread_t thread;

	watch(subject->name);
	subject->lock();
	begin(&head);
	await_halts(before, 1);
	nodeless = counted(LW_EVENT_nodeless_acquisitions);
	thread_start(&thread, 0, time_out_often, (void *)subject);
	CHECK(pthread_join(thread, NULL) == 0);
	/* The limit of half of all slots was reached: later waits had no queue node. */
	CHECK(counted(LW_EVENT_nodeless_acquisitions) > nodeless);
	thread_start(&thread, 0, attach, &attached);
	CHECK(pthread_join(thread, NULL) == 0);
	CHECK(attached);
	CHECK(in_child(time_out_in_child, (void *)subject) == 0);
	/* The queue head takes the abandoned nodes out of the queue and reclaims their slots. */
	subject->unlock();
	CHECK(end(&head) == 0);
	CHECK(lw_user_slot_may_be_abandoned());
	check_free(subject);
}

/* A signal handler takes a slot while ours is hidden; then we restore ours. */
static void check_kept_slot(void)
{
	uint32_t own = lw_thread_attach();

	lw_user_thread.depth++;
	lw_user_slot_hide();
	CHECK(lw_user_slot_take() != own);
	lw_user_slot_restore(own);
	CHECK(lw_user_thread.slot == own);
	lw_user_thread.depth--;
}

/* Takes as many slots as have ever been used: all of them must be on the free list again. */
static void check_no_slot_is_lost(void)
{
	static bool seen[LW_MAX_SLOTS + 1];
	uint32_t used = lw_user_slots();

	seen[lw_thread_attach()] = true;
	for (uint32_t taken = 1; taken < used; taken++) {
		uint32_t slot;

		lw_user_thread.slot = 0;
		slot = lw_user_slot_take();
		CHECK(slot && slot <= used && !seen[slot]);
		seen[slot] = true;
	}
}

int main(void)
{
	static const clockid_t clocks[] = {CLOCK_REALTIME, CLOCK_MONOTONIC};
	struct lw_mutex held = LW_MUTEX_INIT;

	lw_mutex_lock(&held);
	CHECK(lw_mutex_lock_until(&held, CLOCK_BOOTTIME, NULL, NULL) == EINVAL);
	for (size_t i = 0; i < 2 * UNTIL_SUBJECTS; i++) {
		test_clock = clocks[i / UNTIL_SUBJECTS];
		check_results(&subjects[i % UNTIL_SUBJECTS]);
		check_cancel_asleep(&subjects[i % UNTIL_SUBJECTS]);
		check_all_leave(&subjects[i % UNTIL_SUBJECTS]);
		check_come_and_go(&subjects[i % UNTIL_SUBJECTS]);
		check_slots_remain(&subjects[i % UNTIL_SUBJECTS]);
	}
	check_kept_slot();
	check_no_slot_is_lost();
	return 0;
}
