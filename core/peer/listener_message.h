/* SPDX-License-Identifier: MIT */
/*
 * The have channel: a process that accepts at an address whose rendezvous another process owns tells the owner which
 * connections it has. The owner's side is listener_owner.c, the worker's listener_worker.c. Service thread.
 */
#ifndef SHUNT_CORE_PEER_LISTENER_MESSAGE_H
#define SHUNT_CORE_PEER_LISTENER_MESSAGE_H

struct shunt_engine;
struct shunt_have;

/* One message. 1; 0: nothing has come; -errno: it is over. */
int shunt_listener_message_receive(struct shunt_engine *engine, int from, struct shunt_have *have);
/* Never waits: a process that does not listen is not told. 0 or -errno. */
int shunt_listener_message_send(struct shunt_engine *engine, int to, struct shunt_have *have);

#endif
