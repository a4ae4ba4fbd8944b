/* SPDX-License-Identifier: MIT */
/*
 * The order of the locks: a thread may take a lock only while all that it holds stand further up. It holds two of
 * one rank never, and takes nothing but the device's own locks while it holds one of the innermost.
 *
 * The rx and tx locks of one stream are taken together only as rx, then tx. exit() tries a tx.lock under
 * streams_lock, and a lane's lock is tried under group.lock. An attempt does not wait, so the order does not
 * concern it. Builds with SHUNT_LOCK_CHECKS (lock_check.h) hold each thread to it.
 */
#ifndef SHUNT_CORE_BASE_LOCK_RANK_H
#define SHUNT_CORE_BASE_LOCK_RANK_H

/* The innermost are QUEUE and all behind it. */
/* clang-format off */
#define SHUNT_LOCK_RANKS(row) \
	row(LIMITS, "process.limits_lock") \
	row(LEAVE, "engine.leave_lock") \
	row(SEATS, "engine.group.seats_lock") \
	row(YOUNG, "young.lock") \
	row(SERVICE, "engine.service_lock") \
	row(RX, "stream.rx.lock") \
	row(TX, "stream.tx.lock") \
	row(LANE, "lane.lock") \
	row(STREAMS, "engine.streams_lock") \
	row(GROUP, "group.lock") \
	row(FOLLOWED, "followed.lock") \
	row(QUEUE, "lane.queue_lock") \
	row(SEND, "link.send_lock") \
	row(INBOX, "engine.work.inbox_lock") \
	row(RENDEZVOUS, "engine.rendezvous_lock") \
	row(WAKERS, "engine.fds.wakers.lock") \
	row(PORTER, "porter.lock") \
	row(ARENA, "arena.lock") \
	row(PENDINGS, "pendings.lock") \
	row(BOOK, "book.lock") \
	row(CANCELS, "cancels.lock")
/* clang-format on */

enum shunt_lock_rank {
	SHUNT_RANK_NONE, /* zeroes: no lock may be used so */
#define SHUNT_RANK_ROW(name, text) SHUNT_RANK_##name,
	SHUNT_LOCK_RANKS(SHUNT_RANK_ROW)
#undef SHUNT_RANK_ROW
	SHUNT_RANKS,
	SHUNT_RANK_INNERMOST = SHUNT_RANK_QUEUE, /* and all behind it */
};

#endif
