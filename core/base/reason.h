/* SPDX-License-Identifier: MIT */
/* Why a connection is on TCP for good (reason_table.h). */
#ifndef SHUNT_CORE_BASE_REASON_H
#define SHUNT_CORE_BASE_REASON_H

enum shunt_reason {
	SHUNT_REASON_NONE,	/* it is not, or nobody has said why */
#define REASON(name, text) SHUNT_REASON_##name,
#include "core/base/reason_table.h"
#undef REASON
	SHUNT_REASONS
};

/* "" for none. */
const char *shunt_reason_text(enum shunt_reason reason);

#endif
