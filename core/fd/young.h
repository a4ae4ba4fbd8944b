/* SPDX-License-Identifier: MIT */
/*
 * A young connection: one that is expected to be over soon (core/stream/short_lived.h), and has not lasted yet. It has no
 * stream: the kernel serves it, and its record counts what a stream would have to know. A call that the record does not
 * serve makes it a stream first (core/young.c), and so does the connection's age.
 *
 * There is one record for each number, in blocks that are mapped when they are needed and stay. A thread that holds a stale
 * pointer takes the lock and looks whether the table still has the record at its number.
 *
 * A connection that is expected to be brief is young: it has no stream (core/young.c). The files table has a record
 * there (core/fd/young.h), one for each number. The kernel serves the connection. The record counts calls and bytes,
 * and has its registration in an epoll set.
 *
 * It becomes a stream:
 *
 * - once it has lasted: shunt_young_begins.
 * - when a peer's claim comes, and when a claim has waited for claim_ms: all do: core/peer/claim_grant.c.
 * - with a call that the record does not serve, such as poll, shutdown, dup, a second epoll set, one-shot events,
 *   most options: shunt_lookup in preload/process.h.
 * - when statistics are asked for, and before a command of shunt adm: core/admin/.
 * - before a fork: shunt_engine_fork_prepare.
 *
 * A call of preload/ that knows nothing of young connections finds a stream: the look-up makes it. preload/young.h
 * has what other calls use. Before the process confines itself, young connections are given to the kernel for good.
 *
 * The totals have the connections that ended young, and their bytes. Their sends are in no histogram. A stream counts
 * the bytes of its record. So a claim compares the kernel's counts with ours as for any other. The record's lock is
 * held during its calls, none of which waits. It comes after seats_lock and before rx.lock.
 */
#ifndef SHUNT_CORE_FD_YOUNG_H
#define SHUNT_CORE_FD_YOUNG_H

#include "core/base/lock.h"
#include "core/fd/file.h"

struct shunt_epset;
struct shunt_rendezvous;

enum shunt_young_role { SHUNT_YOUNG_SOCKET, SHUNT_YOUNG_CONNECTOR, SHUNT_YOUNG_ACCEPTOR };

struct shunt_young {
	struct shunt_file file;
	struct shunt_lock lock;	/* of all below; it comes before rx.lock and tx.lock of any stream */
	int fd;			/* constant */
	uint8_t role;		/* enum shunt_young_role */
	uint8_t place;		/* which count of brief ones is its own */
	bool nonblocking;
	bool corked;		/* TCP_CORK */
	bool shared;		/* a fork has made a second owner */
	uint16_t caller;	/* of an acceptor, as a stream's */
	uint16_t changed;	/* options that the program has set: struct shunt_options */
	uint32_t uses;		/* calls that would have moved bytes */
	uint64_t received, sent;
	uint64_t born;		/* ns; 0: its age was not asked for yet */
	struct shunt_rendezvous *rendezvous;	/* of an acceptor */

	struct shunt_epset *set;	/* the set it is registered in; NULL: in none */
	uint32_t set_generation;	/* of the set then */
	uint32_t events;		/* as the program gave them, as is the next */
	uint64_t data;

	/* of all connections that have ended at this number without a stream */
	uint64_t ended, ended_received, ended_sent;
};

#define SHUNT_YOUNG_BLOCK 256	/* records that are mapped at once */
#define SHUNT_YOUNG_BLOCKS 256	/* connections of higher numbers have streams from the start */

#endif
