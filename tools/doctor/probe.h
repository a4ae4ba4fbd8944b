/* SPDX-License-Identifier: MIT */
/*
 * Tries an RDMA device without a peer: `shunt doctor devices --probe`. It opens the device as the library would, asks for
 * queues and memory of a first link, and sends to itself.
 */
#ifndef SHUNT_TOOLS_PROBE_H
#define SHUNT_TOOLS_PROBE_H

#include <jansson.h>

/*
 * The device of this name, or the first that has an active port (NULL). A process of its own does it, for ten seconds at
 * most, because providers may crash or hang. Returns {"error"}, or {"device", "versions", "told", "got", "memory", "trials",
 * "numbers", "usable", "verdict"}. NULL: no memory or no processes.
 */
json_t *shunt_probe(const char *name);
/* Prints it for people. 0: the device cannot carry links. */
int shunt_probe_show(const json_t *probe);

/* probe_trial.c: what is sent, and whether it arrives. */
struct probe;
json_t *shunt_probe_trials(struct probe *probe);

#endif
