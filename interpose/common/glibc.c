// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>

#include "glibc.h"

struct lw_glibc lw_glibc_functions;

__attribute__((constructor(101))) void lw_glibc_find(void)
{
	int saved = errno;

#define LW_GLIBC(name) *(void **)&lw_glibc_functions.name = dlsym(RTLD_NEXT, "pthread_" #name);
	LW_GLIBC_FUNCTIONS(LW_GLIBC)
	/* release: threads that see `found` see the functions */
	lw_store(&lw_glibc_functions.found, true, release);
	errno = saved;
}
