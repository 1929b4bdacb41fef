// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * A program that is confined: without /proc and /sys, as in a bare chroot; and where a filter of
 * system calls refuses those that a library can do without. The program is started there anew, so
 * that the preload library starts there too.
 */
#include "test.h"

#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <stddef.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#define THREADS 6
#define TURNS	repetitions(3000)

static struct {
	pthread_mutex_t mutex;
	pthread_rwlock_t rwlock;
	pthread_cond_t cond;
	unsigned int turns, ended; /* protected by mutex */
} shared = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_RWLOCK_INITIALIZER, PTHREAD_COND_INITIALIZER, 0, 0};

static void *take_turns(void *arg)
{
	for (unsigned int turn = 0; turn < TURNS; turn++) {
		CHECK(pthread_rwlock_rdlock(&shared.rwlock) == 0);
		CHECK(pthread_rwlock_unlock(&shared.rwlock) == 0);
		CHECK(pthread_mutex_lock(&shared.mutex) == 0);
		shared.turns++;
		CHECK(pthread_mutex_unlock(&shared.mutex) == 0);
	}
	CHECK(pthread_rwlock_wrlock(&shared.rwlock) == 0);
	CHECK(pthread_mutex_lock(&shared.mutex) == 0);
	shared.ended++;
	CHECK(pthread_cond_signal(&shared.cond) == 0);
	CHECK(pthread_mutex_unlock(&shared.mutex) == 0);
	CHECK(pthread_rwlock_unlock(&shared.rwlock) == 0);
	return arg;
}

static void contend(void)
{
	pthread_t threads[THREADS];

	for (int i = 0; i < THREADS; i++)
		threads[i] = start(take_turns, NULL);
	CHECK(pthread_mutex_lock(&shared.mutex) == 0);
	while (shared.ended < THREADS)
		CHECK(pthread_cond_wait(&shared.cond, &shared.mutex) == 0);
	CHECK(shared.turns == THREADS * TURNS);
	CHECK(pthread_mutex_unlock(&shared.mutex) == 0);
	for (int i = 0; i < THREADS; i++)
		join(threads[i]);
}

/* Confines a child. False where this process may not do that. */

static bool hide_files(void)
{
	return (unshare(CLONE_NEWNS) == 0 || unshare(CLONE_NEWUSER | CLONE_NEWNS) == 0) &&
	       mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0 &&
	       mount("none", "/proc", "tmpfs", 0, NULL) == 0 &&
	       mount("none", "/sys", "tmpfs", 0, NULL) == 0;
}

#define REFUSE(name)                                           \
	BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_##name, 0, 1), \
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM)

static bool refuse_system_calls(void)
{
	struct sock_filter filter[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		REFUSE(clock_nanosleep),
		REFUSE(getcpu),
		REFUSE(membarrier),
		REFUSE(sched_getaffinity),
		REFUSE(sched_getscheduler),
		REFUSE(sched_yield),
		REFUSE(get_mempolicy),
		REFUSE(getrandom),
		REFUSE(sysinfo),
		REFUSE(madvise),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = {sizeof(filter) / sizeof(filter[0]), filter};

	return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
	       prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program, 0, 0) == 0;
}

#define REFUSED 9

static void check_confined(const char *program, bool (*confine)(void), const char *how)
{
	char *const arguments[] = {"", "confined", NULL};
	pid_t child = fork();
	int status;

	CHECK(child >= 0);
	if (child == 0) {
		if (!confine())
			_exit(REFUSED);
		exec_program(program, arguments, environ);
	}
	CHECK(waitpid(child, &status, 0) == child && WIFEXITED(status));
	if (WEXITSTATUS(status) == REFUSED)
		printf("%s not tested: it is not allowed here\n", how);
	else
		CHECK(WEXITSTATUS(status) == 0);
}

int main(int argc, char **argv)
{
	begin();
	contend();
	if (argc > 1)
		return 0;
	check_confined(argv[0], hide_files, "without /proc and /sys:");
	check_confined(argv[0], refuse_system_calls, "with system calls that are refused:");
	return 0;
}
