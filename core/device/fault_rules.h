/* SPDX-License-Identifier: MIT */
/* The text of rules: "ACTION:KEY=VALUE,KEY=VALUE;ACTION;seed=N". docs/FAULTS.md. */
#ifndef SHUNT_CORE_DEVICE_FAULT_RULES_H
#define SHUNT_CORE_DEVICE_FAULT_RULES_H

#include <stddef.h>
#include "core/device/fault.h"

/* 0, or -EINVAL and what is wrong in words. "" is no rule. `error` may be NULL. */
int shunt_fault_parse(const char *text, struct shunt_fault_plan *plan, char *error, size_t bytes);
const char *shunt_fault_name(enum shunt_fault_action action);

#endif
