/* SPDX-License-Identifier: MIT */
/* The remedy for each reason of core/base/reason_table.h. */
#ifndef SHUNT_TOOLS_ADVICE_H
#define SHUNT_TOOLS_ADVICE_H

#include "core/base/reason.h"

/* NULL: none. */
const char *shunt_advice(enum shunt_reason reason);
/* Advice for a reason's text, as statistics have it; NULL also for a text that is no reason. */
const char *shunt_advice_for(const char *text);

#endif
