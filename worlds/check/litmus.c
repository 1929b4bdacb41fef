// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * Litmus tests of the model checker. Each test lists all outcomes that RC11 allows, with the
 * release sequences of C++20; the engine must find these and no others. C++ does not cover fields
 * of a word, so the ARM manual's single-copy atomicity applies to them. A test says where the
 * engine is known to differ.
 */
#include "litmus.h"
#include "surroundings.h"

/* A test names the models that allow something else than C11, and leaves out the others. */
#pragma GCC diagnostic ignored "-Wmissing-field-initializers"

extern const struct lw_lockref_type *const lw_check_lockref_types[];

struct lw_litmus_memory {
	lw_atomic(uint32_t) x, y, z;
	lw_atomic(uint32_t) done;
	uint32_t plain;
	union {
		lw_atomic(uint32_t) word;
		lw_atomic(uint16_t) half[2];
		lw_atomic(uint8_t) byte[4];
	};
	lw_atomic(uint64_t) lockref;
};

/* A thread, as operations with commas between them. */
#define THREAD(name, ...)                            \
	static void name(struct lw_litmus_memory *m) \
	{                                            \
		__VA_ARGS__;                         \
	}                                            \
	_Static_assert(true, "a semicolon comes here")

#define see(value)	      lw_check_result(value)
#define put(v, value, order)  lw_store(&m->v, value, order)
#define get(v, order)	      see(lw_load(&m->v, order))
#define add(v, value, order)  see(lw_fetch_add(&m->v, value, order))
#define swap(v, value, order) see(lw_xchg(&m->v, value, order))
#define await(v, order)	      ((void)lw_await_ne(&m->v, ~0u, 0, order))
/* The last write in modification order: an observer that runs after all threads reads it. */
#define done()	  ((void)lw_fetch_add(&m->done, 1, acq_rel))
#define at_end(n) ((void)lw_await_eq(&m->done, ~0u, n, acquire))

static uint32_t try_cmpxchg_relaxed(struct lw_litmus_memory *m, uint32_t expected, uint32_t value)
{
	return lw_try_cmpxchg(&m->x, &expected, value, relaxed);
}

/* Return the old value, whether or not the compare-and-swap succeeds. */
static uint32_t cmpxchg_acquire(struct lw_litmus_memory *m, uint32_t expected, uint32_t value)
{
	(void)lw_try_cmpxchg(&m->y, &expected, value, acquire);
	return expected;
}

static uint32_t cmpxchg_seq_cst(struct lw_litmus_memory *m, uint32_t expected, uint32_t value)
{
	(void)lw_try_cmpxchg(&m->y, &expected, value, seq_cst);
	return expected;
}

/* Store buffering: may each thread miss the other's store? */

THREAD(sb_x_relaxed, put(x, 1, relaxed), get(y, relaxed));
THREAD(sb_y_relaxed, put(y, 1, relaxed), get(x, relaxed));
THREAD(sb_x_release, put(x, 1, release), get(y, acquire));
THREAD(sb_y_release, put(y, 1, release), get(x, acquire));
THREAD(sb_x_sc, put(x, 1, seq_cst), get(y, seq_cst));
THREAD(sb_y_sc, put(y, 1, seq_cst), get(x, seq_cst));
THREAD(sb_x_sc_store, put(x, 1, seq_cst), get(y, relaxed));
THREAD(sb_y_sc_store, put(y, 1, seq_cst), get(x, relaxed));
THREAD(sb_x_sc_fence, put(x, 1, relaxed), lw_fence(seq_cst), get(y, relaxed));
THREAD(sb_y_sc_fence, put(y, 1, relaxed), lw_fence(seq_cst), get(x, relaxed));
THREAD(sb_x_fence, put(x, 1, relaxed), lw_fence(acq_rel), get(y, relaxed));
THREAD(sb_y_fence, put(y, 1, relaxed), lw_fence(acq_rel), get(x, relaxed));
THREAD(sb_x_rmw, put(x, 1, relaxed), (void)lw_fetch_add(&m->z, 1, acq_rel), get(y, relaxed));
THREAD(sb_y_rmw, put(y, 1, relaxed), (void)lw_fetch_add(&m->z, 1, acq_rel), get(x, relaxed));
THREAD(sb_x_cmpxchg, put(x, 1, seq_cst), see(cmpxchg_seq_cst(m, 2, 3)));

#define SB_ALL "0,0 0,1 1,0 1,1"
#define SB_SC  "0,1 1,0 1,1"

static const struct lw_litmus store_buffering[] = {
	{"sb+relaxed", "may", SB_ALL, SB_SC, {sb_x_relaxed, sb_y_relaxed}, .tso = SB_ALL},
	{"sb+rel+acq",
	 "release and acquire do not help",
	 SB_ALL,
	 SB_SC,
	 {sb_x_release, sb_y_release},
	 .tso = SB_ALL},
	{"sb+sc", "seq_cst accesses forbid it", SB_SC, SB_SC, {sb_x_sc, sb_y_sc}},
	{"sb+sc-stores",
	 "so must be the loads, except behind smp_store_mb()",
	 SB_ALL,
	 SB_SC,
	 {sb_x_sc_store, sb_y_sc_store},
	 .kernel = SB_SC},
	{"sb+sc-fences", "seq_cst fences forbid it", SB_SC, SB_SC, {sb_x_sc_fence, sb_y_sc_fence}},
	{"sb+sc-fence+relaxed",
	 "one does not",
	 SB_ALL,
	 SB_SC,
	 {sb_x_sc_fence, sb_y_relaxed},
	 .tso = SB_ALL},
	{"sb+sc-fence+sc", "one and seq_cst accesses do", SB_SC, SB_SC, {sb_x_sc_fence, sb_y_sc}},
	{"sb+fences",
	 "acq_rel fences do not help, except as DMB or smp_mb()",
	 SB_ALL,
	 SB_SC,
	 {sb_x_fence, sb_y_fence},
	 .arm = SB_SC,
	 .kernel = SB_SC,
	 .tso = SB_ALL,
	 .riscv = SB_ALL},
	{"sb+rmws",
	 "one of two acq_rel read-modify-writes sees the other",
	 SB_SC,
	 SB_SC,
	 {sb_x_rmw, sb_y_rmw}},
	{"sb+cmpxchg",
	 "a failed compare-and-swap is a relaxed load, even if it is seq_cst",
	 SB_ALL,
	 SB_SC,
	 {sb_x_cmpxchg, sb_y_sc},
	 .kernel = SB_SC},
	{},
};

/* Message passing: does a thread that sees the flag y see the message x? */

THREAD(mp_put_relaxed, put(x, 1, relaxed), put(y, 1, relaxed));
THREAD(mp_put_release, put(x, 1, relaxed), put(y, 1, release));
THREAD(mp_put_fence, put(x, 1, relaxed), lw_fence(release), put(y, 1, relaxed));
THREAD(mp_put_late_fence, put(x, 1, relaxed), put(y, 1, relaxed), lw_fence(release));
THREAD(mp_get_relaxed, get(y, relaxed), get(x, relaxed));
THREAD(mp_get_acquire, get(y, acquire), get(x, relaxed));
THREAD(mp_get_dependency, get(y, dependency), get(x, relaxed));
THREAD(mp_get_fence, get(y, relaxed), lw_fence(acquire), get(x, relaxed));
THREAD(mp_get_early_fence, lw_fence(acquire), get(y, relaxed), get(x, relaxed));
THREAD(mp_await_relaxed, await(y, relaxed), get(x, relaxed));
THREAD(mp_await_acquire, await(y, acquire), get(x, relaxed));
THREAD(mp_await_equal, see(lw_await_eq(&m->y, 1, 1, acquire)), get(x, relaxed));
THREAD(mp_await_bounded, see(lw_await_ne_bounded(&m->y, ~0u, 0, 100)), get(x, relaxed));
THREAD(mp_cmpxchg_fails, see(cmpxchg_acquire(m, 2, 3)), get(x, relaxed));
THREAD(mp_cmpxchg_succeeds, see(cmpxchg_acquire(m, 1, 2)), get(x, relaxed));

#define MP_ALL "00 01 10 11"
#define MP_SC  "00 01 11"

static const struct lw_litmus message_passing[] = {
	{"mp+relaxed", "need not", MP_ALL, MP_SC, {mp_put_relaxed, mp_get_relaxed}},
	{"mp+rel+acq", "must", MP_SC, MP_SC, {mp_put_release, mp_get_acquire}},
	{"mp+rel+relaxed", "the release alone", MP_ALL, MP_SC, {mp_put_release, mp_get_relaxed}},
	{"mp+relaxed+acq", "the acquire alone", MP_ALL, MP_SC, {mp_put_relaxed, mp_get_acquire}},
	{"mp+rel+dependency",
	 "in C11 a dependency counts as acquire; else it is for the address read",
	 MP_SC,
	 MP_SC,
	 {mp_put_release, mp_get_dependency},
	 .arm = MP_ALL,
	 .kernel = MP_ALL},
	{"mp+fences", "fences do as well", MP_SC, MP_SC, {mp_put_fence, mp_get_fence}},
	{"mp+fence+acq", "fence and acquire", MP_SC, MP_SC, {mp_put_fence, mp_get_acquire}},
	{"mp+rel+fence", "release and fence", MP_SC, MP_SC, {mp_put_release, mp_get_fence}},
	{"mp+fence+relaxed", "a fence alone", MP_ALL, MP_SC, {mp_put_fence, mp_get_relaxed}},
	{"mp+late-fence",
	 "a release fence after the store",
	 MP_ALL,
	 MP_SC,
	 {mp_put_late_fence, mp_get_acquire}},
	{"mp+early-fence",
	 "an acquire fence before the load",
	 MP_ALL,
	 MP_SC,
	 {mp_put_release, mp_get_early_fence}},
	{"mp+rel+await-relaxed", "waiting alone", "0 1", "1", {mp_put_release, mp_await_relaxed}},
	{"mp+rel+await-acq", "waiting with acquire", "1", "1", {mp_put_release, mp_await_acquire}},
	{"mp+rel+await-eq", "waiting for a value", "11", "11", {mp_put_release, mp_await_equal}},
	{"mp+rel+await-bounded",
	 "a wait that may end at any time, relaxed",
	 MP_ALL,
	 MP_SC,
	 {mp_put_release, mp_await_bounded}},
	{"mp+rel+cmpxchg-fails",
	 "a failed compare-and-swap does not acquire",
	 MP_ALL,
	 MP_SC,
	 {mp_put_release, mp_cmpxchg_fails}},
	{"mp+rel+cmpxchg",
	 "a successful compare-and-swap acquires",
	 MP_SC,
	 MP_SC,
	 {mp_put_release, mp_cmpxchg_succeeds}},
	{},
};

/* Coherence: all threads agree on the order of the writes to one variable. */

THREAD(put_x_1, put(x, 1, relaxed));
THREAD(put_x_2, put(x, 2, relaxed));
THREAD(put_x_2_done, put(x, 2, relaxed), done());
THREAD(put_x_twice, put(x, 1, relaxed), put(x, 2, relaxed));
THREAD(put_x_twice_done, put(x, 1, relaxed), put(x, 2, relaxed), done());
THREAD(get_x_twice, get(x, relaxed), get(x, relaxed));
THREAD(put_get_x, put(x, 1, relaxed), get(x, relaxed), done());
THREAD(get_put_x, get(x, relaxed), put(x, 1, relaxed), done());
THREAD(get_put_x_2, get(x, relaxed), put(x, 2, relaxed));
THREAD(end_of_one, at_end(1), get(x, relaxed));
THREAD(end_of_two, at_end(2), get(x, relaxed));

/* 1: first 1, then 2; 2: first 2, then 1; 0: anything else. */
static void see_order(struct lw_litmus_memory *m)
{
	uint32_t first = lw_load(&m->x, relaxed);
	uint32_t second = lw_load(&m->x, relaxed);

	see(first != 0 && second != 0 && first != second ? first : 0);
}

static const struct lw_litmus coherence[] = {
	{"corr",
	 "a thread does not see an older write after a newer",
	 "00 01 02 11 12 22",
	 NULL,
	 {put_x_twice, get_x_twice}},
	{"corr+two-readers",
	 "no two threads see two writes in different orders",
	 "0,0 0,1 0,2 1,0 1,1 2,0 2,2",
	 NULL,
	 {put_x_1, put_x_2, see_order, see_order}},
	{"coww", "a thread's later write stays", "2", "2", {put_x_twice_done, end_of_one}},
	{"cowr",
	 "a thread sees its write or a newer one",
	 "1,1 1,2 2,2",
	 NULL,
	 {put_get_x, put_x_2_done, end_of_two}},
	{"corw",
	 "a write comes after what its thread has seen",
	 "0,1 0,2 2,1",
	 NULL,
	 {get_put_x, put_x_2_done, end_of_two}},
	{"lb+one-variable",
	 "two threads do not see each other's later write",
	 "0,0 0,1 2,0",
	 NULL,
	 {get_put_x, get_put_x_2}},
	{},
};

/* More variables. */

typedef __typeof__(((struct lw_litmus_memory *)0)->x) variable;

static uint32_t copy(variable *from, variable *to)
{
	uint32_t value = lw_load(from, relaxed);

	lw_store(to, value, relaxed);
	return value;
}

static uint32_t put_if_set(variable *from, variable *to)
{
	uint32_t value = lw_load(from, relaxed);

	if (value)
		lw_store(to, 1, relaxed);
	return value;
}

static uint32_t put_anyway(variable *from, variable *to)
{
	uint32_t value = lw_load(from, relaxed);

	lw_store(to, 1, relaxed);
	return value ? 1 : 0;
}

THREAD(lb_x, get(x, relaxed), put(y, 1, relaxed));
THREAD(lb_y, get(y, relaxed), put(x, 1, relaxed));

THREAD(lb_x_acquire, get(x, acquire), put(y, 1, relaxed));
THREAD(lb_y_acquire, get(y, acquire), put(x, 1, relaxed));
THREAD(lb_x_release, get(x, relaxed), put(y, 1, release));
THREAD(lb_y_release, get(y, relaxed), put(x, 1, release));
THREAD(lb_x_fence, get(x, relaxed), lw_fence(acq_rel), put(y, 1, relaxed));
THREAD(lb_y_fence, get(y, relaxed), lw_fence(acq_rel), put(x, 1, relaxed));
THREAD(lb_x_data, see(copy(&m->x, &m->y)));
THREAD(lb_y_data, see(copy(&m->y, &m->x)));
THREAD(lb_x_control, see(put_if_set(&m->x, &m->y)));
THREAD(lb_y_control, see(put_if_set(&m->y, &m->x)));
THREAD(lb_x_either, see(put_anyway(&m->x, &m->y)));
THREAD(lb_x_add, add(x, 2, relaxed), put(y, 1, relaxed));
THREAD(lb_y_add, add(y, 2, relaxed), put(x, 1, relaxed));

#define LB_SC  "0,0 0,1 1,0"
#define LB_ALL "0,0 0,1 1,0 1,1"

static const struct lw_litmus load_buffering[] = {
	{"lb+relaxed",
	 "RC11 forbids load buffering, though C++ and ARM do not",
	 LB_SC,
	 NULL,
	 {lb_x, lb_y},
	 .arm = LB_ALL,
	 .kernel = LB_ALL},
	{"lb+acqs", "acquire forbids it", LB_SC, NULL, {lb_x_acquire, lb_y_acquire}},
	{"lb+rels", "so does release", LB_SC, NULL, {lb_x_release, lb_y_release}},
	{"lb+acq+relaxed",
	 "in both threads",
	 LB_SC,
	 NULL,
	 {lb_x_acquire, lb_y},
	 .arm = LB_ALL,
	 .kernel = LB_ALL},
	{"lb+rel+acq", "one of each does as well", LB_SC, NULL, {lb_x_release, lb_y_acquire}},
	{"lb+fences", "fences forbid it", LB_SC, NULL, {lb_x_fence, lb_y_fence}},
	{"lb+data", "no value comes out of thin air", "0,0", NULL, {lb_x_data, lb_y_data}},
	{"lb+ctrl",
	 "a store waits for the branch to it",
	 "0,0",
	 NULL,
	 {lb_x_control, lb_y_control}},
	{"lb+ctrl+relaxed",
	 "in both threads",
	 "0,0 1,0",
	 NULL,
	 {lb_x_control, lb_y},
	 .arm = "0,0 1,0 1,1",
	 .kernel = "0,0 1,0 1,1"},
	{"lb+same-store",
	 "a branch with the same store on both sides is none",
	 "0,0 0,1",
	 NULL,
	 {lb_x_either, lb_y_control},
	 .arm = "0,0 0,1 1,1",
	 .kernel = "0,0 0,1 1,1"},
	{"lb+rmws",
	 "a store does not wait for a read-modify-write",
	 LB_SC,
	 NULL,
	 {lb_x_add, lb_y_add},
	 .arm = LB_ALL,
	 .kernel = LB_ALL},
	{},
};

THREAD(put_y_1, put(y, 1, relaxed));
THREAD(put_x_release, put(x, 1, release));
THREAD(put_y_release, put(y, 1, release));
THREAD(put_x_sc, put(x, 1, seq_cst));
THREAD(put_y_sc, put(y, 1, seq_cst));
THREAD(get_xy_relaxed, get(x, relaxed), get(y, relaxed));
THREAD(get_yx_relaxed, get(y, relaxed), get(x, relaxed));
THREAD(get_xy_acquire, get(x, acquire), get(y, acquire));
THREAD(get_yx_acquire, get(y, acquire), get(x, acquire));
THREAD(get_xy_sc, get(x, seq_cst), get(y, seq_cst));
THREAD(get_yx_sc, get(y, seq_cst), get(x, seq_cst));
THREAD(get_xy_sc_fence, get(x, relaxed), lw_fence(seq_cst), get(y, relaxed));
THREAD(get_yx_sc_fence, get(y, relaxed), lw_fence(seq_cst), get(x, relaxed));
THREAD(get_xy_fence, get(x, relaxed), lw_fence(acq_rel), get(y, relaxed));
THREAD(get_yx_fence, get(y, relaxed), lw_fence(acq_rel), get(x, relaxed));

#define IRIW_SC                                                                    \
	"00,00 00,01 00,10 00,11 01,00 01,01 01,10 01,11 10,00 10,01 10,11 11,00 " \
	"11,01 11,10 11,11"
#define IRIW_ALL IRIW_SC " 10,10"

static const struct lw_litmus independent_reads[] = {
	{"iriw+relaxed",
	 "two threads may see two writes in different orders",
	 IRIW_ALL,
	 IRIW_SC,
	 {put_x_1, put_y_1, get_xy_relaxed, get_yx_relaxed}},
	{"iriw+rel+acq",
	 "release and acquire do not help",
	 IRIW_ALL,
	 IRIW_SC,
	 {put_x_release, put_y_release, get_xy_acquire, get_yx_acquire},
	 .arm = IRIW_SC},
	{"iriw+sc",
	 "seq_cst accesses forbid it",
	 IRIW_SC,
	 IRIW_SC,
	 {put_x_sc, put_y_sc, get_xy_sc, get_yx_sc},
	 .kernel = IRIW_ALL},
	{"iriw+sc-fences",
	 "seq_cst fences forbid it",
	 IRIW_SC,
	 IRIW_SC,
	 {put_x_1, put_y_1, get_xy_sc_fence, get_yx_sc_fence}},
	{"iriw+fences",
	 "acq_rel fences do not help",
	 IRIW_ALL,
	 IRIW_SC,
	 {put_x_1, put_y_1, get_xy_fence, get_yx_fence},
	 .arm = IRIW_SC,
	 .kernel = IRIW_SC},
	{"iriw+sc-loads",
	 "RC11 allows it if the stores are relaxed, C++20 does not",
	 IRIW_ALL,
	 IRIW_SC,
	 {put_x_1, put_y_1, get_xy_sc, get_yx_sc},
	 .arm = IRIW_SC},
	{},
};

THREAD(wrc_relaxed, get(x, relaxed), put(y, 1, relaxed));
THREAD(wrc_release, get(x, relaxed), put(y, 1, release));
THREAD(isa2_z, get(y, acquire), put(z, 1, release));
THREAD(isa2_x, get(z, acquire), get(x, relaxed));
THREAD(rwc_relaxed, put(y, 1, relaxed), get(x, relaxed));
THREAD(rwc_sc_fence, put(y, 1, relaxed), lw_fence(seq_cst), get(x, relaxed));

#define WRC_SC	"0,00 0,01 0,10 0,11 1,00 1,01 1,11"
#define WRC_ALL WRC_SC " 1,10"
#define RWC_SC	"00,0 00,1 01,0 01,1 10,1 11,0 11,1"
#define RWC_ALL RWC_SC " 10,0"

static const struct lw_litmus causality[] = {
	{"wrc+relaxed",
	 "a thread that sees what followed a write may miss the write",
	 WRC_ALL,
	 WRC_SC,
	 {put_x_1, wrc_relaxed, mp_get_relaxed}},
	{"wrc+rel+acq",
	 "release passes on what was seen, too",
	 WRC_SC,
	 WRC_SC,
	 {put_x_1, wrc_release, mp_get_acquire}},
	{"isa2+rel+acq", "over two flags", WRC_SC, WRC_SC, {mp_put_release, isa2_z, isa2_x}},
	{"rwc+acq",
	 "a reader before a writer that missed the first",
	 RWC_ALL,
	 RWC_SC,
	 {put_x_release, get_xy_acquire, rwc_relaxed},
	 .tso = "00,0 00,1 01,0 01,1 10,0 10,1 11,0 11,1"},
	{"rwc+sc-fences",
	 "seq_cst fences forbid it",
	 RWC_SC,
	 RWC_SC,
	 {put_x_1, get_xy_sc_fence, rwc_sc_fence}},
	{},
};

THREAD(w_xy_relaxed, put(x, 1, relaxed), put(y, 2, relaxed), done());
THREAD(w_yx_relaxed, put(y, 1, relaxed), put(x, 2, relaxed), done());
THREAD(w_xy_release, put(x, 1, release), put(y, 2, release), done());
THREAD(w_yx_release, put(y, 1, release), put(x, 2, release), done());
THREAD(w_xy_sc, put(x, 1, seq_cst), put(y, 2, seq_cst), done());
THREAD(w_yx_sc, put(y, 1, seq_cst), put(x, 2, seq_cst), done());
THREAD(w_xy_sc_fence, put(x, 1, relaxed), lw_fence(seq_cst), put(y, 2, relaxed), done());
THREAD(w_yx_sc_fence, put(y, 1, relaxed), lw_fence(seq_cst), put(x, 2, relaxed), done());
THREAD(end_xy, at_end(2), get(x, relaxed), get(y, relaxed));
THREAD(end_x, at_end(2), get(x, relaxed));
THREAD(end_y, at_end(2), get(y, relaxed));
THREAD(s_put_relaxed, put(x, 2, relaxed), put(y, 1, relaxed), done());
THREAD(s_put_release, put(x, 2, relaxed), put(y, 1, release), done());
THREAD(s_get_relaxed, get(y, relaxed), put(x, 1, relaxed), done());
THREAD(s_get_acquire, get(y, acquire), put(x, 1, relaxed), done());
THREAD(r_put_release, put(x, 1, relaxed), put(y, 1, release), done());
THREAD(r_get_acquire, put(y, 2, relaxed), get(x, acquire), done());
THREAD(r_put_sc, put(x, 1, seq_cst), put(y, 1, seq_cst), done());
THREAD(r_get_sc, put(y, 2, seq_cst), get(x, seq_cst), done());
THREAD(r_put_sc_fence, put(x, 1, relaxed), lw_fence(seq_cst), put(y, 1, relaxed), done());
THREAD(r_get_sc_fence, put(y, 2, relaxed), lw_fence(seq_cst), get(x, relaxed), done());

#define WW_SC  "12 21 22"
#define WW_ALL WW_SC " 11"
#define S_SC   "0,1 0,2 1,1"
#define S_ALL  S_SC " 1,2"
#define R_SC   "0,1 1,1 1,2"
#define R_ALL  R_SC " 0,2"

static const struct lw_litmus write_order[] = {
	{"2+2w+relaxed",
	 "of two threads' writes, the first may be last twice",
	 WW_ALL,
	 WW_SC,
	 {w_xy_relaxed, w_yx_relaxed, end_xy}},
	{"2+2w+rel",
	 "release does not help if no thread reads",
	 WW_ALL,
	 WW_SC,
	 {w_xy_release, w_yx_release, end_xy},
	 .arm = WW_SC},
	{"2+2w+sc", "seq_cst accesses forbid it", WW_SC, WW_SC, {w_xy_sc, w_yx_sc, end_xy}},
	{"2+2w+sc-fences",
	 "seq_cst fences forbid it",
	 WW_SC,
	 WW_SC,
	 {w_xy_sc_fence, w_yx_sc_fence, end_xy}},
	{"s+relaxed",
	 "a thread that sees the flag may write before the message",
	 S_ALL,
	 S_SC,
	 {s_put_relaxed, s_get_relaxed, end_x}},
	{"s+rel+acq",
	 "release and acquire forbid it",
	 S_SC,
	 S_SC,
	 {s_put_release, s_get_acquire, end_x}},
	{"r+rel+acq",
	 "release and acquire do not order a write before a read",
	 R_ALL,
	 R_SC,
	 {r_put_release, r_get_acquire, end_y},
	 .tso = "0,1 0,2 1,1 1,2"},
	{"r+sc", "seq_cst accesses do", R_SC, R_SC, {r_put_sc, r_get_sc, end_y}},
	{"r+sc-fences", "seq_cst fences do", R_SC, R_SC, {r_put_sc_fence, r_get_sc_fence, end_y}},
	{},
};

THREAD(z6_put, put(x, 1, seq_cst), put(y, 1, release));
THREAD(z6_add, add(y, 1, seq_cst), get(y, relaxed));
THREAD(z6_get, put(y, 3, seq_cst), get(x, seq_cst));

static const struct lw_litmus sc_order[] = {
	/* In this model, seq_cst operations are ordered as they are performed. */
	{"z6.u",
	 "RC11 allows 13,0 too: seq_cst against happens-before; this model is stronger",
	 "01,0 01,1 03,0 03,1 12,0 12,1 13,1 31,0 31,1 34,0 34,1",
	 NULL,
	 {z6_put, z6_add, z6_get}},
	{},
};

/* Read-modify-writes. */

THREAD(seq_xchg, swap(y, 2, relaxed));
THREAD(seq_xchg_3, swap(y, 3, relaxed));
THREAD(seq_own, swap(y, 2, relaxed), get(y, acquire), get(x, relaxed));
THREAD(seq_own_add, add(y, 2, relaxed), get(y, acquire), get(x, relaxed));
THREAD(seq_own_fence, swap(y, 2, relaxed), lw_fence(seq_cst), get(x, relaxed));
THREAD(seq_same_thread, put(x, 1, relaxed), put(y, 1, release), put(y, 2, relaxed));
THREAD(seq_fence, put(x, 1, relaxed), lw_fence(release), put(y, 1, relaxed), put(y, 2, relaxed));
THREAD(add_x, add(x, 1, relaxed));
THREAD(add_x_done, add(x, 1, relaxed), done());
THREAD(put_x_5_done, put(x, 5, relaxed), done());
THREAD(try_x, see(try_cmpxchg_relaxed(m, 0, 1)));
THREAD(or_x, see(lw_fetch_or(&m->x, 3, relaxed)), done());
THREAD(and_x, see(lw_fetch_and(&m->x, 2, relaxed)), done());

static const struct lw_litmus read_modify_writes[] = {
	{"release-sequence+rmw",
	 "a relaxed read-modify-write passes on a release",
	 "0,00 0,01 0,11 0,20 0,21 1,00 1,01 1,11 1,21",
	 NULL,
	 {mp_put_release, seq_xchg, mp_get_acquire},
	 .kernel62 = "0,00 0,01 0,11 0,20 0,21 1,00 1,01 1,11 1,20 1,21"},
	{"release-sequence+store",
	 "a relaxed store does not, even of the same thread",
	 "00 01 11 20 21",
	 "00 01 11 21",
	 {seq_same_thread, mp_get_acquire},
	 .arm = "00 01 11 21"},
	{"release-sequence+own",
	 "an acquire of what its own thread passes on: in the kernel, it orders nothing",
	 "011 020 021 121",
	 NULL,
	 {mp_put_release, seq_own},
	 .kernel = "011 020 021 120 121"},
	{"release-sequence+own+add",
	 "unless its value depends on what was released; 6.2 orders that too, the engine does not",
	 "011 020 021 131",
	 NULL,
	 {mp_put_release, seq_own_add},
	 .kernel62 = "011 020 021 130 131"},
	{"release-sequence+own+fence",
	 "a full fence does",
	 "00 01 11",
	 NULL,
	 {mp_put_release, seq_own_fence}},
	{"release-sequence+own+other",
	 "an acquire of what another thread passes on does, even if its own did before",
	 "011,1 011,2 020,1 020,2 021,1 021,2 030,2 031,1 031,2 121,0 121,2 131,2 311,0 320,0 "
	 "321,0 321,1",
	 NULL,
	 {mp_put_release, seq_own, seq_xchg_3},
	 .kernel = "011,1 011,2 020,1 020,2 021,1 021,2 030,2 031,1 031,2 120,0 120,2 121,0 121,2 "
		   "131,2 311,0 320,0 320,1 321,0 321,1",
	 .kernel62 = "011,1 011,2 020,1 020,2 021,1 021,2 030,1 030,2 031,1 031,2 120,0 120,2 "
		     "121,0 121,2 130,2 131,2 311,0 320,0 320,1 321,0 321,1"},
	{"release-sequence+fence",
	 "a fence is for all stores that follow",
	 "00 01 11 21",
	 NULL,
	 {seq_fence, mp_get_acquire}},
	{"rmw+add", "two additions never see the same", "0,1 1,0", NULL, {add_x, add_x}},
	{"rmw+three",
	 "three additions never see the same",
	 "0,1,2 0,2,1 1,0,2 1,2,0 2,0,1 2,1,0",
	 NULL,
	 {add_x, add_x, add_x}},
	{"rmw+store",
	 "no store comes between its read and its write",
	 "0,5 5,6",
	 NULL,
	 {add_x_done, put_x_5_done, end_of_two}},
	{"rmw+cmpxchg", "one of two succeeds", "0,1 1,0", NULL, {try_x, try_x}},
	{"rmw+or+and", "or and and", "0,0,3 0,3,2", NULL, {or_x, and_x, end_of_two}},
	{},
};

/* Fields of a word. */

#define see_byte(value, i) see((value) >> 8 * (i)&0xff)
#define see_bytes(load)                  \
	({                               \
		uint32_t lw_seen = load; \
		see_byte(lw_seen, 0);    \
		see_byte(lw_seen, 1);    \
	})

THREAD(field_put_byte_0, put(byte[0], 1, relaxed));
THREAD(field_put_byte_1, put(byte[1], 2, relaxed));
THREAD(field_put_bytes, put(byte[0], 1, relaxed), put(byte[1], 2, relaxed));
THREAD(field_put_bytes_release, put(byte[0], 1, relaxed), put(byte[1], 2, release));
THREAD(field_put_byte_0_done, put(byte[0], 1, relaxed), done());
THREAD(field_put_half, put(half[0], 0x0201, relaxed));
THREAD(field_put_word, put(word, 0x02000001, relaxed));
THREAD(field_put_word_1, put(word, 0x00010001, relaxed));
THREAD(field_put_word_2, put(word, 0x00020002, relaxed));
THREAD(field_message, put(x, 1, relaxed), put(byte[0], 1, release));
THREAD(field_message_word, put(x, 1, relaxed), put(word, 0x0201, release));
THREAD(field_get_word, see_bytes(lw_load(&m->word, relaxed)));
THREAD(field_get_word_acquire, see_bytes(lw_load(&m->word, acquire)));
THREAD(field_get_word_message, see_byte(lw_load(&m->word, acquire), 0), get(x, relaxed));
THREAD(field_get_byte_message, get(byte[0], acquire), get(x, relaxed));
THREAD(field_get_other_message, get(byte[1], acquire), get(x, relaxed));
THREAD(field_get_half_byte, see_bytes(lw_load(&m->half[0], relaxed)), get(byte[0], relaxed));
THREAD(field_get_bytes, get(byte[1], relaxed), get(byte[0], relaxed));
THREAD(field_get_bytes_acquire, get(byte[1], acquire), get(byte[0], relaxed));
THREAD(field_or, see_byte(lw_fetch_or(&m->word, 0x0200, relaxed), 0));
THREAD(field_or_done, field_or(m), done());
THREAD(field_xchg_done, see_byte(lw_xchg(&m->word, 0x0300, relaxed), 0), done());
THREAD(field_end, at_end(2), see_bytes(lw_load(&m->word, relaxed)));

static void field_cmpxchg_done(struct lw_litmus_memory *m)
{
	uint32_t expected = 0;

	see(lw_try_cmpxchg(&m->word, &expected, 0x0200, relaxed));
	done();
}

/* The second of two stores is visible, the first is not. */
static void field_cmpxchg_half(struct lw_litmus_memory *m)
{
	uint32_t expected = 0x0200;

	see(lw_try_cmpxchg(&m->word, &expected, 0, relaxed));
}

static void field_get_word_half(struct lw_litmus_memory *m)
{
	uint32_t word = lw_load(&m->word, relaxed);

	see(word & 0xff);
	see(word >> 24);
	see(lw_load(&m->half[1], relaxed) >> 8);
}

static void field_get_halves(struct lw_litmus_memory *m)
{
	uint32_t word = lw_load(&m->word, relaxed);

	see(word & 0xffff);
	see(word >> 16);
	see(lw_load(&m->half[0], relaxed));
}

static const struct lw_litmus fields[] = {
	{"field+word-load",
	 "relaxed stores of two fields come in any order",
	 "00 02 10 12",
	 "00 10 12",
	 {field_put_bytes, field_get_word}},
	{"field+word-load+rel",
	 "a thread that sees a field's release sees earlier stores to the word's other fields",
	 "00 10 12",
	 "00 10 12",
	 {field_put_bytes_release, field_get_word_acquire}},
	{"field+word-load+rel+relaxed",
	 "as the word is read at once, it need not acquire",
	 "00 10 12",
	 "00 10 12",
	 {field_put_bytes_release, field_get_word}},
	{"field+cmpxchg+rel",
	 "a compare-and-swap of the word keeps this order, too",
	 "0",
	 "0",
	 {field_put_bytes_release, field_cmpxchg_half}},
	{"field+cmpxchg+relaxed",
	 "relaxed stores of two fields allow either order",
	 "0 1",
	 "0",
	 {field_put_bytes, field_cmpxchg_half}},
	{"field+two-words",
	 "ARM forbids 02,10 and 10,02, but here fields are variables of their own",
	 "00,00 00,02 00,10 00,12 02,00 02,02 02,10 02,12 10,00 10,02 10,10 10,12 12,00 12,02 "
	 "12,10 12,12",
	 "00,00 00,02 00,10 00,12 02,00 02,02 02,12 10,00 10,10 10,12 12,00 12,02 12,10 12,12",
	 {field_put_byte_0, field_put_byte_1, field_get_word, field_get_word},
	 .arm = "00,00 00,02 00,10 00,12 02,00 02,02 02,12 10,00 10,10 10,12 12,00 12,02 12,10 "
		"12,12"},
	{"field+half-store",
	 "no load of the field sees half of a 16-bit store",
	 "000 001 121",
	 NULL,
	 {field_put_half, field_get_half_byte}},
	{"field+byte-loads",
	 "a relaxed load may miss the rest of a 16-bit store that an earlier load saw",
	 "00 01 20 21",
	 "00 01 21",
	 {field_put_half, field_get_bytes}},
	{"field+byte-loads+acq",
	 "a load sees the rest of a 16-bit store that an earlier load acquired",
	 "00 01 21",
	 NULL,
	 {field_put_half, field_get_bytes_acquire}},
	{"field+word-store",
	 "no load of the word sees half of a 32-bit store",
	 "000 002 122",
	 NULL,
	 {field_put_word, field_get_word_half}},
	{"field+word-stores",
	 "no load of the word sees halves of two 32-bit stores",
	 "000 001 002 111 112 221 222",
	 NULL,
	 {field_put_word_1, field_put_word_2, field_get_halves}},
	{"field+or",
	 "neither a field's store nor a word's read-modify-write is lost",
	 "0,12 1,12",
	 NULL,
	 {field_put_byte_0_done, field_or_done, field_end}},
	{"field+xchg",
	 "an exchange of the word sees a field's store or comes before it",
	 "0,13 1,03",
	 NULL,
	 {field_put_byte_0_done, field_xchg_done, field_end}},
	{"field+cmpxchg",
	 "a compare-and-swap of the word sees a field's store or comes before it",
	 "0,10 1,12",
	 NULL,
	 {field_put_byte_0_done, field_cmpxchg_done, field_end}},
	{"field+mp",
	 "a field's release, a word's acquire",
	 MP_SC,
	 MP_SC,
	 {field_message, field_get_word_message}},
	{"field+mp-word",
	 "a word's release, a field's acquire",
	 MP_SC,
	 MP_SC,
	 {field_message_word, field_get_byte_message}},
	/* 02: the or has put 2 into byte 1, so the flag is what it read from byte 0. */
	{"field+release-sequence",
	 "a word's read-modify-write passes on a field's release",
	 "0,00 0,01 0,20 0,21 1,00 1,01 1,21",
	 NULL,
	 {field_message, field_or, field_get_other_message},
	 .kernel62 = "0,00 0,01 0,20 0,21 1,00 1,01 1,20 1,21"},
	{},
};

/* Plain data. */

THREAD(plain_put, lw_plain_write(&m->plain, 1));
THREAD(plain_touch, (void)lw_plain_read(&m->plain));
THREAD(plain_get, see(lw_plain_read(&m->plain)));
THREAD(plain_put_relaxed, lw_plain_write(&m->plain, 1), put(y, 1, relaxed));
THREAD(plain_put_release, lw_plain_write(&m->plain, 1), put(y, 1, release));
THREAD(plain_get_relaxed, see(lw_plain_read(&m->plain)), put(y, 1, relaxed));
THREAD(plain_get_release, see(lw_plain_read(&m->plain)), put(y, 1, release));
THREAD(plain_await_get, await(y, acquire), see(lw_plain_read(&m->plain)));
THREAD(plain_await_put, await(y, acquire), lw_plain_write(&m->plain, 1));

/* Sequentially consistent mode does not search for races, or for the results of racing reads. */
static const struct lw_litmus plain_data[] = {
	{"plain+write+read", "nothing orders them", "data_race", "", {plain_put, plain_touch}},
	{"plain+write+write", "nor these", "data_race", "", {plain_put, plain_put}},
	{"plain+read+read", "which need not be ordered", "0,0", NULL, {plain_get, plain_get}},
	{"plain+mp+rel+acq",
	 "a message orders them",
	 "1",
	 NULL,
	 {plain_put_release, plain_await_get}},
	{"plain+mp+relaxed",
	 "a relaxed message does not order them",
	 "data_race",
	 "1",
	 {plain_put_relaxed, plain_await_get}},
	{"plain+read+rel+acq",
	 "a release orders a read before a later write",
	 "0",
	 NULL,
	 {plain_get_release, plain_await_put}},
	{"plain+read+relaxed",
	 "a relaxed store does not",
	 "data_race",
	 "0",
	 {plain_get_relaxed, plain_await_put}},
	{},
};

/* Waiting and being woken. */

static void park_until_set(struct lw_litmus_memory *m)
{
	while (lw_load(&m->x, acquire) == 0)
		lw_park(&m->x, 0, NULL);
	see(1);
}

static void spin_until_set(struct lw_litmus_memory *m)
{
	while (lw_load(&m->x, acquire) == 0)
		;
}

THREAD(wake_one, put(x, 1, release), lw_unpark(&m->x, 0));
THREAD(wake_two, put(x, 1, release), lw_unpark(&m->x, 0), lw_unpark(&m->x, 0));
THREAD(wake_too_early, lw_unpark(&m->x, 0), put(x, 1, release));
THREAD(await_x, await(x, relaxed));

static const struct lw_litmus waiting[] = {
	{"park+unpark", "no wake-up is lost", "1", NULL, {park_until_set, wake_one}},
	{"park",
	 "without a wake-up, a thread stays parked for ever",
	 "deadlock",
	 NULL,
	 {park_until_set, put_x_release}},
	{"park+unpark-first",
	 "a store after the wake-up wakes no thread",
	 "deadlock",
	 NULL,
	 {park_until_set, wake_too_early}},
	{"park+two+unpark-one",
	 "one of two parked threads is woken",
	 "deadlock",
	 NULL,
	 {park_until_set, park_until_set, wake_one}},
	{"park+two+unpark-two",
	 "both parked threads are woken",
	 "1,1",
	 NULL,
	 {park_until_set, park_until_set, wake_two}},
	{"await", "no thread ever stores", "deadlock", NULL, {await_x}},
	{"spin",
	 "no thread ever stores, and the thread polls again and again",
	 "livelock",
	 NULL,
	 {spin_until_set}},
	{},
};

THREAD(choose, (void)m, see(lw_choose(3)));

static const struct lw_litmus choices[] = {
	{"choose", "any value", "0 1 2", NULL, {choose}},
	{"choose+choose",
	 "two choices are independent",
	 "0,0 0,1 0,2 1,0 1,1 1,2 2,0 2,1 2,2",
	 NULL,
	 {choose, choose}},
	{},
};

/* Each thread has a reference; the thread that puts the last one may write what all have read. */

static void leave(struct lw_litmus_memory *m)
{
	int32_t left;

	(void)lw_plain_read(&m->plain);
	left = lw_check_lockref_types[0]->put_return(&m->lockref);
	if (left == 0)
		lw_plain_write(&m->plain, 1);
	see(left < 0 ? 9 : (uint32_t)left);
}

THREAD(share_and_leave, lw_check_lockref_types[0]->set_count(&m->lockref, 2), put(y, 1, release),
       leave(m));
THREAD(join_and_leave, await(y, acquire), leave(m));

static const struct lw_litmus references[] = {
	{"lockref+put+put",
	 "a count of 0 comes after all uses of references",
	 "0,1 1,0",
	 NULL,
	 {share_and_leave, join_and_leave}},
	{},
};

const struct lw_litmus *const lw_litmus_groups[] = {
	store_buffering, message_passing, coherence, load_buffering,	 independent_reads,
	causality,	 write_order,	  sc_order,  read_modify_writes, fields,
	plain_data,	 waiting,	  choices,   references,	 NULL,
};

void lw_litmus_thread(const struct lw_check_client *client, uint32_t thread)
{
	client->litmus->threads[thread](client->variables);
}
