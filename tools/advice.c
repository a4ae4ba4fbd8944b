/* SPDX-License-Identifier: MIT */
#include "tools/advice.h"

#include <stddef.h>
#include <string.h>

static const char *const advice[SHUNT_REASONS] = {
#define ADVICE(name, text) [SHUNT_REASON_##name] = text,
#include "tools/advice_table.h"
#undef ADVICE
};

const char *shunt_advice(enum shunt_reason reason)
{
	return reason > SHUNT_REASON_NONE && reason < SHUNT_REASONS ? advice[reason] : NULL;
}

const char *shunt_advice_for(const char *text)
{
	for (int i = SHUNT_REASON_NONE + 1; i < SHUNT_REASONS; i++)
		if (!strcmp(shunt_reason_text((enum shunt_reason)i), text))
			return advice[i];
	return NULL;
}
