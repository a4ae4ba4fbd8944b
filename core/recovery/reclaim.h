/* SPDX-License-Identifier: MIT */
/*
 * Memory that is not needed goes back; more of it in engine.h.
 */
#ifndef SHUNT_CORE_RECOVERY_RECLAIM_H
#define SHUNT_CORE_RECOVERY_RECLAIM_H

#include "core/loop/loop.h"

/* Looks for rings that are quiet and blocks that are empty. */
void shunt_reclaim_run(struct shunt_task *task);

#endif
