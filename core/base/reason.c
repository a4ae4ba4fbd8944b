/* SPDX-License-Identifier: MIT */
#include "core/base/reason.h"

#include <stdio.h>

#define REASON(name, text, remedy) [SHUNT_REASON_##name] = text,
#define CAUSE(name, reason, detail)
static const char *const texts[] = {
	[SHUNT_REASON_NONE] = "",
#include "core/base/reason_table.h"
};
#undef REASON
#undef CAUSE

#define REASON(name, text, remedy)
#define CAUSE(name, reason, detail) [SHUNT_CAUSE_##name] = { SHUNT_REASON_##reason, detail },
static const struct {
	enum shunt_reason reason;
	const char *detail;
} causes[] = {
	[SHUNT_CAUSE_NONE] = { SHUNT_REASON_NONE, "" },
#include "core/base/reason_table.h"
};
#undef REASON
#undef CAUSE

enum shunt_reason shunt_reason_of(enum shunt_cause cause)
{
	return causes[cause].reason;
}

const char *shunt_reason_text(enum shunt_reason reason)
{
	return texts[reason];
}

const char *shunt_cause_detail(enum shunt_cause cause)
{
	return causes[cause].detail;
}

const char *shunt_cause_say(enum shunt_cause cause, char buf[SHUNT_CAUSE_ROOM])
{
	snprintf(buf, SHUNT_CAUSE_ROOM, "%s%s%s", texts[causes[cause].reason],
		 *causes[cause].detail ? ": " : "", causes[cause].detail);
	return buf;
}
