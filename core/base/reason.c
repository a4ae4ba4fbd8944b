/* SPDX-License-Identifier: MIT */
#include "core/base/reason.h"

static const char *const texts[] = {
	[SHUNT_REASON_NONE] = "",
#define REASON(name, text) [SHUNT_REASON_##name] = text,
#include "core/base/reason_table.h"
#undef REASON
};

const char *shunt_reason_text(enum shunt_reason reason)
{
	return texts[reason];
}
