// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * The functions that a source calls for its accesses to memory. The compiler puts these calls in,
 * with -fsanitize=thread: one for each atomic access, whatever it is written in, and one before
 * each access that is not atomic. crates/check/src/source/ makes a site for each call.
 *
 * An access that is not atomic is done by the source itself, to real memory. Before a read, this
 * file puts the value there that the engine has. After a write, the value is there: the next call
 * gives it to the engine. Meanwhile no other thread runs.
 *
 * Variables on a thread's stack are its own, and no operations.
 */
#include <linux/futex.h>
#include <sys/syscall.h>

#include "world_surroundings.h"

/* What the source calls is defined here and in no header. */
#pragma GCC diagnostic ignored "-Wmissing-prototypes"
#ifndef __clang__
#pragma GCC diagnostic ignored "-Wbuiltin-declaration-mismatch"
#else
#pragma GCC diagnostic ignored "-Wincompatible-library-redeclaration"
#endif

/* The address behind a call, and the first site of the call. */
struct lw_check_return {
	const void *address;
	const struct lw_check_site *sites;
};
extern const struct lw_check_return __start_lw_check_returns[] __attribute__((weak));
extern const struct lw_check_return __stop_lw_check_returns[] __attribute__((weak));

/* The calls, for the engine. */
extern const struct lw_check_return *const lw_check_calls[1];
const struct lw_check_return *const lw_check_calls[1] = {__start_lw_check_returns};

/* Is this an address of the check? Else it is the thread's own, or constant, or lock code does not
 * run. */
bool lw_check_is_shared(const volatile void *p);
/* And is memory there? */
bool lw_check_is_memory(const volatile void *p);
/* The operation at this site cannot be checked. */
void lw_check_refuse(const struct lw_check_site *site, const char *why) __attribute__((noreturn));
/* Does the memory model have a fence of this order, or is its own stronger? */
bool lw_check_has_fence(enum lw_check_order order, bool is_linux);
/* A thread-local variable. */
void *lw_check_thread_local(const void *index);
void lw_check_broken(const char *promise);

/* The sites of a call that accesses memory of any size: by the sizes 1, 2, 4 and 8. */
enum { LW_CHECK_SIZES = 4 };

static const struct lw_check_site *sites_of(const void *address)
{
	const struct lw_check_return *call = __start_lw_check_returns;

	while (call < __stop_lw_check_returns && call->address != address)
		call++;
	return call < __stop_lw_check_returns ? call->sites : NULL;
}

#define HERE() sites_of(__builtin_return_address(0))

static uint64_t get(const volatile void *p, size_t size)
{
	switch (size) {
	case 1:
		return *(const volatile uint8_t *)p;
	case 2:
		return *(const volatile uint16_t *)p;
	case 4:
		return *(const volatile uint32_t *)p;
	default:
		return *(const volatile uint64_t *)p;
	}
}

static void put(volatile void *p, size_t size, uint64_t value)
{
	switch (size) {
	case 1:
		*(volatile uint8_t *)p = (uint8_t)value;
		break;
	case 2:
		*(volatile uint16_t *)p = (uint16_t)value;
		break;
	case 4:
		*(volatile uint32_t *)p = (uint32_t)value;
		break;
	default:
		*(volatile uint64_t *)p = value;
	}
}

/* The logarithm of the size of the next access to a piece of memory. */
static unsigned int next_size(uintptr_t p, size_t left)
{
	unsigned int size = LW_CHECK_SIZES - 1;

	while (((size_t)1 << size) > left || p % ((size_t)1 << size) != 0)
		size--;
	return size;
}

/* The last write that the engine does not know of. Only one thread of the process runs the source.
 */
static struct {
	const struct lw_check_site *sites;
	uintptr_t p;
	size_t size;
	bool is_split;
} last;

/* The most bytes of an access that is not atomic. */
enum { MOST = 512 };

static void write_split(const struct lw_check_site *sites, uintptr_t p, size_t size)
{
	uint64_t values[MOST / 8 + 16];
	unsigned int n = 0;

	for (size_t at = 0; at < size; at += (size_t)1 << next_size(p + at, size - at))
		values[n++] = get((void *)(p + at), (size_t)1 << next_size(p + at, size - at));
	n = 0;
	for (size_t at = 0; at < size;) {
		unsigned int one = next_size(p + at, size - at);

		lw_check_operate(&sites[one], p + at, values[n++], 0);
		at += (size_t)1 << one;
	}
}

/* Tell the engine of the last write. */
void lw_check_flush(void)
{
	const struct lw_check_site *sites = last.sites;

	if (!sites)
		return;
	last.sites = NULL;
	if (last.is_split)
		write_split(sites, last.p, last.size);
	else
		lw_check_operate(sites, last.p, get((void *)last.p, last.size), 0);
}

static void before_write(const struct lw_check_site *sites, const volatile void *p, size_t size,
			 bool is_split)
{
	lw_check_flush();
	if (!lw_check_is_shared(p))
		return;
	/* The engine does not come back from this one. */
	if (!lw_check_is_memory(p))
		lw_check_operate(sites, (uintptr_t)p, 0, 0);
	last.sites = sites;
	last.p = (uintptr_t)p;
	last.size = size;
	last.is_split = is_split;
}

static void before_read(const struct lw_check_site *site, volatile void *p, size_t size)
{
	lw_check_flush();
	if (lw_check_is_shared(p)) {
		uint64_t value = lw_check_operate(site, (uintptr_t)p, 0, 0);

		/* Memory that may not be written is none of the check, and read as it is. */
		put(p, size, value);
	}
}

static void read_split(const struct lw_check_site *sites, volatile void *p, size_t size)
{
	uint64_t values[MOST / 8 + 16];
	uintptr_t first = (uintptr_t)p;
	unsigned int n = 0;

	lw_check_flush();
	if (!lw_check_is_shared(p))
		return;
	for (size_t at = 0; at < size;) {
		unsigned int one = next_size(first + at, size - at);

		values[n++] = lw_check_operate(&sites[one], first + at, 0, 0);
		at += (size_t)1 << one;
	}
	n = 0;
	for (size_t at = 0; at < size;) {
		unsigned int one = next_size(first + at, size - at);

		put((void *)(first + at), (size_t)1 << one, values[n++]);
		at += (size_t)1 << one;
	}
}

#define PLAIN(prefix, bytes)                           \
	void __tsan_##prefix##read##bytes(void *p)     \
	{                                              \
		before_read(HERE(), p, bytes);         \
	}                                              \
	void __tsan_##prefix##write##bytes(void *p)    \
	{                                              \
		before_write(HERE(), p, bytes, false); \
	}
#define SPLIT(prefix, bytes)                          \
	void __tsan_##prefix##read##bytes(void *p)    \
	{                                             \
		read_split(HERE(), p, bytes);         \
	}                                             \
	void __tsan_##prefix##write##bytes(void *p)   \
	{                                             \
		before_write(HERE(), p, bytes, true); \
	}
PLAIN(, 1)
PLAIN(, 2)
PLAIN(, 4)
PLAIN(, 8)
PLAIN(volatile_, 1)
PLAIN(volatile_, 2)
PLAIN(volatile_, 4)
PLAIN(volatile_, 8)
SPLIT(, 16)
SPLIT(volatile_, 16)
SPLIT(unaligned_, 2)
SPLIT(unaligned_, 4)
SPLIT(unaligned_, 8)
SPLIT(unaligned_, 16)
SPLIT(unaligned_volatile_, 2)
SPLIT(unaligned_volatile_, 4)
SPLIT(unaligned_volatile_, 8)
SPLIT(unaligned_volatile_, 16)

static void check_size(size_t size)
{
	if (size > MOST)
		lw_check_broken("more than 512 bytes are accessed at once, which is not checked");
}

void __tsan_read_range(void *p, size_t size)
{
	check_size(size);
	read_split(HERE(), p, size);
}

void __tsan_write_range(void *p, size_t size)
{
	check_size(size);
	before_write(HERE(), p, size, true);
}

void *memset(void *p, int byte, size_t size)
{
	const struct lw_check_site *sites = HERE();

	check_size(size);
	before_write(sites, p, size, true);
	for (size_t i = 0; i < size; i++)
		((volatile uint8_t *)p)[i] = (uint8_t)byte;
	lw_check_flush();
	return p;
}

static void *copy(const struct lw_check_site *sites, void *to, const void *from, size_t size)
{
	volatile uint8_t bytes[MOST];

	check_size(size);
	read_split(sites, (void *)(uintptr_t)from, size);
	for (size_t i = 0; i < size; i++)
		bytes[i] = ((const volatile uint8_t *)from)[i];
	before_write(sites ? sites + LW_CHECK_SIZES : NULL, to, size, true);
	for (size_t i = 0; i < size; i++)
		((volatile uint8_t *)to)[i] = bytes[i];
	lw_check_flush();
	return to;
}

void *memmove(void *to, const void *from, size_t size)
{
	return copy(HERE(), to, from, size);
}

void *memcpy(void *to, const void *from, size_t size)
{
	return copy(HERE(), to, from, size);
}

/* The order of a site, as C has it. Consume is acquire, as compilers have it. */
static enum lw_check_order order_of(int order)
{
	static const uint8_t orders[] = {LW_CHECK_relaxed, LW_CHECK_acquire, LW_CHECK_acquire,
					 LW_CHECK_release, LW_CHECK_acq_rel, LW_CHECK_seq_cst};

	return orders[(unsigned int)order & 0x7fff];
}

static void check_order(const struct lw_check_site *site, int order, unsigned int known)
{
	if (order_of(order) != known)
		lw_check_refuse(
			site,
			"the memory order is no constant, or the compiler has moved it; write the "
			"order into the call");
}

static uint64_t operate(const struct lw_check_site *site, volatile void *p, uint64_t a, uint64_t b,
			int order)
{
	lw_check_flush();
	check_order(site, order, site->order);
	return lw_check_operate(site, (uintptr_t)p, a, b);
}

/* An operation that the engine does not have, by compare-and-swap. A wrong guess is a read. */
#define BY_GUESS(bits, name, expression)                                               \
	uint##bits##_t __tsan_atomic##bits##_fetch_##name(volatile uint##bits##_t *p,  \
							  uint##bits##_t v, int order) \
	{                                                                              \
		const struct lw_check_site *site = HERE();                             \
		uint##bits##_t old = 0;                                                \
                                                                                       \
		if (!lw_check_is_shared(p))                                            \
			return __atomic_fetch_##name(p, v, __ATOMIC_SEQ_CST);          \
		for (;;) {                                                             \
			uint##bits##_t was = (uint##bits##_t)operate(                  \
				site, p, old, (uint##bits##_t)(expression), order);    \
                                                                                       \
			if (was == old)                                                \
				return old;                                            \
			old = was;                                                     \
		}                                                                      \
	}
#define UPDATE(bits, name, builtin, operand)                                                      \
	uint##bits##_t __tsan_atomic##bits##_##name(volatile uint##bits##_t *p, uint##bits##_t v, \
						    int order)                                    \
	{                                                                                         \
		const struct lw_check_site *site = HERE();                                        \
                                                                                                  \
		if (!lw_check_is_shared(p))                                                       \
			return builtin(p, v, __ATOMIC_SEQ_CST);                                   \
		return (uint##bits##_t)operate(site, p, (uint##bits##_t)(operand), 0, order);     \
	}
#define COMPARE(bits, how)                                                                         \
	int __tsan_atomic##bits##_compare_exchange_##how(volatile uint##bits##_t *p,               \
							 uint##bits##_t *expected,                 \
							 uint##bits##_t v, int order, int failure) \
	{                                                                                          \
		const struct lw_check_site *site = HERE();                                         \
		uint##bits##_t old, want;                                                          \
                                                                                                   \
		/* What is expected may be in shared memory, and is accessed as any other. */      \
		before_read(&site[1], expected, sizeof(*expected));                                \
		want = old = *expected;                                                            \
		if (lw_check_is_shared(p)) {                                                       \
			check_order(site, failure, site->failure);                                 \
			old = (uint##bits##_t)operate(site, p, want, v, order);                    \
		} else {                                                                           \
			__atomic_compare_exchange_n(p, &old, v, false, __ATOMIC_SEQ_CST,           \
						    __ATOMIC_SEQ_CST);                             \
		}                                                                                  \
		if (old != want) {                                                                 \
			before_write(&site[2], expected, sizeof(*expected), false);                \
			*expected = old;                                                           \
		}                                                                                  \
		return old == want;                                                                \
	}
#define ATOMIC(bits)                                                                              \
	uint##bits##_t __tsan_atomic##bits##_load(const volatile uint##bits##_t *p, int order)    \
	{                                                                                         \
		const struct lw_check_site *site = HERE();                                        \
                                                                                                  \
		if (!lw_check_is_shared(p))                                                       \
			return __atomic_load_n(p, __ATOMIC_SEQ_CST);                              \
		return (uint##bits##_t)operate(site, (volatile void *)(uintptr_t)p, 0, 0, order); \
	}                                                                                         \
	void __tsan_atomic##bits##_store(volatile uint##bits##_t *p, uint##bits##_t v, int order) \
	{                                                                                         \
		const struct lw_check_site *site = HERE();                                        \
                                                                                                  \
		if (!lw_check_is_shared(p))                                                       \
			__atomic_store_n(p, v, __ATOMIC_SEQ_CST);                                 \
		else                                                                              \
			(void)operate(site, p, v, 0, order);                                      \
	}                                                                                         \
	UPDATE(bits, exchange, __atomic_exchange_n, v)                                            \
	UPDATE(bits, fetch_add, __atomic_fetch_add, v)                                            \
	UPDATE(bits, fetch_sub, __atomic_fetch_sub, -v)                                           \
	UPDATE(bits, fetch_and, __atomic_fetch_and, v)                                            \
	UPDATE(bits, fetch_or, __atomic_fetch_or, v)                                              \
	BY_GUESS(bits, xor, old ^ v)                                                              \
	BY_GUESS(bits, nand, ~(old & v))                                                          \
	COMPARE(bits, strong)                                                                     \
	COMPARE(bits, weak)                                                                       \
	uint##bits##_t __tsan_atomic##bits##_compare_exchange_val(                                \
		volatile uint##bits##_t *p, uint##bits##_t want, uint##bits##_t v, int order,     \
		int failure)                                                                      \
	{                                                                                         \
		const struct lw_check_site *site = HERE();                                        \
                                                                                                  \
		if (!lw_check_is_shared(p)) {                                                     \
			__atomic_compare_exchange_n(p, &want, v, false, __ATOMIC_SEQ_CST,         \
						    __ATOMIC_SEQ_CST);                            \
			return want;                                                              \
		}                                                                                 \
		check_order(site, failure, site->failure);                                        \
		return (uint##bits##_t)operate(site, p, want, v, order);                          \
	}
ATOMIC(8)
ATOMIC(16)
ATOMIC(32)
ATOMIC(64)

static void fence(const struct lw_check_site *site, int order, bool is_linux)
{
	if (order == __ATOMIC_RELAXED || !lw_check_is_shared(NULL))
		return;
	if (!lw_check_has_fence(order_of(order), is_linux))
		lw_check_refuse(site,
				"this fence is weaker than those of the memory model, so the check "
				"would miss mistakes; use a full fence, or accesses that acquire "
				"and release");
	(void)operate(site, NULL, 0, 0, order);
}

void __tsan_atomic_thread_fence(int order)
{
	fence(HERE(), order, false);
}

/* Those of Linux order less than C11's: loads, or stores, among themselves. */
void lw_check_rmb(void)
{
	fence(HERE(), __ATOMIC_ACQUIRE, true);
}

void lw_check_wmb(void)
{
	fence(HERE(), __ATOMIC_RELEASE, true);
}

void __tsan_atomic_signal_fence(int order)
{
	(void)order;
}

void __tsan_init(void)
{
}

void __tsan_func_entry(void *caller)
{
	(void)caller;
}

void __tsan_func_exit(void)
{
}

/* Sleeps and yields: time passes anyway. */
int sched_yield(void)
{
	return 0;
}

int usleep(unsigned int us)
{
	(void)us;
	return 0;
}

int nanosleep(const void *time, void *rest)
{
	(void)time;
	(void)rest;
	return 0;
}

/* The result of a sleep that did not end by time. It is no value of a futex, with which a sleep
 * that does not begin ends (crates/check/src/model.rs). */
#define WOKEN ((uint64_t)1 << 32)

/* A futex: the sites of a call sleep, and end a sleep. errno cannot be read. */
long syscall(long number, uint32_t *p, long operation, uint32_t value, const void *limit,
	     void *other, uint32_t bits)
{
	const struct lw_check_site *sites = HERE();
	bool has_bits;
	long woken = 0;

	(void)other;
	lw_check_flush();
	if (number != SYS_futex)
		lw_check_refuse(sites, "a system call other than a futex is not checked");
	operation = (int)operation & ~(FUTEX_PRIVATE_FLAG | FUTEX_CLOCK_REALTIME);
	has_bits = operation == FUTEX_WAIT_BITSET || operation == FUTEX_WAKE_BITSET;
	if (has_bits && bits != FUTEX_BITSET_MATCH_ANY)
		lw_check_refuse(sites, "a futex with bits is not checked; use "
				       "FUTEX_BITSET_MATCH_ANY");
	switch (operation) {
	case FUTEX_WAIT:
	case FUTEX_WAIT_BITSET:
		return lw_check_operate(&sites[0], (uintptr_t)p, value, limit != NULL) == WOKEN
			       ? 0
			       : -1;
	case FUTEX_WAKE:
	case FUTEX_WAKE_BITSET:
		/* One at least, also if none are asked for. */
		while (lw_check_operate(&sites[1], (uintptr_t)p, 0, 0) != 0)
			if (++woken >= (int32_t)value)
				break;
		return woken;
	default:
		lw_check_refuse(sites, "this operation of a futex is not checked");
	}
}

/* A promise of the source itself. It does not go on behind the operation. */
__attribute__((noreturn)) static void stop(const struct lw_check_site *site, const char *promise)
{
	lw_check_broken(promise);
	for (;;)
		(void)lw_check_operate(site, 0, 0, 0);
}

void __assert_fail(const char *condition, const char *file, unsigned int line, const char *function)
{
	(void)file;
	(void)line;
	(void)function;
	lw_check_flush();
	stop(HERE(), condition);
}

void abort(void)
{
	lw_check_flush();
	stop(HERE(), "abort() is called");
}

void *__tls_get_addr(const void *index)
{
	return lw_check_thread_local(index);
}
