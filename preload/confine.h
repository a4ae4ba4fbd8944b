/* SPDX-License-Identifier: MIT */
/* Calls that confine their thread or change who it is, by number. */
#ifndef SHUNT_PRELOAD_CONFINE_H
#define SHUNT_PRELOAD_CONFINE_H

#include "preload/process.h"

/* lsm_set_self_attr(2), newer than some headers: since Linux 5.0 new calls have one number on all machines. */
#define SHUNT_SYS_LSM_SET_SELF_ATTR 460

/* Before a call that sets limits, by number. */
void shunt_rlimit_look(long number, long a, long b, long c);
long shunt_confine_call(long number, long a, long b, long c, long d, long e, long f);

#endif
