/* SPDX-License-Identifier: MIT */
/*
 * The calls of the libc boundary into the engine. Nothing here touches errno: results are >= 0 or
 * -errno. `fd` is always the number the program used; `stream` what the table held for it.
 */
#ifndef SHUNT_CORE_API_H
#define SHUNT_CORE_API_H

#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/types.h>
#include <sys/uio.h>
#include "core/base/config.h"
#include "core/base/reason.h"
#include "core/base/sys.h"
#include "core/fd/file.h"
#include "core/stream/splice.h"

/* "schema" of each JSON object that Shunt writes: one more when a member goes or changes its meaning. docs/VERSIONS.md */
#define SHUNT_JSON_SCHEMA 1

struct shunt_engine;
struct shunt_stream;
struct shunt_traffic;

/* --- life --- */

/* Reserves address space only: no thread, no descriptor, no device until a connection wants one. */
struct shunt_engine *shunt_engine_create(const struct shunt_config *config, const struct shunt_sys *sys);
/*
 * The key of links between hosts (keyfile.h), which stays. NULL: no key; with `lacks` no links
 * between hosts either. Before the first connection.
 */
void shunt_engine_key(struct shunt_engine *engine, const uint8_t *key, bool lacks);
struct shunt_files *shunt_engine_files(struct shunt_engine *engine);
struct shunt_fds *shunt_engine_fds(struct shunt_engine *engine);
struct shunt_group *shunt_engine_group(struct shunt_engine *engine);
/* At exit(): sends what is staged and the FINs, writes the statistics. Idempotent. */
void shunt_engine_finish(struct shunt_engine *engine);
/*
 * Around a call that confines the calling thread or changes who it is. Before it: every stream goes back to TCP at
 * its byte, and the service thread ends. After it the service thread begins anew when it is needed.
 */
void shunt_engine_leave(struct shunt_engine *engine, bool for_good);
/* True: the program listens, so that is needed: shunt_engine_begin_anew() before it waits for connections. */
bool shunt_engine_left(struct shunt_engine *engine);
void shunt_engine_begin_anew(struct shunt_engine *engine);
/* The program is about to forbid itself new threads: if it listens, our threads start while they can. */
void shunt_engine_begin_early(struct shunt_engine *engine);
/* The calling thread is about to set no_new_privs. False: shunt_engine_leave() is needed; else all our threads have it. */
bool shunt_engine_no_new_privs(struct shunt_engine *engine);
/* In place of the second: no connection leaves TCP from now on. No system call. */
void shunt_engine_stay(struct shunt_engine *engine);
/* pthread_atfork handlers. In the child every link belongs to the parent. */
void shunt_engine_fork_prepare(struct shunt_engine *engine);
void shunt_engine_fork_parent(struct shunt_engine *engine);
void shunt_engine_fork_child(struct shunt_engine *engine);
/* The same around a clone whose child is not the engine's: no library is half loaded there, no descriptor in the making. */
void shunt_engine_clone_prepare(struct shunt_engine *engine);
void shunt_engine_clone_parent(struct shunt_engine *engine);

/* --- descriptors come and go --- */

/* After socket(): a TCP socket of family INET or INET6. */
void shunt_file_socket(struct shunt_engine *engine, int fd, bool nonblocking);
/* There are spares: without them no connect() need look for one. */
bool shunt_born_any(const struct shunt_engine *engine);
/*
 * In place of the real connect(), where a spare takes the number's place (core/stream/spare.h). `address` is readable. True:
 * it does, and *result is the call's, or 0 or -errno.
 */
bool shunt_born_connect(struct shunt_engine *engine, int fd, const struct sockaddr *address,
			 socklen_t length, int *result);
/*
 * In place of the real accept4(): the number of a birth, or -errno. -EAGAIN: the kernel is to be asked. If it has none, this is
 * called once more, with `again`. `peer`: the other end's address; NULL: it is not wanted.
 */
int shunt_born_accept(struct shunt_engine *engine, struct shunt_stream *listener, bool again,
		      int flags, struct sockaddr_storage *peer);
/* It blocks, and may have births: accept() is the next call, which waits as the kernel's does. */
bool shunt_accept_waits(const struct shunt_stream *listener);
#define SHUNT_ACCEPT_KERNEL INT_MIN
struct shunt_accept {
	struct sockaddr *address;
	socklen_t *length;
	int flags; /* of accept4(), or SHUNT_ACCEPT_PLAIN */
	bool born; /* result: all is done but that the address is not told; else the number is the kernel's, for shunt_file_accepted() */
	struct sockaddr_storage peer; /* of a birth, where `address` is given */
};
/* The number, or -errno; -ERESTART: the call begins anew; SHUNT_ACCEPT_KERNEL: the real call, which may wait, is to be made. */
int shunt_accept_wait(struct shunt_engine *engine, int fd, struct shunt_stream *listener,
		      struct shunt_accept *call);
/* After shutdown() of a listener: it refuses, and what waits there is reset. */
void shunt_born_shut(struct shunt_engine *engine, struct shunt_stream *listener);
/* Before the program sets an option of the stream's socket. */
void shunt_spare_option_changes(struct shunt_stream *stream, int level, int name);
/* The connection may be used again, and the next two are of use. */
bool shunt_spare_option_any(const struct shunt_stream *stream);
/* The socket has the value from a connection before, so that it need not be set. Its thread. */
bool shunt_spare_option_has(struct shunt_stream *stream, int level, int name, int value);
/* The socket has taken the value. Its thread. */
void shunt_spare_option_note(struct shunt_stream *stream, int level, int name, int value);
/* Before the program asks for an option's value: the socket has that of a new connection. Its thread; errno is kept. */
void shunt_spare_option_shows(struct shunt_stream *stream, int level, int name);
/* After the real connect() to `address` returned `result` (0 or -errno) on a stream. */
void shunt_file_connected(struct shunt_engine *engine, int fd, int result, const struct sockaddr *address, socklen_t length);
/*
 * After a send of `message` with MSG_FASTOPEN, which connects the stream. `result` is the number of bytes sent, or -errno.
 * Does nothing if the stream was connected before.
 */
void shunt_file_opened(struct shunt_engine *engine, int fd, ssize_t result,
		       const struct msghdr *message);
/*
 * Before connect(AF_UNSPEC) on a stream: the connection ends by reset and the number is a fresh
 * socket. The caller then makes the real call.
 */
void shunt_file_dissolving(struct shunt_engine *engine, int fd);
/* After listen() succeeded: offers a rendezvous. */
void shunt_file_listening(struct shunt_engine *engine, int fd);
/* A listening TCP socket that was made elsewhere: inherited by exec, or passed to us. */
void shunt_file_adopted(struct shunt_engine *engine, int fd);
/*
 * A connected TCP socket has come by exec or SCM_RIGHTS, and the table does not know it. It is a candidate, as soon as
 * nobody else is known to hold it (core/stream/doubt.h).
 */
void shunt_file_received(struct shunt_engine *engine, int fd, enum shunt_cause how);
/* Is the stream on a link of this process? */
bool shunt_stream_is_linked(const struct shunt_stream *stream);
/* Before accept(), or when a listener is added to an epoll set: if others do so too, their owner should know us. */
void shunt_file_accepting(struct shunt_engine *engine, struct shunt_file *file);
/* After accept() on the stream `listener` gave `fd`. `caller`: the peer's port, in network order; 0: not known. */
void shunt_file_accepted(struct shunt_engine *engine, int listener, int fd, bool nonblocking,
			 uint16_t caller);
/* After epoll_create(). */
void shunt_file_epoll(struct shunt_engine *engine, int fd);
/* After a dup of `old` gave `fd`: both now name the same file. */
void shunt_file_duplicated(struct shunt_engine *engine, int old, int fd);
/*
 * Before the number is closed or replaced. Drops the slot; the last number of a stream ends it (FIN
 * or RST as close() would). The caller then makes the real call. Closing is the engine's concern
 * only as long as a slot is set, so it is cheap for every other descriptor.
 */
void shunt_file_closing(struct shunt_engine *engine, int fd);

/* --- young connections: core/fd/young.h --- */

struct shunt_young;

/* In place of shunt_file_socket() and shunt_file_accepted(). False: call that. */
bool shunt_young_socket(struct shunt_engine *engine, int fd, bool nonblocking);
bool shunt_young_accepted(struct shunt_engine *engine, struct shunt_stream *from, int fd,
			  bool nonblocking, uint16_t caller);
/* In place of shunt_file_connected(), which it calls itself where the connection is not expected to be brief. */
void shunt_young_connected(struct shunt_engine *engine, int fd, int result,
			   const struct sockaddr *address, socklen_t length);
/* It becomes a stream, if it has not yet. The result is the table's entry then; NULL: the kernel's alone. */
struct shunt_file *shunt_young_grown(struct shunt_engine *engine, int fd);
/* All do that are connected. `counted`: those that have ended come into the totals. No lock held but seats_lock. */
void shunt_young_grow_all(struct shunt_engine *engine, bool counted);
/* Before its number is closed or replaced. False: the table has something else there by now. */
bool shunt_young_closing(struct shunt_engine *engine, struct shunt_young *young);
/*
 * Around a real call that may move bytes. False: the connection is to be a stream by now, and the second must not follow.
 * The bytes, or less than 0. Handlers of signals come after it.
 */
bool shunt_young_begins(struct shunt_engine *engine, struct shunt_young *young);
void shunt_young_ends(struct shunt_young *young, int64_t received, int64_t sent);
/* False, as also below: the table has something else there by now. */
bool shunt_young_set_nonblocking(struct shunt_engine *engine, struct shunt_young *young,
				 bool nonblocking);
bool shunt_young_set_corked(struct shunt_engine *engine, struct shunt_young *young, bool corked);
/* Before the program sets an option of its socket. */
bool shunt_young_option(struct shunt_engine *engine, struct shunt_young *young, int level,
			int name);
/* epoll_ctl() of a set that the table has, including the real call. False: it must be a stream first. Result: 0 or -errno. */
bool shunt_young_ctl(struct shunt_engine *engine, struct shunt_young *young,
		     struct shunt_file *owner, int epfd, int op, struct epoll_event *event,
		     int *result);

/* --- data --- */

/*
 * True while the kernel alone serves the socket: not yet connected, a plain peer, or handed back
 * for good. Then the caller makes the real call with the program's own arguments.
 */
bool shunt_stream_is_plain(const struct shunt_stream *stream);
/*
 * Send and receive with the semantics of sendmsg()/recvmsg() without ancillary data. Never raise
 * SIGPIPE (-EPIPE; the boundary raises it). -ERESTART: the call is to begin anew, after the handlers of the program
 * that have been put off. The stream may be the kernel's by then. Supported flags: MSG_DONTWAIT, MSG_NOSIGNAL, MSG_MORE,
 * MSG_PEEK, MSG_WAITALL, MSG_TRUNC (TCP: discard), MSG_CMSG_CLOEXEC. Others: retire first.
 */
ssize_t shunt_stream_send(struct shunt_engine *engine, int fd, struct shunt_stream *stream,
			  const struct iovec *iov, int iovcnt, int flags);
ssize_t shunt_stream_recv(struct shunt_engine *engine, int fd, struct shunt_stream *stream,
			  const struct iovec *iov, int iovcnt, int flags);
/* shutdown(), including the real call. */
int shunt_stream_shutdown(struct shunt_engine *engine, int fd, struct shunt_stream *stream, int how);
/* FIONREAD (= SIOCINQ) and SIOCOUTQ: bytes, or -errno. */
int shunt_stream_inq(struct shunt_engine *engine, int fd, struct shunt_stream *stream);
int shunt_stream_outq(struct shunt_engine *engine, int fd, struct shunt_stream *stream);
/* SIOCATMARK: 0, 1 or -errno. */
int shunt_stream_at_mark(struct shunt_engine *engine, int fd, struct shunt_stream *stream);
/* Value of SO_ERROR, cleared by the call; 0 if nothing. */
int shunt_stream_take_error(struct shunt_stream *stream);
/*
 * The same in two steps, for a caller that asks the kernel itself: the link's error, cleared; and if that is 0, the
 * kernel's.
 */
int shunt_stream_link_error(struct shunt_stream *stream);
/* The kernel has said this. Returns what is not known yet: the error or 0. */
int shunt_stream_hear_error(struct shunt_stream *stream, int error);
/* For the next call that asks: an error that came behind something that was reported. */
void shunt_stream_keep_error(struct shunt_stream *stream, int error);
/* The program changed O_NONBLOCK (F_SETFL, FIONBIO). */
void shunt_stream_set_nonblocking(struct shunt_stream *stream, bool nonblocking);
/* The program, or the listener's creator, has asked for this by options that are on. Bits. */
enum shunt_asks {
	SHUNT_ASKS_UNKNOWN = 1 << 0,	/* only the kernel knows of the next two */
	SHUNT_ASKS_STAMPS = 1 << 1,	/* times of arrival with each message (SO_TIMESTAMP…) */
	SHUNT_ASKS_UNREAD = 1 << 2,	/* with each message how much is left to read (TCP_INQ) */
	/* A link cannot do these, so the connection stays on TCP while one of them is on. */
	SHUNT_NEEDS_TIMES = 1 << 3,	/* SO_TIMESTAMPING */
	SHUNT_NEEDS_PEEK_OFF = 1 << 4,	/* SO_PEEK_OFF */
	SHUNT_NEEDS_FILTER = 1 << 5,	/* SO_ATTACH_FILTER, SO_ATTACH_BPF */
	SHUNT_NEEDS_REPAIR = 1 << 6,	/* TCP_REPAIR */
	SHUNT_NEEDS_OTHER = 1 << 7,	/* signatures, encryption, another protocol: no program switches those off again */
};
#define SHUNT_NEEDS_ANY 0xf8u

/* SHUNT_ASKS_STAMPS and SHUNT_ASKS_UNREAD, as far as they are on. */
uint8_t shunt_stream_asks(struct shunt_stream *stream);
/* An option with this effect is on, or off: counts for a connection that the socket will have or accept. */
void shunt_stream_needs(struct shunt_stream *stream, uint8_t need, bool on);
/* The value of TCP_INQ: bytes left to read, and one more if the end has come behind them. */
int shunt_stream_unread(struct shunt_engine *engine, int fd, struct shunt_stream *stream);
/* The program set an option that the engine caches or acts upon (SO_RCVTIMEO, SO_LINGER, TCP_CORK…) to what the kernel took. */
/*
 * The program asks for a socket option, or sets it. True: one of those by which the engine proves possession
 * (core/stream/marks.h): it has the program's value until shunt_stream_option_ends(), which follows. Any thread, no lock.
 */
bool shunt_stream_option_begins(struct shunt_stream *stream, int level, int name);
void shunt_stream_option_ends(struct shunt_stream *stream);
void shunt_stream_option_changed(struct shunt_stream *stream, int level, int name, const void *value);
/* SO_MAX_PACING_RATE, set and asked, where the kernel may have ours (core/qos/pacing.h). 0 or -errno. */
int shunt_stream_set_pacing(struct shunt_stream *stream, int fd, const void *value,
			    socklen_t length);
int shunt_stream_get_pacing(struct shunt_stream *stream, int fd, void *value, socklen_t *length);
/* The kernel's SO_LINGER is not the program's now (core/stream/backlog.h): that is this. */
bool shunt_stream_linger(struct shunt_stream *stream, struct linger *linger);
/*
 * Hands the stream back to the kernel for good, at its exact byte, and waits until that is done.
 * For everything that the engine does not serve. 0 or -errno.
 */
int shunt_stream_retire(struct shunt_engine *engine, int fd, struct shunt_stream *stream,
			enum shunt_cause cause);
/* The same in a child of vfork(), of its parent's stream. */
int shunt_stream_retire_vforked(struct shunt_engine *engine, int fd, struct shunt_stream *stream,
				enum shunt_cause cause);

/* --- what programs may ask of a connection: include/shunt/shunt.h --- */

/* SHUNT_SENDS | SHUNT_RECEIVES. Any thread, no lock. */
int shunt_stream_tracks(struct shunt_stream *stream);
/* Bytes so far. 0, or -ENOTCONN: it has no peer. No lock right of streams_lock held. */
int shunt_stream_traffic(struct shunt_engine *engine, struct shunt_stream *stream,
			 struct shunt_traffic *traffic);

/* --- waiting --- */

/* True if poll/select on this descriptor must go through the engine. */
bool shunt_wait_concerns(const struct shunt_file *file);
/* ppoll() and pselect() on any mix of descriptors; timeout NULL = for ever; mask may be NULL. */
int shunt_wait_poll(struct shunt_engine *engine, struct pollfd *fds, nfds_t count,
		    const struct timespec *timeout, const sigset_t *mask);
int shunt_wait_select(struct shunt_engine *engine, int nfds, fd_set *readable, fd_set *writable,
		      fd_set *except, const struct timespec *timeout, const sigset_t *mask);
/* epoll_ctl() whose epfd is in the table, including any real call. */
int shunt_epset_ctl(struct shunt_engine *engine, int epfd, int op, int fd, struct epoll_event *event);
/* epoll_wait family; timeout NULL = for ever. */
int shunt_epset_wait(struct shunt_engine *engine, int epfd, struct epoll_event *events, int max,
		     const struct timespec *timeout, const sigset_t *mask);
/* This thread's next wait without time may look for a moment, for it sleeps after that (core/poll/linger.h); until it is told otherwise. */
void shunt_thread_sleeps_next(bool next);

/* --- signals --- */

/*
 * Called in a signal handler that the program installed (the boundary wraps them), if it comes inside a call. A wait then
 * ends as the kernel's would. `restart`: the handler was installed with SA_RESTART. Async-signal-safe.
 */
void shunt_thread_signalled(bool restart);
/*
 * For an exported call that is not a cancellation point but makes calls of libc that may be one: hold before them, let
 * after them. A signal handler that runs between the two has the program's own cancellation state, and so has the code
 * that it jumps to. Not nested.
 */
void shunt_thread_hold_cancel(void);
void shunt_thread_let_cancel(void);

#endif
