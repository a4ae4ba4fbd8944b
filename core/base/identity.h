/* SPDX-License-Identifier: MIT */
/*
 * The identity of a process: chance that names its doors (docs/dev/PROTOCOL.md, "Names"). A number of a process says
 * nothing outside its PID namespace, and two processes of one network namespace may both be number 1. An identity
 * is a hint like any name: it is no secret, and nothing is believed because of it. No lock.
 */
#ifndef SHUNT_CORE_BASE_IDENTITY_H
#define SHUNT_CORE_BASE_IDENTITY_H

#include <stdbool.h>
#include "shunt/wire.h"

struct shunt_sys;

#define SHUNT_IDENTITY_TEXT (2 * SHUNT_IDENTITY_BYTES + 1)

/* False: the system has no randomness yet. */
bool shunt_identity_make(const struct shunt_sys *sys, struct shunt_identity *identity);
/* As hexadecimal digits, for a name or a message. */
void shunt_identity_text(const struct shunt_identity *identity, char text[SHUNT_IDENTITY_TEXT]);

#endif
