/* SPDX-License-Identifier: MIT */
/* Measurements across hosts: the server that waits for clients, and what its client asks it first. */
#ifndef SHUNT_TOOLS_PERF_REMOTE_H
#define SHUNT_TOOLS_PERF_REMOTE_H

#include "tools/perf/perf.h"

#define PERF_PORT 4793	/* the plain server's; the shunted one has the next */

/* ADDRESS[:PORT] or "": serves until a signal. The exit status. */
int perf_serve(const char *where, const struct perf_pin *pin);
/* HOST[:PORT]: what the server there says, into the setup. 0, or -1 after saying why not. */
int perf_remote_ask(struct perf_setup *setup, const char *where);

#endif
