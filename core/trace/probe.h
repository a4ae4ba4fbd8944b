/* SPDX-License-Identifier: MIT */
/*
 * Probes for bpftrace and its like (USDT): an instruction that does nothing until somebody traces it, and a note on
 * its arguments. Their table is in docs/dev/DEBUGGING.md. A build without sys/sdt.h has no probes. Arguments are evaluated all
 * the same, so they are cheap and change nothing.
 */
#ifndef SHUNT_CORE_TRACE_PROBE_H
#define SHUNT_CORE_TRACE_PROBE_H

#ifdef SHUNT_USDT
#include <sys/sdt.h>
#define SHUNT_PROBE2(name, a, b) DTRACE_PROBE2(shunt, name, a, b)
#define SHUNT_PROBE3(name, a, b, c) DTRACE_PROBE3(shunt, name, a, b, c)
#define SHUNT_PROBE4(name, a, b, c, d) DTRACE_PROBE4(shunt, name, a, b, c, d)
#else
#define SHUNT_PROBE2(name, a, b) ((void)(a), (void)(b))
#define SHUNT_PROBE3(name, a, b, c) ((void)(a), (void)(b), (void)(c))
#define SHUNT_PROBE4(name, a, b, c, d) ((void)(a), (void)(b), (void)(c), (void)(d))
#endif

#endif
