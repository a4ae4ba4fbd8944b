/* SPDX-License-Identifier: MIT */
/*
 * The RDMA devices of a machine, and whether Shunt would use them. They are JSON objects from the
 * start: `shunt doctor devices` shows them, `shunt doctor` judges by them, `shunt report` keeps them.
 */
#ifndef SHUNT_TOOLS_DEVICES_H
#define SHUNT_TOOLS_DEVICES_H

#include <jansson.h>

/*
 * An array of all, the soft device first. `root` is "" for this machine; of another root ("/proc/17/root",
 * a copy) only files below its /sys and /dev are looked at. Each has "usable", and if not "why" and "do".
 */
json_t *shunt_devices_list(const char *root);

/* devices_read.c: what files say of them, without the soft device. */
json_t *shunt_devices_read(const char *root);
/* devices_verbs.c: adds to them what libibverbs says. */
void shunt_devices_ask(json_t *devices);
/* devices_judge.c: adds the verdict. `libraries`: rdma-core's count. */
void shunt_devices_judge(json_t *devices, int libraries);

/* The fault of a library of rdma-core; NULL: it is there and has all calls. Returns a text of its own. */
const char *shunt_devices_verbs_fault(void);
const char *shunt_devices_cm_fault(void);

#endif
