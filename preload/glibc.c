// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>

#include "glibc.h"

/* Without a version dlsym() would give the condition variables of before 2.3.2. */
#ifdef __x86_64__
#define LW_NEXT_COND(name) dlvsym(RTLD_NEXT, name, "GLIBC_2.3.2") ?: dlsym(RTLD_NEXT, name)
#else
#define LW_NEXT_COND(name) dlsym(RTLD_NEXT, name)
#endif

struct lw_glibc lw_glibc_functions;

/* Whoever does it at the same time finds the same. */
__attribute__((constructor(101))) void lw_glibc_find(void)
{
	int saved = errno;

#define LW_GLIBC(name) *(void **)&lw_glibc_functions.name = dlsym(RTLD_NEXT, "pthread_" #name);
	LW_GLIBC_MUTEX(LW_GLIBC)
#undef LW_GLIBC
#define LW_GLIBC(name) *(void **)&lw_glibc_functions.name = LW_NEXT_COND("pthread_" #name);
	LW_GLIBC_COND(LW_GLIBC)
	/* release: what was found */
	lw_store(&lw_glibc_functions.found, true, release);
	errno = saved;
}
