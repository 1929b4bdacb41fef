// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * A program in which a thread waits for a lock, while the holder does what the argument says. It
 * knows nothing of Lockworks.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <pthread.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define MS	1000000L
#define LONG_US 200000

/* The exit status if this machine cannot do what the argument says. */
#define CANNOT 77

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER, inner = PTHREAD_MUTEX_INITIALIZER;
static pthread_rwlock_t rwlock = PTHREAD_RWLOCK_INITIALIZER;
static pid_t waiter;
static int cpus[2];

static long now(clockid_t clock)
{
	struct timespec time;

	clock_gettime(clock, &time);
	return time.tv_sec * 1000 * MS + time.tv_nsec;
}

/* Waits until a thread that has written its ID sleeps. */
static void await_sleep(const pid_t *tid)
{
	char path[64], state = 0;

	while (state != 'S') {
		FILE *file;

		usleep(1000);
		snprintf(path, sizeof(path), "/proc/self/task/%d/stat",
			 __atomic_load_n(tid, __ATOMIC_RELAXED));
		file = fopen(path, "r");
		if (!file)
			continue;
		if (fscanf(file, "%*d (%*[^)]) %c", &state) != 1)
			state = 0;
		fclose(file);
	}
}

static void on_cpu(int cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	sched_setaffinity(0, sizeof(set), &set);
}

static void *wait_for_mutex(void *arg)
{
	if (cpus[1])
		on_cpu(cpus[1]);
	__atomic_store_n(&waiter, gettid(), __ATOMIC_RELAXED);
	pthread_mutex_lock(arg); /* waiter's line */
	pthread_mutex_unlock(arg);
	return arg;
}

static void *wait_in_vain(void *arg)
{
	struct timespec deadline;

	clock_gettime(CLOCK_REALTIME, &deadline);
	deadline.tv_sec += deadline.tv_nsec >= 950 * MS;
	deadline.tv_nsec = (deadline.tv_nsec + 50 * MS) % (1000 * MS);
	__atomic_store_n(&waiter, gettid(), __ATOMIC_RELAXED);
	if (pthread_mutex_timedlock(arg, &deadline) != ETIMEDOUT ||
	    now(CLOCK_REALTIME) < deadline.tv_sec * 1000 * MS + deadline.tv_nsec)
		exit(1);
	return arg;
}

static void *wait_to_read(void *arg)
{
	__atomic_store_n(&waiter, gettid(), __ATOMIC_RELAXED);
	pthread_rwlock_rdlock(&rwlock);
	pthread_rwlock_unlock(&rwlock);
	return arg;
}

static void *wait_to_write(void *arg)
{
	__atomic_store_n(&waiter, gettid(), __ATOMIC_RELAXED);
	pthread_rwlock_wrlock(&rwlock);
	pthread_rwlock_unlock(&rwlock);
	return arg;
}

static void nap(void)
{
	usleep(LONG_US);
}

static void *write_late(void *arg)
{
	nap();
	if (write(*(int *)arg, "x", 1) != 1)
		exit(1);
	return arg;
}

static void read_pipe(void)
{
	pthread_t thread;
	int ends[2];
	char byte;

	if (pipe(ends) || pthread_create(&thread, NULL, write_late, &ends[1]) ||
	    read(ends[0], &byte, 1) != 1)
		exit(1);
	pthread_join(thread, NULL);
}

static void run(void)
{
	long begin = now(CLOCK_THREAD_CPUTIME_ID);

	while (now(CLOCK_THREAD_CPUTIME_ID) - begin < 20 * MS)
		;
}

static int competes;

static void *compete(void *arg)
{
	on_cpu(cpus[0]);
	__atomic_store_n(&competes, 1, __ATOMIC_RELEASE);
	for (;;)
		__atomic_signal_fence(__ATOMIC_SEQ_CST);
	return arg;
}

/* Runs beside another thread on the same CPU, with little weight. */
static void be_preempted(void)
{
	pthread_t thread;
	long begin;

	pthread_create(&thread, NULL, compete, NULL);
	pthread_detach(thread);
	while (!__atomic_load_n(&competes, __ATOMIC_ACQUIRE))
		usleep(1000);
	on_cpu(cpus[0]);
	setpriority(PRIO_PROCESS, (id_t)gettid(), 19);
	begin = now(CLOCK_MONOTONIC);
	while (now(CLOCK_MONOTONIC) - begin < 1000 * MS)
		;
}

struct missing {
	int file;
	char *page;
};

static void *bring_page(void *arg)
{
	const struct missing *missing = arg;
	struct uffd_msg message;
	struct uffdio_zeropage page = {.range = {(uintptr_t)missing->page, 4096}};

	if (read(missing->file, &message, sizeof(message)) != sizeof(message))
		exit(1);
	nap();
	ioctl(missing->file, UFFDIO_ZEROPAGE, &page);
	return arg;
}

/* Reads a page that another thread brings in after a while. */
static void fault(void)
{
	struct uffdio_api api = {.api = UFFD_API};
	struct missing missing = {
		.file = (int)syscall(SYS_userfaultfd, O_CLOEXEC | UFFD_USER_MODE_ONLY)};
	struct uffdio_register range = {.range = {.len = 4096},
					.mode = UFFDIO_REGISTER_MODE_MISSING};
	pthread_t thread;

	missing.page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	range.range.start = (uintptr_t)missing.page;
	if (missing.file < 0 || ioctl(missing.file, UFFDIO_API, &api) ||
	    ioctl(missing.file, UFFDIO_REGISTER, &range))
		exit(CANNOT);
	pthread_create(&thread, NULL, bring_page, &missing);
	missing.page[1] = 1; /* fault's line */
	pthread_join(thread, NULL);
}

static void *hold_inner(void *arg)
{
	pthread_mutex_lock(&inner);
	__atomic_store_n((int *)arg, 1, __ATOMIC_RELEASE);
	nap();
	pthread_mutex_unlock(&inner);
	return arg;
}

static void nest(void)
{
	pthread_t thread;
	int held = 0;

	pthread_create(&thread, NULL, hold_inner, &held);
	while (!__atomic_load_n(&held, __ATOMIC_ACQUIRE))
		usleep(1000);
	pthread_mutex_lock(&inner); /* inner line */
	pthread_mutex_unlock(&inner);
	pthread_join(thread, NULL);
}

static pthread_t begin_to_wait(void *(*wait)(void *))
{
	pthread_t thread;

	pthread_create(&thread, NULL, wait, &mutex);
	await_sleep(&waiter);
	return thread;
}

/* Holds the mutex, as do the functions that this one is inlined into. */
static inline __attribute__((always_inline)) void hold(void *(*wait)(void *), void (*act)(void))
{
	pthread_t thread;

	pthread_mutex_lock(&mutex); /* holder's line */
	thread = begin_to_wait(wait);
	act();
	pthread_mutex_unlock(&mutex);
	pthread_join(thread, NULL);
}

static void hold_rwlock(int (*lock)(pthread_rwlock_t *), void *(*wait)(void *))
{
	pthread_t thread;

	lock(&rwlock);
	thread = begin_to_wait(wait);
	nap();
	pthread_rwlock_unlock(&rwlock);
	pthread_join(thread, NULL);
}

/* Another process holds the mutex. */
static void share(void)
{
	pthread_mutexattr_t attr;
	pthread_mutex_t *shared =
		mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	int held[2];
	char byte;

	pthread_mutexattr_init(&attr);
	pthread_mutexattr_setpshared(&attr, PTHREAD_PROCESS_SHARED);
	pthread_mutex_init(shared, &attr);
	if (pipe(held))
		exit(1);
	if (fork() == 0) {
		pthread_mutex_lock(shared);
		if (write(held[1], "x", 1) != 1)
			_exit(1);
		nap();
		pthread_mutex_unlock(shared);
		_exit(0);
	}
	if (read(held[0], &byte, 1) != 1)
		exit(1);
	wait_for_mutex(shared);
	wait(NULL);
}

static const struct {
	const char *name;
	void (*act)(void);
} acts[] = {
	{"sleeps", nap},   {"reads", read_pipe}, {"runs", run}, {"preempted", be_preempted},
	{"faults", fault}, {"nests", nest},
};

int main(int argc, char **argv)
{
	if (argc == 4) {
		cpus[0] = atoi(argv[2]);
		cpus[1] = atoi(argv[3]);
	}
	for (size_t i = 0; i < sizeof(acts) / sizeof(acts[0]); i++) {
		if (!strcmp(argv[1], acts[i].name))
			hold(wait_for_mutex, acts[i].act);
	}
	if (!strcmp(argv[1], "in vain"))
		hold(wait_in_vain, nap);
	else if (!strcmp(argv[1], "read held"))
		hold_rwlock(pthread_rwlock_rdlock, wait_to_write);
	else if (!strcmp(argv[1], "write held"))
		hold_rwlock(pthread_rwlock_wrlock, wait_to_read);
	else if (!strcmp(argv[1], "shared"))
		share();
	return 0;
}
