/* SPDX-License-Identifier: MIT */
#include "tools/common/advice.h"

#include <stddef.h>
#include <string.h>

static const char *const remedies[SHUNT_REASONS] = {
#define REASON(name, text, remedy) [SHUNT_REASON_##name] = remedy,
#define CAUSE(name, reason, detail)
#include "core/base/reason_table.h"
#undef REASON
#undef CAUSE
};

const char *shunt_advice(enum shunt_reason reason)
{
	return reason > SHUNT_REASON_NONE && reason < SHUNT_REASONS ? remedies[reason] : NULL;
}

const char *shunt_advice_for(const char *text)
{
	for (int i = SHUNT_REASON_NONE + 1; i < SHUNT_REASONS; i++)
		if (!strcmp(shunt_reason_text((enum shunt_reason)i), text))
			return remedies[i];
	return NULL;
}
