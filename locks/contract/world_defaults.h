/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The operations of the contract that a world need not define. Without a definition each is the
 * operation that it refines. The comment of each block names the worlds that define it.
 */
#ifndef LW_WORLD_DEFAULTS_H
#define LW_WORLD_DEFAULTS_H

/*
 * kernel. C11 has no mixed-size atomics, but every supported processor is coherent for each byte,
 * so in programs an operation on a field is one on the bytes of the field.
 */
#ifndef lw_world_field_load
#define lw_world_field_load(word, field, order)		lw_world_load(&(word)->field, order)
#define lw_world_field_store(word, field, value, order) lw_world_store(&(word)->field, value, order)
#define lw_world_field_xchg(word, field, value, order)	lw_world_xchg(&(word)->field, value, order)
#define lw_world_field_fetch_or(word, field, bits, order) \
	lw_world_fetch_or(&(word)->field, bits, order)
#define lw_world_field_fetch_and(word, field, bits, order) \
	lw_world_fetch_and(&(word)->field, bits, order)
#define lw_world_field_try_cmpxchg(word, field, expected, value, order) \
	lw_world_try_cmpxchg(&(word)->field, expected, value, order)
#endif

/* user, check */
#ifndef lw_world_release_is_split
#define lw_world_release_is_split() false
#endif

/* user */
#ifndef lw_world_await_ne_soon
#define lw_world_await_eq_soon(p, mask, value, order) lw_world_await_eq(p, mask, value, order)
#define lw_world_await_ne_soon(p, mask, value, order) lw_world_await_ne(p, mask, value, order)
#endif

/* A world that polls in real time, user and kernel, defines LW_BACKOFF, in pauses. */
#ifdef LW_BACKOFF
#define lw_world_await_ne_backoff(p, mask, value, budget)                             \
	__extension__({                                                               \
		unsigned int lw_left = (budget), lw_gap = 1;                          \
		__typeof__((p)->lw_raw) lw_seen;                                      \
		while (lw_seen = lw_world_load(p, relaxed),                           \
		       ((uintptr_t)lw_seen & (mask)) == (value) && lw_left) {         \
			unsigned int lw_pauses = lw_gap < lw_left ? lw_gap : lw_left; \
			lw_left -= lw_pauses;                                         \
			if (lw_gap < LW_BACKOFF)                                      \
				lw_gap *= 2;                                          \
			while (lw_pauses--)                                           \
				lw_world_pause();                                     \
		}                                                                     \
		lw_seen;                                                              \
	})
#else
#define lw_world_await_ne_backoff(p, mask, value, budget) \
	lw_world_await_ne_bounded(p, mask, value, budget)
#endif

/* user */
#ifndef lw_world_pause_long
#define lw_world_pause_long() lw_world_pause()
#endif

/* user, check */
#ifndef lw_world_park_bounded
#define lw_world_park_bounded(p, value, limit, nth) \
	((void)(nth), lw_world_park(p, value, limit), false)
#endif

#endif
