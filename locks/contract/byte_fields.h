/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Operations on a piece of a lock word, for worlds in which they are those on its bytes. C11 has no
 * atomics of mixed sizes, but every supported processor is coherent for each byte.
 */
#ifndef LW_BYTE_FIELDS_H
#define LW_BYTE_FIELDS_H

#define lw_field_load(word, field, order)	     lw_load(&(word)->field, order)
#define lw_field_store(word, field, value, order)    lw_store(&(word)->field, value, order)
#define lw_field_xchg(word, field, value, order)     lw_xchg(&(word)->field, value, order)
#define lw_field_fetch_or(word, field, bits, order)  lw_fetch_or(&(word)->field, bits, order)
#define lw_field_fetch_and(word, field, bits, order) lw_fetch_and(&(word)->field, bits, order)
#define lw_field_try_cmpxchg(word, field, expected, value, order) \
	lw_try_cmpxchg(&(word)->field, expected, value, order)

#endif
