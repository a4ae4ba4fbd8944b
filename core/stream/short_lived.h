/* SPDX-License-Identifier: MIT */
/*
 * Connections that are over before a link could serve them, a query and its answer each: what a claim costs they never
 * bring in again. Whether those to an address are such is learnt from the ones before; there a connection is claimed only
 * once it has lasted (service.c). The same count for several addresses does no harm: a few calls more on TCP.
 *
 * Brief connections. Each address that is connected to, and each listener, has a count. It sets brief connections
 * against those that a link served. Brief are those that ended within a quarter of claim_ms, and of which a link
 * carried less than 64 KiB, unless they were claimed because they had lasted. So are all of which it carried nothing.
 * Where eight more (`brief`) were brief, the first use is not yet a claim. Such a connection is claimed once it has
 * lasted: 16 calls, 64 KiB or a quarter of claim_ms. One that is used again after a second has lasted, too. It may be
 * a pool's, and move megabytes in few calls. Clients that ask once and close would pay for claims that bring
 * them nothing.
 * brief_first expects this of all connections from the start.
 *
 * Short connections between hosts. A link to another host costs queue pairs and registered memory at both ends, and
 * its making takes longer than a short process lives. So the first use of a connection to another host is no claim
 * while no link to that process is up. The connection is claimed, in mid-stream, once it has lasted by the same rule.
 * A process without a service thread compares the address that it has connected to with its own end's
 * (core/stream/offer.c), and starts none. Where there is a service thread it looks for a link first, then for a peer
 * in SHUNT_DIR. If it finds neither, it puts the connection off (core/peer/claim.c). SHUNT_TUNE=brief=0 claims at the
 * first use.
 */
#ifndef SHUNT_CORE_STREAM_SHORT_LIVED_H
#define SHUNT_CORE_STREAM_SHORT_LIVED_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

#define SHUNT_SHORT_LIVED_PLACES 256

struct shunt_engine;
struct shunt_stream;

/*
 * Has a stream lasted? A link to another host costs queue pairs and registered memory at both ends. So a connection
 * there is claimed only once it has lasted, unless such a link is up.
 */
enum shunt_lasting {
	SHUNT_LASTING_UNKNOWN, /* nothing has asked yet */
	SHUNT_LASTING_WAITS, /* it has to, and has not */
	SHUNT_LASTING_PROVEN, /* it has */
	SHUNT_LASTING_SEED, /* it need not: spares are to come of it (spare.h) */
};

#define SHUNT_SHORT_LIVED_USES 5	/* are all that most short ones have: of more it counts how old it is */

/* From the start, if the configuration says so. */
void shunt_short_lived_config(struct shunt_engine *engine);
/* Which count is that of connections to this address. Connections that a listener has accepted have a count of their own. */
uint8_t shunt_short_lived_place(const struct sockaddr *address, socklen_t length);
/* The program has closed the stream. tx.lock and rx.lock held. */
void shunt_short_lived_ends(struct shunt_engine *engine, struct shunt_stream *stream);
/* A connection has ended. role: enum shunt_role, of those that connect or accept. */
void shunt_short_lived_count(struct shunt_engine *engine, uint8_t role, uint8_t place, bool brief);
/* Those like it were brief, most of them. */
bool shunt_short_lived_expected(struct shunt_engine *engine, uint8_t role, uint8_t place);
/* So many calls and bytes are more than a query and its answer. `born`, in ns, 0: not known; it does not count for the first uses. */
bool shunt_short_lived_lasts(struct shunt_engine *engine, uint32_t uses, uint64_t bytes,
			     uint64_t born);
/* The same, however old it is. */
bool shunt_short_lived_is_used(uint32_t uses, uint64_t bytes);
/*
 * So many transfers over TCP are more than an acceptor sees before its peer finds that the connection has lasted. The
 * factor is for peers whose calls move more at once.
 */
bool shunt_short_lived_is_long(uint32_t transfers);

#endif
