/* SPDX-License-Identifier: MIT */
/*
 * Connections that are over before a link could serve them, a query and its answer each: what a claim costs they never
 * bring in again. Whether those to an address are such is learnt from the ones before; there a connection is claimed only
 * once it has lasted (service.c). The same count for several addresses does no harm: a few calls more on TCP.
 */
#ifndef SHUNT_CORE_STREAM_SHORT_LIVED_H
#define SHUNT_CORE_STREAM_SHORT_LIVED_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

#define SHUNT_SHORT_LIVED_PLACES 256

struct shunt_engine;
struct shunt_stream;

/* The program has connected it to this address. */
void shunt_short_lived_begins(struct shunt_stream *stream, const struct sockaddr *address, socklen_t length);
/* The program has closed it. tx.lock and rx.lock held. */
void shunt_short_lived_ends(struct shunt_engine *engine, struct shunt_stream *stream);
/* Those like it were brief, most of them. */
bool shunt_short_lived_expected(struct shunt_engine *engine, const struct shunt_stream *stream);

#endif
