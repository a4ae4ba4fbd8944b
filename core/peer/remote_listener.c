/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/random.h>
#include "core/engine.h"
#include "core/fd/own_fds.h"
#include "core/peer/remote_listener.h"

#define LISTENER SHUNT_REMOTE_LISTENER_GUESTS	/* in the epoll's data, where guests have their index */
#define ARRIVALS 64			/* looked at in one step */
#define PAUSE 100000000ull		/* ns without descriptors before the next try */

/* --- tickets --- */

/* Looks at every byte of every ticket, so that how long it takes tells nothing. */
static struct shunt_ticket *ticket_find(struct shunt_remote_listener *gate, const uint8_t cookie[SHUNT_COOKIE_BYTES])
{
	struct shunt_ticket *found = NULL;

	for (int i = 0; i < SHUNT_REMOTE_LISTENER_TICKETS; i++) {
		struct shunt_ticket *ticket = &gate->tickets[i];
		volatile uint8_t differ = !ticket->valid;

		for (int j = 0; j < SHUNT_COOKIE_BYTES; j++)
			differ |= ticket->cookie[j] ^ cookie[j];
		if (!differ)
			found = ticket;
	}
	return found;
}

int shunt_remote_listener_expect(struct shunt_remote_listener *gate, void *arg, uint8_t cookie[SHUNT_COOKIE_BYTES])
{
	struct shunt_ticket *ticket = gate->tickets;

	while (ticket < gate->tickets + SHUNT_REMOTE_LISTENER_TICKETS && ticket->valid)
		ticket++;
	if (ticket == gate->tickets + SHUNT_REMOTE_LISTENER_TICKETS)
		return -ENOSPC;
	if (gate->engine->sys->getrandom(cookie, SHUNT_COOKIE_BYTES, GRND_NONBLOCK) != SHUNT_COOKIE_BYTES)
		return -EAGAIN;
	*ticket = (struct shunt_ticket) { .arg = arg, .valid = true,
					  .deadline = shunt_now(gate->engine) + gate->patience };
	memcpy(ticket->cookie, cookie, SHUNT_COOKIE_BYTES);
	return 0;
}

void shunt_remote_listener_show(struct shunt_remote_listener *gate, void *arg,
				const uint8_t shown[SHUNT_COOKIE_BYTES])
{
	for (int i = 0; i < SHUNT_REMOTE_LISTENER_TICKETS; i++)
		if (gate->tickets[i].valid && gate->tickets[i].arg == arg)
			memcpy(gate->tickets[i].cookie, shown, SHUNT_COOKIE_BYTES);
}

static void end_tickets(struct shunt_remote_listener *gate, uint64_t now)
{
	for (int i = 0; i < SHUNT_REMOTE_LISTENER_TICKETS; i++) {
		struct shunt_ticket *ticket = &gate->tickets[i];

		if (!ticket->valid || ticket->deadline > now)
			continue;
		ticket->valid = false;
		if (gate->expired)
			gate->expired(gate->arg, ticket->arg);
	}
}

/* --- guests --- */

static void guest_turn_away(struct shunt_remote_listener *gate, struct shunt_guest *guest)
{
	shunt_own_fds_close(&gate->engine->fds, guest->fd);
	guest->fd = -1;
	gate->turned_away++;
	atomic_fetch_add(&gate->engine->turned_away, 1);
}

static struct shunt_guest *seat_for_guest(struct shunt_remote_listener *gate)
{
	struct shunt_guest *oldest = gate->guests;

	for (int i = 0; i < SHUNT_REMOTE_LISTENER_GUESTS; i++) {
		if (gate->guests[i].fd < 0)
			return &gate->guests[i];
		if (gate->guests[i].deadline < oldest->deadline)
			oldest = &gate->guests[i];
	}
	guest_turn_away(gate, oldest);
	return oldest;
}

static void guest_welcome(struct shunt_remote_listener *gate, struct shunt_guest *guest)
{
	struct shunt_engine *engine = gate->engine;
	struct shunt_ticket *ticket = ticket_find(gate, guest->cookie);
	int fd = guest->fd;

	if (!ticket && gate->unknown) {
		gate->unknown(gate->arg);
		ticket = ticket_find(gate, guest->cookie);
	}
	if (!ticket || shunt_channel_options(engine->sys, fd, gate->silence_ms)) {
		guest_turn_away(gate, guest);
		return;
	}
	engine->sys->epoll_ctl(gate->fd, EPOLL_CTL_DEL, fd, NULL);
	guest->fd = -1;
	ticket->valid = false;
	gate->let_in(gate->arg, ticket->arg, fd);
}

/* Not a byte more than the cookie: what is behind it is the channel's. */
static void guest_look_at(struct shunt_remote_listener *gate, struct shunt_guest *guest)
{
	struct iovec iov = { guest->cookie + guest->bytes, SHUNT_COOKIE_BYTES - guest->bytes };
	struct msghdr header = { .msg_iov = &iov, .msg_iovlen = 1 };
	ssize_t got = gate->engine->sys->recvmsg(guest->fd, &header, MSG_DONTWAIT);

	if (got < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (got <= 0) {
		guest_turn_away(gate, guest);
		return;
	}
	guest->bytes += got;
	if (guest->bytes == SHUNT_COOKIE_BYTES)
		guest_welcome(gate, guest);
}

static void watch_listener(struct shunt_remote_listener *gate, bool on)
{
	struct epoll_event event = { .events = on ? EPOLLIN : 0, .data.u32 = LISTENER };

	gate->engine->sys->epoll_ctl(gate->fd, EPOLL_CTL_MOD, gate->listener, &event);
}

/* False: nobody else has come, or can be taken. */
static bool accept_guest(struct shunt_remote_listener *gate)
{
	struct shunt_engine *engine = gate->engine;
	struct epoll_event event = { .events = EPOLLIN };
	struct shunt_guest *guest;
	int fd = shunt_own_fds_make(&engine->fds, engine->sys->accept4(gate->listener, NULL, NULL,
								 SOCK_CLOEXEC | SOCK_NONBLOCK));

	if (fd == -EMFILE || fd == -ENFILE || fd == -ENOMEM || fd == -ENOBUFS) {
		gate->paused = shunt_now(engine) + PAUSE;
		watch_listener(gate, false);
		return false;
	}
	if (fd < 0)
		return fd == -ECONNABORTED || fd == -EINTR;
	guest = seat_for_guest(gate);
	*guest = (struct shunt_guest) { .fd = fd, .deadline = shunt_now(engine) + gate->patience };
	event.data.u32 = (uint32_t)(guest - gate->guests);	/* below SHUNT_REMOTE_LISTENER_GUESTS */
	if (engine->sys->epoll_ctl(gate->fd, EPOLL_CTL_ADD, fd, &event))
		guest_turn_away(gate, guest);
	else
		guest_look_at(gate, guest);
	return true;
}

static void end_guests(struct shunt_remote_listener *gate, uint64_t now)
{
	for (int i = 0; i < SHUNT_REMOTE_LISTENER_GUESTS; i++)
		if (gate->guests[i].fd >= 0 && gate->guests[i].deadline <= now)
			guest_turn_away(gate, &gate->guests[i]);
}

/* --- life --- */

uint64_t shunt_remote_listener_due(const struct shunt_remote_listener *gate)
{
	uint64_t due = gate->paused ? gate->paused : UINT64_MAX;

	for (int i = 0; i < SHUNT_REMOTE_LISTENER_TICKETS; i++)
		if (gate->tickets[i].valid && gate->tickets[i].deadline < due)
			due = gate->tickets[i].deadline;
	for (int i = 0; i < SHUNT_REMOTE_LISTENER_GUESTS; i++)
		if (gate->guests[i].fd >= 0 && gate->guests[i].deadline < due)
			due = gate->guests[i].deadline;
	return due;
}

void shunt_remote_listener_step(struct shunt_remote_listener *gate)
{
	const struct shunt_sys *sys = gate->engine->sys;
	struct epoll_event events[SHUNT_REMOTE_LISTENER_GUESTS + 1];
	uint64_t now = shunt_now(gate->engine);
	int n;

	if (gate->paused && gate->paused <= now) {
		gate->paused = 0;
		watch_listener(gate, true);
	}
	/* First: a ticket that is over lets nobody in, however late we look. */
	end_guests(gate, now);
	end_tickets(gate, now);
	n = sys->epoll_pwait(gate->fd, events, SHUNT_REMOTE_LISTENER_GUESTS + 1, 0, NULL);
	for (int i = 0; i < n; i++) {
		uint32_t which = events[i].data.u32;

		if (which == LISTENER)
			for (int j = 0; j < ARRIVALS && accept_guest(gate); j++)
				;
		else if (gate->guests[which].fd >= 0)
			guest_look_at(gate, &gate->guests[which]);
	}
}

/* A socket that listens there, or -errno. */
static int gate_listen_at(struct shunt_remote_listener *gate, const struct sockaddr *local,
			  uint16_t port)
{
	const struct shunt_sys *sys = gate->engine->sys;
	const int family = local->sa_family, type = SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK,
		  reuse = port != 0;
	union {
		struct sockaddr any;
		struct sockaddr_in v4;
		struct sockaddr_in6 v6;
	} at;
	socklen_t length = family == AF_INET6 ? sizeof(at.v6) : sizeof(at.v4);
	int fd = shunt_own_fds_make(&gate->engine->fds, sys->socket(family, type, IPPROTO_TCP));
	int result;

	if (fd < 0)
		return fd;
	memcpy(&at, local, length);
	at.v4.sin_port = htons(port); /* both families have it in the same place */
	/* The port's last owner may have ended just now, with channels that the kernel remembers. */
	if ((reuse && sys->setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &reuse, sizeof(reuse))) ||
	    sys->bind(fd, &at.any, length) || sys->listen(fd, SHUNT_REMOTE_LISTENER_GUESTS) ||
	    sys->getsockname(fd, &at.any, &length)) {
		result = -errno;
		shunt_own_fds_close(&gate->engine->fds, fd);
		return result;
	}
	gate->port = at.v4.sin_port;
	return fd;
}

static int listen_somewhere(struct shunt_remote_listener *gate, const struct sockaddr *local)
{
	struct epoll_event event = { .events = EPOLLIN, .data.u32 = LISTENER };
	unsigned int port = gate->first_port;

	do
		gate->listener = gate_listen_at(gate, local, (uint16_t)port);
	while (gate->listener == -EADDRINUSE && ++port <= gate->last_port);
	if (gate->listener < 0)
		return gate->listener;
	if (gate->engine->sys->epoll_ctl(gate->fd, EPOLL_CTL_ADD, gate->listener, &event))
		return -errno;
	return 0;
}

int shunt_remote_listener_open(struct shunt_remote_listener *gate, const struct sockaddr *local)
{
	int result;

	gate->listener = -1;
	gate->paused = gate->turned_away = 0;
	memset(gate->tickets, 0, sizeof(gate->tickets));
	for (int i = 0; i < SHUNT_REMOTE_LISTENER_GUESTS; i++)
		gate->guests[i].fd = -1;
	gate->fd = shunt_own_fds_make(&gate->engine->fds,
				      gate->engine->sys->epoll_create1(EPOLL_CLOEXEC));
	result = gate->fd < 0 ? gate->fd : listen_somewhere(gate, local);
	if (result)
		shunt_remote_listener_close(gate);
	return result;
}

void shunt_remote_listener_close(struct shunt_remote_listener *gate)
{
	end_guests(gate, UINT64_MAX);
	end_tickets(gate, UINT64_MAX);
	shunt_own_fds_close(&gate->engine->fds, gate->listener);
	shunt_own_fds_close(&gate->engine->fds, gate->fd);
	gate->listener = gate->fd = -1;
}
