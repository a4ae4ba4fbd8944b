/* SPDX-License-Identifier: MIT */
/*
 * The command `probe` of the control socket: an RDMA WRITE of no bytes on the first lane of each link. It reports how
 * long the completion took. The peer's device answers it, and neither process notices. Service thread.
 */
#ifndef SHUNT_CORE_RECOVERY_PROBE_H
#define SHUNT_CORE_RECOVERY_PROBE_H

struct shunt_answer;
struct shunt_engine;

/*
 * Answers with JSON: {"schema", "links": [{"device", "peer", "initiator", "lanes", "setup_ns", "write_ns"}]}. A
 * write_ns of null is a WRITE that has not been answered yet: the next `probe` waits for the same one. The service
 * thread waits for SHUNT_PROBE_WAIT_NS at most.
 */
int shunt_probe_command(struct shunt_engine *engine, int count, char **words,
			struct shunt_answer *answer);

#define SHUNT_PROBE_WAIT_NS 10000000ull

#endif
