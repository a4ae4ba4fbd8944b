/* SPDX-License-Identifier: MIT */
/* The configuration of this process. shunt_process_enabled() and shunt_process_config() read it. */
#ifndef SHUNT_PRELOAD_SETTINGS_H
#define SHUNT_PRELOAD_SETTINGS_H

#include "preload/process.h"

struct shunt_settings_key {	/* of SHUNT_KEY */
	const uint8_t *bytes;	/* NULL: none */
	bool lacks;
};

/* After the configuration has been read. */
struct shunt_settings_key shunt_settings_key(void);
/* In the child of a fork: a thread that was reading it is gone. */
void shunt_settings_forget(void);

#endif
