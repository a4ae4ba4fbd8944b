/* SPDX-License-Identifier: MIT */
/*
 * From which size on a blocking send from the program's own buffer (pinned.h) is cheaper than a copy into registered
 * memory: set, or measured once (RB-11). Only for devices that do not carry everything inline.
 */
#ifndef SHUNT_CORE_LANE_ZERO_COPY_H
#define SHUNT_CORE_LANE_ZERO_COPY_H

#include <stdbool.h>
#include <stdint.h>
#include "core/base/verbs.h"

#define SHUNT_ZERO_COPY_AUTO UINT64_MAX	/* SHUNT_TUNE=mr_threshold=auto */

/* Bytes from which on a registration costs less than a copy; UINT64_MAX: it never does. */
uint64_t shunt_zero_copy_measure(const struct shunt_verbs *verbs, struct ibv_pd *pd, uint64_t (*now)(void));

#endif
