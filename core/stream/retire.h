/* SPDX-License-Identifier: MIT */
/*
 * Back to the kernel for good, at an exact byte. For calls that cannot be served in user space, and for descriptors
 * that another program is about to own.
 *
 * Our direction is handed back like any. We stop reading the link at once and tell the peer up to where we have read.
 * It sends the rest, which still lies in our ring and which it can see there, again over TCP, and everything later
 * too. So the kernel holds every byte that the program has not had, and the socket's next owner gets them.
 *
 * exec, fdopen, splice, passing a descriptor and everything else that only the kernel can do come here first. They
 * wait up to 5 seconds, for all streams of a link together (core/link/patience.h). A non-blocking splice waits for no
 * answer: while there is something to read, it copies that.
 */
#ifndef SHUNT_CORE_STREAM_RETIRE_H
#define SHUNT_CORE_STREAM_RETIRE_H

#include <stdbool.h>
#include <stdint.h>
#include "core/base/reason.h"
#include "core/fork/fork_slots.h"
#include "shunt/wire.h"

struct shunt_engine;
struct shunt_stream;
struct shunt_task;

/* A relative has taken it: the peer is to confirm that, if the relative has not told it. Service thread. */
void shunt_retire_ask_again(struct shunt_stream *stream);
/* Begins it: says LEAVE, which the peer answers with LEFT. Any thread. */
void shunt_retire_begin(struct shunt_engine *engine, struct shunt_stream *stream,
			enum shunt_cause cause);
/* The peer has answered and has everything: the stream becomes the kernel's. True: it is, or the link is over. */
bool shunt_retire_complete(struct shunt_engine *engine, struct shunt_stream *stream);
/*
 * A ring of io_uring is about to use the stream: as shunt_stream_retire(). Where the ring only `reads`, it ends when the
 * kernel has, or gets, what is to be read. If that cannot be, the connection is reset. 0 or -errno. No lock held.
 */
int shunt_stream_bar(struct shunt_engine *engine, int fd, struct shunt_stream *stream, bool reads);
/*
 * Without the peer, which is gone or has ended: the kernel has what is unread, by a repeat (repeat.h), or nothing is. The
 * stream becomes the kernel's. False: it does not. No lock held.
 */
bool shunt_retire_alone(struct shunt_engine *engine, struct shunt_stream *stream);
/*
 * Another process is to have the stream all the same. If the peer is gone and unread bytes are here, that process would
 * take the kernel's end for the stream's: the connection is reset. No lock held.
 */
void shunt_retire_failed(struct shunt_engine *engine, struct shunt_stream *stream);
/* A relative that waits for the stream is told how that has ended. No lock held. */
void shunt_retire_tell_relative(struct shunt_engine *engine, struct shunt_stream *stream);
/* Waits until bytes that were readable before can be read from the kernel, or do not come soon. No lock held. */
void shunt_retire_await_bytes(struct shunt_engine *engine, int fd, int wanted);
/* The peer has said LEAVE: it wants our direction on TCP. Service thread. */
void shunt_retire_asked(struct shunt_engine *engine, struct shunt_stream *stream, const struct shunt_leave *leave);
/*
 * A relative of the peer's process has taken the peer's end, which stands there: both directions are TCP's from now on. The
 * peer is told, too. NOTHING: not yet, or never; the relative asks again. `to_owner`: the peer itself asks, and is told
 * also if it cannot be done. Service thread.
 */
enum shunt_told shunt_retire_yield(struct shunt_engine *engine, struct shunt_stream *stream,
				   const struct shunt_stand *stand, bool to_owner);
/* Answers what can be answered by now; is there more? Service thread. */
void shunt_retire_run(struct shunt_task *task);
bool shunt_retire_waits(struct shunt_engine *engine);
/* The peer has answered. Service thread. */
void shunt_retire_answered(struct shunt_engine *engine, struct shunt_stream *stream, bool done);
#endif
