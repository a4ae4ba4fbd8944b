/* SPDX-License-Identifier: MIT */
/* Why a connection is on TCP for good (reason_table.h). */
#ifndef SHUNT_CORE_BASE_REASON_H
#define SHUNT_CORE_BASE_REASON_H

#define SHUNT_CAUSE_ROOM 192	/* of a reason and a detail as text */

enum shunt_reason {
	SHUNT_REASON_NONE,	/* it is not, or nobody has said why */
#define REASON(name, text, remedy) SHUNT_REASON_##name,
#define CAUSE(name, reason, detail)
#include "core/base/reason_table.h"
#undef REASON
#undef CAUSE
	SHUNT_REASONS
};

enum shunt_cause {
	SHUNT_CAUSE_NONE,
#define REASON(name, text, remedy)
#define CAUSE(name, reason, detail) SHUNT_CAUSE_##name,
#include "core/base/reason_table.h"
#undef REASON
#undef CAUSE
	SHUNT_CAUSES
};

enum shunt_reason shunt_reason_of(enum shunt_cause cause);
/* "" for none. */
const char *shunt_reason_text(enum shunt_reason reason);
/* The detail; "" where the reason says it all. */
const char *shunt_cause_detail(enum shunt_cause cause);
/* "reason: detail", or the reason; returns buf. */
const char *shunt_cause_say(enum shunt_cause cause, char buf[SHUNT_CAUSE_ROOM]);

#endif
