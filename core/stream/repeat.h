/* SPDX-License-Identifier: MIT */
/*
 * The kernel holds what a process has sent when that process is gone; a ring's bytes are its reader's alone. A reader may
 * give its socket to another program, which asks the kernel. So a direction that ends leaves a second copy. TCP carries
 * again what the reader has not read (hand_back.h), and the kernel's end of stream follows.
 *
 *	REPEAT(m)      the link carries the bytes before it, up to n; TCP goes on at m <= n, and carries all behind m
 *
 * Here is the reader's half. It reads the ring up to n, as behind a HANDBACK. The kernel's queue then begins with bytes
 * that it has read, and it drops these. A reader that retires drops those before its place, and the kernel has the rest.
 * Word SHUNT_IMM_REPEAT of its control line says where the kernel's queue begins.
 *
 * Repeats. A peer that has ended its direction sends nothing again: its kernel socket takes no byte, and its process
 * may be gone. So shutdown, close and exit write to TCP what the reader has not read, before the kernel's end
 * (core/stream/repeat.h). The direction leaves the link by REPEAT. It is a HANDBACK that says where TCP goes on, and
 * bytes without room leave in the same way (core/stream/overflow.c). The reader still takes these bytes from the
 * ring. It drops them from the kernel's queue when it has read the last one, or when it retires. A reader that had
 * not heard of the UPGRADE may read them from TCP; then the link's are the copy. Bytes that the socket does not take
 * at once are not repeated by shutdown and close, because this end can still be asked for them. At exit they wait for
 * room. A reader that is not known to have passed the UPGRADE needs all of them. So none is repeated if the socket seems to
 * have no room, and else the rest waits. If nothing is unread, nothing of this happens: the sender looks at word 15. Where unread bytes can be had
 * neither from the peer nor from a repeat, a socket that is passed is reset.
 */
#ifndef SHUNT_CORE_STREAM_REPEAT_H
#define SHUNT_CORE_STREAM_REPEAT_H

#include <stdbool.h>
#include <stdint.h>
#include "core/stream/stream.h"

/* REPEAT(at) has come, which is a HANDBACK, too. NULL, or why the link is distrusted. group.lock held. */
const char *shunt_repeat_heard(struct shunt_stream *stream, uint64_t at);
/*
 * UPGRADE(at) has come, and the reader stands behind `at`. True: it has read a repeat, and TCP has everything. group.lock
 * held.
 */
bool shunt_repeat_overtook(struct shunt_stream *stream, uint64_t at);
/*
 * Drops the bytes before rx.head from the kernel's queue, or before the place where TCP goes on. True: all of them.
 * `patient`: waits while some come. rx.lock held.
 */
bool shunt_repeat_drop(struct shunt_stream *stream, int fd, bool patient);
/* Waits until they have come and are dropped, while some come. The program closes the stream. No lock held. */
void shunt_repeat_await(struct shunt_stream *stream, int fd);
/* The same for a reader that is on TCP: it is in step again. rx.lock held. */
bool shunt_repeat_catch_up(struct shunt_stream *stream, int fd);
/* The kernel reports bytes, and has dropped ones alone: they are dropped. Any thread, with or without group.lock. */
bool shunt_repeat_hides(struct shunt_stream *stream);
/* How many bytes of the kernel's queue the program gets from the link, or has got. */
uint64_t shunt_repeat_bytes(const struct shunt_stream *stream);

/* Of `tcp` bytes in that queue the others. */
uint64_t shunt_repeat_without(const struct shunt_stream *stream, uint64_t tcp);

/*
 * The peer's process is gone, or does not answer: the kernel is to have what is unread, by the repeat alone. `declined`: it
 * has answered that it cannot. Then the repeat may have had no room and lack its rest, so only what is there counts.
 * False: the kernel lacks some. Both locks held.
 */
bool shunt_repeat_covers(struct shunt_stream *stream, int fd, bool declined);

#endif
