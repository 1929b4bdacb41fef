// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/* Threads contend in a sandbox that allows hardly any system call but futex once they have started.
 */
#include "waiters.h"

#include <linux/filter.h>
#include <linux/futex.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#define THREADS 12
#define TURNS	2000

static pthread_barrier_t all;
static bool refused;

static void *contend(void *arg)
{
	static uint32_t nobody;
	const struct timespec moment = {.tv_nsec = 50000};
	const struct subject *subject = arg;

	CHECK(lw_thread_attach() != 0);
	pthread_barrier_wait(&all);
	/* main installs the filter between these two. */
	pthread_barrier_wait(&all);
	for (int turn = 0; turn < TURNS; turn++) {
		subject->lock();
		CHECK(!inside);
		inside = true;
		acquired++;
		/* Sleep now and then, so that the other threads wait. */
		if (acquired % 64 == 0)
			syscall(SYS_futex, &nobody, FUTEX_WAIT_PRIVATE, 0, &moment);
		inside = false;
		subject->unlock();
	}
	pthread_barrier_wait(&all);
	/* The C library would free the thread's stack, with a system call that is not allowed. */
	syscall(SYS_exit, 0);
	return NULL;
}

#define ALLOW(name)                                            \
	BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_##name, 0, 1), \
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)

static bool set_filter(void)
{
	struct sock_filter filter[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		ALLOW(futex),
		ALLOW(exit),
		ALLOW(write),
		ALLOW(rt_sigreturn),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
	};
	struct sock_fprog program = {sizeof(filter) / sizeof(filter[0]), filter};

	return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
	       syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &program) ==
		       0;
}

static void sandboxed(void *arg)
{
	const struct subject *subject = arg;
	uint64_t before = halts();
	pthread_t thread;

	watch(subject->name);
	CHECK(pthread_barrier_init(&all, NULL, THREADS + 1) == 0);
	for (int i = 0; i < THREADS; i++)
		thread_start(&thread, 0, contend, (void *)subject);
	pthread_barrier_wait(&all);
	if (!set_filter())
		_exit(2);
	pthread_barrier_wait(&all);
	pthread_barrier_wait(&all);
	/* This becomes the status of the process when its last thread has ended. */
	syscall(SYS_exit, acquired != THREADS * TURNS || halts() == before);
}

int main(void)
{
	for (size_t i = 0; i < SUBJECTS && !refused; i++) {
		int status = in_child(sandboxed, (void *)&subjects[i]);

		refused = status == 2;
		CHECK(status == 0 || refused);
	}
	if (refused)
		printf("not tested: no filter of system calls can be set here\n");
	return 0;
}
