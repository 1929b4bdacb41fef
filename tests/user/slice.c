// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * Time slice extensions: what the library asks of the kernel, and what it does when it gets them.
 * The kernel's part is played here, since few kernels have extensions: prctl(), and syscall() for
 * rseq and rseq_slice_yield, stand before those of the C library.
 */
#include "../runner.h"
#include "test.h"

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdarg.h>
#include <sys/auxv.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include "slice.h"

#define SLICE_EXTENSION 79
#define GET		1
#define SET		2
#define SLICE_YIELD	471
#define REQUEST		28
#define GRANTED		29
#define UNREGISTER	1

/* The kernel: whether it has extensions, the area that a thread has registered, and whether it
 * may ask. */
static bool has_extensions = true;
static __thread uint8_t *area;
static __thread bool enabled;
static unsigned int yields, unregistered;
static bool yield_is_late;

int prctl(int option, ...)
{
	unsigned long what;
	va_list more;

	CHECK(option == SLICE_EXTENSION);
	va_start(more, option);
	what = va_arg(more, unsigned long);
	va_end(more);
	errno = EINVAL;
	if (!has_extensions)
		return -1;
	if (what == GET)
		return enabled;
	CHECK(what == SET && area);
	enabled = true;
	return 0;
}

long syscall(long number, ...)
{
	static long (*others)(long, ...);
	long a[6];
	va_list more;

	va_start(more, number);
	for (int i = 0; i < 6; i++)
		a[i] = va_arg(more, long);
	va_end(more);
	if (number == SYS_rseq) {
		if (a[2] == UNREGISTER) {
			CHECK(area == (uint8_t *)a[0]);
			area = NULL;
			__atomic_fetch_add(&unregistered, 1, __ATOMIC_RELAXED);
			return 0;
		}
		CHECK(!area && (unsigned long)a[0] % 32 == 0);
		area = (uint8_t *)a[0];
		return 0;
	}
	if (number == SLICE_YIELD) {
		CHECK(area[GRANTED] && !area[REQUEST]);
		area[GRANTED] = 0;
		yields++;
		return !yield_is_late;
	}
	if (!others)
		*(void **)&others = dlsym(RTLD_NEXT, "syscall");
	return others(number, a[0], a[1], a[2], a[3], a[4], a[5]);
}

/* The time slice of this thread ends. Returns whether it is extended. */
static bool slice_ends(void)
{
	if (!area || !enabled || !area[REQUEST])
		return false;
	area[REQUEST] = 0;
	area[GRANTED] = 1;
	return true;
}

/* The extension ends as well, or the thread makes a system call. */
static void extension_ends(void)
{
	area[GRANTED] = 0;
}

static struct lw_mutex mutex, other;
static uint64_t counts[LW_EVENT_COUNT];

static void check_counts(uint64_t granted, uint64_t yielded, uint64_t expired)
{
	lw_statistics(counts);
	CHECK(counts[LW_EVENT_slices_granted] == granted);
	CHECK(counts[LW_EVENT_slices_yielded] == yielded && yields >= yielded);
	CHECK(counts[LW_EVENT_slices_expired] == expired);
}

static void check_that_holders_ask(void)
{
	CHECK(!slice_ends());
	lw_mutex_lock(&mutex);
	CHECK(area[REQUEST]);
	lw_mutex_unlock(&mutex);
	CHECK(!slice_ends());
	CHECK(lw_mutex_trylock(&mutex));
	CHECK(area[REQUEST]);
	CHECK(!lw_mutex_trylock(&mutex));
	lw_mutex_unlock(&mutex);
	CHECK(!area[REQUEST]);
	CHECK(lw_mutex_lock_until(&mutex, CLOCK_MONOTONIC, &(struct timespec){0}, NULL) == 0);
	CHECK(area[REQUEST]);
	lw_mutex_unlock(&mutex);
	check_counts(0, 0, 0);
}

static void check_that_the_cpu_is_given_back(void)
{
	lw_mutex_lock(&mutex);
	CHECK(slice_ends());
	lw_mutex_unlock(&mutex);
	CHECK(yields == 1);
	check_counts(1, 1, 0);

	/* Too late: the extension has ended before the release... */
	lw_mutex_lock(&mutex);
	CHECK(slice_ends());
	extension_ends();
	lw_mutex_unlock(&mutex);
	CHECK(yields == 1);
	check_counts(2, 1, 1);

	/* ...or just after the thread has looked. */
	yield_is_late = true;
	lw_mutex_lock(&mutex);
	CHECK(slice_ends());
	lw_mutex_unlock(&mutex);
	CHECK(yields == 2);
	check_counts(3, 1, 2);
	yield_is_late = false;
}

/* A thread asks once, however many locks it holds, and no more after the first release. */
static void check_nested_locks(void)
{
	lw_mutex_lock(&mutex);
	CHECK(slice_ends());
	lw_mutex_lock(&other);
	/* Linux ends a process that asks while it has an extension. */
	CHECK(!area[REQUEST] && area[GRANTED]);
	lw_mutex_unlock(&other);
	CHECK(yields == 3 && !area[GRANTED]);
	lw_mutex_unlock(&mutex);
	check_counts(4, 2, 2);
}

static void *wait_for_it(void *arg)
{
	lw_mutex_lock(&mutex);
	CHECK(area && area[REQUEST]);
	lw_mutex_unlock(&mutex);
	return arg;
}

/* A thread that had to wait asks as well. Its area is its own. */
static void check_waiters(void)
{
	pthread_t waiter;

	lw_mutex_lock(&mutex);
	CHECK(pthread_create(&waiter, NULL, wait_for_it, NULL) == 0);
	do
		lw_statistics(counts);
	while (!counts[LW_EVENT_halts_at_head]);
	lw_mutex_unlock(&mutex);
	pthread_join(waiter, NULL);
	CHECK(unregistered == 1);
}

static void check_that_it_can_be_turned_off(void)
{
	CHECK(lw_set_tunable(LW_TUNABLE_mutex_slice, 0) == 0);
	lw_mutex_lock(&mutex);
	CHECK(!area[REQUEST]);
	lw_mutex_unlock(&mutex);
}

/* The kernel has no extensions: a line says so, once. */
static int run_without(void)
{
	has_extensions = false;
	for (int i = 0; i < 2; i++) {
		CHECK(lw_set_tunable(LW_TUNABLE_mutex_slice, 1) == 0);
		lw_mutex_lock(&mutex);
		CHECK(!area);
		lw_mutex_unlock(&mutex);
	}
	return 0;
}

int main(int argc, char **argv)
{
	char glibc[] = "GLIBC_TUNABLES=glibc.pthread.rseq=0", with[] = "PART=with";
	char without[] = "PART=without";
	const char *part = getenv("PART");
	char err[512];

	(void)argc;
	if (!part) {
		/* glibc reads its tunables when a program starts. */
		CHECK(run_program(argv[0], (char *[]){glibc, with, NULL}, err, sizeof(err)) == 0);
		CHECK(!*err);
		CHECK(run_program(argv[0], (char *[]){glibc, without, NULL}, err, sizeof(err)) ==
		      0);
		CHECK(strstr(err, "Linux 7.0") && strchr(err, '\n') == err + strlen(err) - 1);
		return 0;
	}
	if (strcmp(part, "without") == 0)
		return run_without();
	CHECK(lw_set_tunable(LW_TUNABLE_mutex_slice, 1) == 0);
	check_that_holders_ask();
	check_that_the_cpu_is_given_back();
	check_nested_locks();
	check_waiters();
	check_that_it_can_be_turned_off();
	return 0;
}
