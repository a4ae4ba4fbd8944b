/* SPDX-License-Identifier: MIT */
/* The model of the connections: which calls have one outcome only, and what they change. */
#include <stdlib.h>
#include <sys/epoll.h>
#include "gen.h"

struct half model[CONNS][2];

int is_send(int kind)
{
	return kind <= SEND_CHILD && kind != SEND_FAULT && kind != SEND_NOTHING;
}

int is_wait(int kind)
{
	return kind >= WAIT_POLL && kind <= WAIT_RECV;
}

/* Bytes that a peer cannot send again stay with the process (docs/COMPATIBILITY.md). */
int is_kept_back(const struct half *h, const struct half *peer)
{
	return h->unread && (h->ended || peer->given || getenv("GEN_CAREFUL"));
}

int certain(struct cmd *c, const struct half *h, const struct half *peer)
{
	if (is_wait(c->kind))	/* ended by a send of the other side */
		return !h->unread && !h->ended && !h->shut_r && !peer->shut_w && !h->nonblocking &&
		       (c->kind != WAIT_EPOLL || (h->events[c->set] & EPOLLIN && !(h->events[c->set] & (EPOLLOUT | EPOLLONESHOT))));
	if ((c->kind == SEND_CHILD || c->kind == PASS) && is_kept_back(h, peer))
		return 0;
	if (is_send(c->kind)) {
		if (peer->shut_r && peer->shut_w)
			return 0;	/* answered by a reset */
		if (h->shut_w)
			return c->kind == SEND || c->kind == SENDMSG;	/* EPIPE */
		return peer->unread + c->n <= MOST;
	}
	switch (c->kind) {
	case RECV: case READ: case READV: case RECVMSG: case RECVFROM: case PEEK: case TRUNC:
		return h->unread || h->ended || h->shut_r || h->nonblocking;
	case WAITALL:
		return h->unread >= c->n || h->ended || h->shut_r || h->nonblocking;
	case SEND_NOTHING: case SEND_FAULT:
		return !h->shut_w;
	case EP_ADD: case EP_MOD: case EP_DEL:
		return 1;
	case SHUT_W:
		return !h->shut_w && !(h->shut_r && peer->unread + 1);
	case SHUT_R:
		return !h->shut_r && !h->shut_w && !peer->shut_w;
	case DUP:
		return !h->dup;
	case DUP2: case CLOSE_DUP: case PASS:
		return h->dup;
	}
	return 1;
}

void account(const struct cmd *c, const struct reply *r, struct half *h, struct half *peer)
{
	if (is_send(c->kind) && r->r > 0) {
		h->sent += r->r;
		peer->unread += r->r;
	}
	if (((c->kind >= RECV && c->kind <= DONTWAIT && c->kind != PEEK) || c->kind == WAIT_RECV) && r->r > 0) {
		h->unread -= r->r;
		h->got += r->r;
	}
	switch (c->kind) {
	case SEND_CHILD: case PASS: h->given = 1; break;
	case SHUT_W: h->shut_w = 1; peer->ended = 1; break;
	case SHUT_R: h->shut_r = 1; break;
	case NONBLOCK: case FIONBIO_: h->nonblocking = c->n & 1; break;
	case DUP: h->dup = 1; break;
	case CLOSE_DUP: h->dup = 0; break;
	case EP_ADD: if (!r->r) h->events[c->set] = c->events; break;
	case EP_MOD: if (!r->r) h->events[c->set] = c->events; break;
	case EP_DEL: h->events[c->set] = 0; break;
	}
}
