/* SPDX-License-Identifier: MIT */
/*
 * A scripted TCP: what Linux does with two connected sockets, moved on only when the schedule says
 * so. Calls return >= 0 or -errno.
 */
#ifndef SIM_TCP_H
#define SIM_TCP_H

#include <netinet/in.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/uio.h>

#define SIM_PIPE_BYTES 131072	/* ring of one direction; sndbuf + rcvbuf fit */

#define SIM_BACKLOG 8

struct sim_item;
struct tcp_info;

enum sim_tcp_state { SIM_TCP_CONNECTING, SIM_TCP_OPEN, SIM_TCP_CLOSED };

struct sim_pipe {		/* bytes this socket sends */
	uint8_t *data;
	uint64_t written, acked, read;
	uint32_t sndbuf, rcvbuf;
	bool fin_sent, fin_arrived;
	bool rst_sent;
};

struct sim_sock {
	int refs;		/* descriptors, and holders of a passed one */
	enum sim_tcp_state state;
	bool connector;
	bool orphan;		/* no descriptor is left */
	bool shut_read;		/* RCV_SHUTDOWN: by shutdown() or the peer's FIN */
	bool shut_write;
	bool done;		/* SOCK_DONE */
	bool nospace;
	int error;
	uint8_t options;	/* that the witness shows (witness.h) */
	bool listens;
	uint32_t queued;	/* connections that wait for accept(); of one that listens */
	int nodelay;		/* TCP_NODELAY */
	uint64_t unpaced;	/* SO_MAX_PACING_RATE, inverted */
	struct sockaddr_in local, remote;
	struct sim_sock *peer;
	struct sim_pipe out;
	struct sim_item *items;	/* epoll registrations */
};

/* Two ends of a connection that is being made: a[0] connects. */
void sim_tcp_pair(struct sim_sock a[2], uint8_t *rings[2], struct in_addr address, uint16_t port,
		  uint16_t from);
/* The handshake is over. */
void sim_tcp_establish(struct sim_sock *connector);
ssize_t sim_tcp_send(struct sim_sock *sock, const struct iovec *iov, size_t count);
ssize_t sim_tcp_receive(struct sim_sock *sock, const struct iovec *iov, size_t count, int flags);
uint32_t sim_tcp_poll(struct sim_sock *sock);
int sim_tcp_shutdown(struct sim_sock *sock, int how);
/* connect(AF_UNSPEC) */
void sim_tcp_disconnect(struct sim_sock *sock);
/* The peer is to hear of a reset, whatever was said before: who listened has gone. */
void sim_tcp_abort(struct sim_sock *sock);
/* The last descriptor was closed. */
void sim_tcp_close(struct sim_sock *sock);
void sim_tcp_info(struct sim_sock *sock, struct tcp_info *info);
int sim_tcp_unread(struct sim_sock *sock);
int sim_tcp_unsent(struct sim_sock *sock);
/* A send finds no room. */
bool sim_tcp_is_full(const struct sim_sock *sock);
/* Moves up to `bytes` of what the socket has written, then its end, to the peer. True: something moved. */
bool sim_tcp_deliver(struct sim_sock *sock, uint64_t bytes);

/* epoll.c: the socket's state changed; `what` 0: look for yourself. */
void sim_epoll_wake(struct sim_item *items, uint32_t what);

#endif
