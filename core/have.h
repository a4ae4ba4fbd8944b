/*
 * The have channel: who accepts at an address that another process owns the rendezvous of tells the owner which
 * connections it has. Both ends in one place: have.c is the owner's, join.c the other's. Service thread.
 */
#ifndef SHUNT_CORE_HAVE_H
#define SHUNT_CORE_HAVE_H

#include "core/service.h"

/* One message. 1; 0: nothing has come; -errno: it is over. */
int shunt_have_receive(struct shunt_engine *engine, int from, struct shunt_have *have);
/* Never waits: who does not listen is not told. 0 or -errno. */
int shunt_have_send(struct shunt_engine *engine, int to, struct shunt_have *have);

#endif
