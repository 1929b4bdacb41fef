/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* A lockref for each lock that fits (lockref.h): union lw_lockref_tas and so on. */
#ifndef LW_LOCKREFS_H
#define LW_LOCKREFS_H

#include "cna.h"
#include "hq.h"
#include "lockref.h"
#include "qspinlock.h"
#include "tas.h"
#include "ticket.h"

#define LW_LOCKREF(id, ...) LW_DEFINE_LOCKREF(id, __VA_ARGS__)
#include "lockref_list.h"

#endif
