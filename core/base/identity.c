/* SPDX-License-Identifier: MIT */
#include "core/base/identity.h"
#include <stdio.h>
#include <sys/random.h>
#include "core/base/sys.h"

bool shunt_identity_make(const struct shunt_sys *sys, struct shunt_identity *identity)
{
	return sys->getrandom(identity->bytes, sizeof(identity->bytes), GRND_NONBLOCK) ==
	       sizeof(identity->bytes);
}

void shunt_identity_text(const struct shunt_identity *identity, char text[SHUNT_IDENTITY_TEXT])
{
	for (int i = 0; i < SHUNT_IDENTITY_BYTES; i++)
		snprintf(text + 2 * i, 3, "%02x", identity->bytes[i]);
}
