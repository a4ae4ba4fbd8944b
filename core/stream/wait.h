/* SPDX-License-Identifier: MIT */
/*
 * A thread that waits for one stream: polls while that pays, then sleeps on what the stream's
 * present tracks need.
 */
#ifndef SHUNT_CORE_STREAM_WAIT_H
#define SHUNT_CORE_STREAM_WAIT_H

#include <stdbool.h>
#include <stdint.h>

struct shunt_lock;
struct shunt_stream;

/*
 * Until the stream is ready for one of `events`, a signal, or the deadline (SHUNT_NEVER: none).
 * 0: look again; -EINTR; -EAGAIN: the deadline passed. No lock held.
 */
int shunt_wait_stream(struct shunt_stream *stream, uint32_t events,
		      uint64_t deadline);
/*
 * The same inside a blocking call, which a close of the descriptor does not end. `lock` is given up meanwhile.
 * `moved`: the call has moved bytes; a cancellation of the thread ends the wait with -EINTR, and not the thread.
 */
int shunt_wait_call(struct shunt_stream *stream, struct shunt_lock *lock,
		    uint32_t events, uint64_t deadline, bool moved);
/* Beside the poll bits and EPOLLET and its like, which have the highest: */
#define SHUNT_READY_GIVEN (1u << 21)	/* a retirement has been answered: the kernel has, or is to get, all that is to be read */
#define SHUNT_READY_TRACK (1u << 22)	/* the tracks or the state have changed: epoll registrations follow */
#define SHUNT_READY_RELEASED (1u << 23)	/* the same where the peer names the stream no more: by itself that is no edge */
#define SHUNT_READY_ANSWERED (1u << 24)	/* a retirement has been answered, and what the peer wants again is written */
#define SHUNT_READY_ARRIVED (1u << 25)	/* bytes or the end have come, perhaps behind unread ones on TCP */
#define SHUNT_READY_SETTLED (1u << 26)	/* a sender may go on over TCP, which the kernel thinks it could all the time */
#define SHUNT_READY_FETCHED (1u << 27)	/* the device has fetched what was posted from the program's buffer */
/* A sleeper hears of what it asks for, of errors, and of all that may change which track it must watch. */
#define SHUNT_READY_WAKES(events) ((events) | EPOLLERR | EPOLLHUP | (SHUNT_READY_OURS & ~SHUNT_READY_ARRIVED))
#define SHUNT_READY_OURS 0x0fe00000u	/* all of these */

#endif
