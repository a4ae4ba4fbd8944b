/* SPDX-License-Identifier: MIT */
#include "core/peer/directory.h"
#include <errno.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/uio.h>
#include "core/base/address.h"
#include "core/engine.h"
#include "core/fd/own_fds.h"
#include "core/loop/loop.h"
#include "core/loop/porter.h"
#include "core/peer/directory_owner.h"
#include "core/peer/listener_message.h"
#include "core/stream/tuple.h"

/* In the epoll's data: guests have their index, their owners that and OWNER. */
#define LISTENER SHUNT_DIRECTORY_GUESTS
#define OWNER (SHUNT_DIRECTORY_GUESTS + 1)
#define EVENTS (2 * SHUNT_DIRECTORY_GUESTS + 1)
#define ARRIVALS 64 /* looked at in one step */
#define PAUSE 100000000ull /* ns without descriptors before the next try */
#define RETRY 1000000000ull /* ns between two tries to get the port */
#define REST 256 /* bytes: of a longer question of another version */

/* --- guests --- */

static int directory_watch(struct shunt_directory *directory, int op, int fd, uint32_t which)
{
	struct epoll_event event = { .events = EPOLLIN, .data.u32 = which };

	return directory->engine->sys->epoll_ctl(directory->fd, op, fd, &event) ? -errno : 0;
}

/* The descriptors leave the epoll by name: the porter may close the owner's later. */
static void end_guest(struct shunt_directory *directory, struct shunt_directory_guest *guest)
{
	if (guest->owner >= 0) {
		directory_watch(directory, EPOLL_CTL_DEL, guest->owner, 0);
		shunt_porter_dismiss(&directory->engine->porter, guest->owner);
	}
	shunt_own_fds_close(&directory->engine->fds, guest->fd);
	guest->fd = guest->owner = -1;
}

static void asker_turn_away(struct shunt_directory *directory, struct shunt_directory_guest *guest)
{
	directory->turned_away++;
	atomic_fetch_add(&directory->engine->turned_away, 1);
	end_guest(directory, guest);
}

static struct shunt_directory_guest *seat_for_guest(struct shunt_directory *directory)
{
	struct shunt_directory_guest *oldest = directory->guests;

	for (int i = 0; i < SHUNT_DIRECTORY_GUESTS; i++) {
		if (directory->guests[i].fd < 0)
			return &directory->guests[i];
		if (directory->guests[i].deadline < oldest->deadline)
			oldest = &directory->guests[i];
	}
	asker_turn_away(directory, oldest);
	return oldest;
}

/* --- answers --- */

/* A socket that has sent nothing has room for it. */
static void asker_reply(struct shunt_directory *directory, struct shunt_directory_guest *guest,
			const void *words, unsigned int bytes)
{
	struct shunt_directory_answer answer;
	struct iovec iov = { &answer, sizeof(answer) };
	struct msghdr header = { .msg_iov = &iov, .msg_iovlen = 1 };

	shunt_directory_answer_make(&answer, words, bytes);
	directory->engine->sys->sendmsg(guest->fd, &header, MSG_DONTWAIT | MSG_NOSIGNAL);
	end_guest(directory, guest);
}

/* The rest of its question is read first: what is unread would turn the close into a reset, and lose the answer. */
static void reply_version(struct shunt_directory *directory, struct shunt_directory_guest *guest)
{
	uint8_t rest[REST];
	struct iovec iov = { rest, sizeof(rest) };
	struct msghdr header = { .msg_iov = &iov, .msg_iovlen = 1 };
	struct remote_answer answer;
	unsigned int bytes = shunt_remote_answer_refuse(&answer, SHUNT_REMOTE_WHY_VERSION);

	(void)!directory->engine->sys->recvmsg(guest->fd, &header, MSG_DONTWAIT);
	asker_reply(directory, guest, &answer, bytes);
}

/* The guest is watched no more: its deadline ends it, and so does the owner. */
static void hand_on(struct shunt_directory *directory, struct shunt_directory_guest *guest,
		    int owner, const struct shunt_tuple *asked)
{
	struct shunt_have have = { .type = SHUNT_HAVE_QUESTION, .tuple = *asked };

	guest->owner = owner;
	have.said.bytes = guest->question.bytes;
	memcpy(have.said.words, guest->question.words, sizeof(guest->question.words));
	directory_watch(directory, EPOLL_CTL_DEL, guest->fd, 0);
	if (directory_watch(directory, EPOLL_CTL_ADD, owner,
			    OWNER + (uint32_t)(guest - directory->guests)) ||
	    shunt_listener_message_send(directory->engine, owner, &have))
		end_guest(directory, guest);
}

static void asker_answer(struct shunt_directory *directory, struct shunt_directory_guest *guest,
			 struct shunt_rendezvous *rendezvous, const struct shunt_tuple *asked)
{
	struct shunt_have_words said = { .bytes = guest->question.bytes };
	struct remote_answer words;
	int bytes;

	_Static_assert(sizeof(guest->question.words) <= sizeof(said.words) &&
			       sizeof(words) <= sizeof(said.words),
		       "a packet has room for either");
	memcpy(said.words, guest->question.words, sizeof(guest->question.words));
	bytes = directory->answer(rendezvous, asked, &said, &words);
	if (bytes > 0)
		asker_reply(directory, guest, &words, (unsigned int)bytes);
	else
		end_guest(directory, guest);
}

static void hear_owner(struct shunt_directory *directory, struct shunt_directory_guest *guest)
{
	struct shunt_have have;
	int result = shunt_listener_message_receive(directory->engine, guest->owner, &have);

	if (!result || result == -EBUSY)
		return;
	if (result > 0 && have.type == SHUNT_HAVE_ANSWER && have.said.bytes &&
	    have.said.bytes <= sizeof(struct remote_answer))
		asker_reply(directory, guest, have.said.words, have.said.bytes);
	else
		end_guest(directory, guest);
}

/* --- questions --- */

/*
 * The address asked for, and the asker's. False for a process of this host, which could only ask
 * about connections that are not between hosts. False also for an asker that has come to another
 * address than it names: the network does not lead it there.
 */
static bool is_fair(struct shunt_directory *directory, const struct shunt_directory_guest *guest,
		    struct shunt_tuple *asked)
{
	memset(asked, 0, sizeof(*asked));
	if (shunt_tuple_of(directory->engine->sys, guest->fd, asked) ||
	    memcmp(asked->local, guest->question.address, sizeof(asked->local)) ||
	    shunt_tuple_is_local(&directory->engine->fds, asked))
		return false;
	asked->local_port = guest->question.port;
	return true;
}

static void decide(struct shunt_directory *directory, struct shunt_directory_guest *guest)
{
	struct shunt_rendezvous *ours = NULL;
	struct shunt_tuple asked;
	int owner;

	if (!is_fair(directory, guest, &asked)) {
		asker_turn_away(directory, guest);
		return;
	}
	owner = shunt_directory_owner_find(directory->engine, guest->fd, &asked, &ours);
	if (ours)
		asker_answer(directory, guest, ours, &asked);
	else if (owner >= 0)
		hand_on(directory, guest, owner, &asked);
	else
		end_guest(directory, guest);
}

static void asker_look_at(struct shunt_directory *directory, struct shunt_directory_guest *guest)
{
	struct iovec iov = { (uint8_t *)&guest->question + guest->bytes,
			     sizeof(guest->question) - guest->bytes };
	struct msghdr header = { .msg_iov = &iov, .msg_iovlen = 1 };
	ssize_t got = directory->engine->sys->recvmsg(guest->fd, &header, MSG_DONTWAIT);
	int result = -EPROTO;

	if (got < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (got > 0) {
		guest->bytes += (size_t)got;
		result = shunt_directory_question_read(&guest->question, guest->bytes);
	}
	if (result > 0)
		decide(directory, guest);
	else if (result == -EPROTONOSUPPORT)
		reply_version(directory, guest);
	else if (result)
		asker_turn_away(directory, guest);
}

static void pause_listener(struct shunt_directory *directory)
{
	struct epoll_event event = { .events = 0, .data.u32 = LISTENER };

	directory->paused = shunt_now(directory->engine) + PAUSE;
	directory->engine->sys->epoll_ctl(directory->fd, EPOLL_CTL_MOD, directory->listener,
					  &event);
}

/* False: nobody else has come, or can be taken. */
static bool accept_guest(struct shunt_directory *directory)
{
	struct shunt_engine *engine = directory->engine;
	struct shunt_directory_guest *guest;
	int fd = shunt_own_fds_make(&engine->fds,
				    engine->sys->accept4(directory->listener, NULL, NULL,
							 SOCK_CLOEXEC | SOCK_NONBLOCK));

	if (fd == -EMFILE || fd == -ENFILE || fd == -ENOMEM || fd == -ENOBUFS) {
		pause_listener(directory);
		return false;
	}
	if (fd < 0)
		return fd == -ECONNABORTED || fd == -EINTR;
	guest = seat_for_guest(directory);
	*guest = (struct shunt_directory_guest) {
		.fd = fd, .owner = -1, .deadline = shunt_now(engine) + directory->patience
	};
	if (directory_watch(directory, EPOLL_CTL_ADD, fd, (uint32_t)(guest - directory->guests)))
		asker_turn_away(directory, guest);
	else
		asker_look_at(directory, guest);
	return true;
}

/* --- the port --- */

union any_address {
	struct sockaddr any;
	struct sockaddr_in v4;
	struct sockaddr_in6 v6;
};

/* A socket that listens at the wildcard of the family, or -errno. */
static int directory_listen_at(struct shunt_directory *directory, int family)
{
	const struct shunt_sys *sys = directory->engine->sys;
	int fd = shunt_own_fds_make(
		&directory->engine->fds,
		sys->socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, IPPROTO_TCP));
	socklen_t length = family == AF_INET6 ? sizeof(struct sockaddr_in6) :
						sizeof(struct sockaddr_in);
	union any_address at = { .any.sa_family = (sa_family_t)family };
	const int on = 1, off = 0;
	int result;

	if (fd < 0)
		return fd;
	at.v4.sin_port = directory->port; /* both families have it in the same place */
	/* Askers of a process that has ended may be remembered by the kernel (SO_REUSEADDR). */
	if ((family == AF_INET6 &&
	     sys->setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof(off))) ||
	    sys->setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) ||
	    sys->setsockopt(fd, SOL_SOCKET, SO_REUSEPORT, &on, sizeof(on)) ||
	    sys->bind(fd, &at.any, length) || sys->listen(fd, SHUNT_DIRECTORY_GUESTS)) {
		result = -errno;
		shunt_own_fds_close(&directory->engine->fds, fd);
		return result;
	}
	return fd;
}

/* One try. Without the port nothing is lost that its holder does not hear. */
static void take_port(struct shunt_directory *directory)
{
	int fd = directory_listen_at(directory, AF_INET6);

	if (fd == -EAFNOSUPPORT || fd == -EADDRNOTAVAIL) /* there is no IPv6 here */
		fd = directory_listen_at(directory, AF_INET);
	if (fd >= 0 && directory_watch(directory, EPOLL_CTL_ADD, fd, LISTENER)) {
		shunt_own_fds_close(&directory->engine->fds, fd);
		fd = -ENOMEM;
	}
	directory->listener = fd < 0 ? -1 : fd;
	if (directory->listener < 0 && !directory->retry)
		shunt_log(
			SHUNT_LOG_INFO,
			"port %u, of the directory for other hosts, is not to be had (error %d): its holder answers them (SHUNT_TUNE=directory)",
			ntohs(directory->port), -fd);
	directory->retry = directory->listener < 0 ? shunt_now(directory->engine) + RETRY : 0;
}

/* --- life --- */

uint64_t shunt_directory_due(const struct shunt_directory *directory)
{
	uint64_t due = directory->listener < 0 ? directory->retry : SHUNT_NEVER;

	if (directory->paused && directory->paused < due)
		due = directory->paused;
	for (int i = 0; i < SHUNT_DIRECTORY_GUESTS; i++)
		if (directory->guests[i].fd >= 0 && directory->guests[i].deadline < due)
			due = directory->guests[i].deadline;
	return due;
}

static void end_guests(struct shunt_directory *directory, uint64_t now)
{
	for (int i = 0; i < SHUNT_DIRECTORY_GUESTS; i++)
		if (directory->guests[i].fd >= 0 && directory->guests[i].deadline <= now)
			asker_turn_away(directory, &directory->guests[i]);
}

static void asker_hear(struct shunt_directory *directory, uint32_t which)
{
	if (which == LISTENER)
		for (int i = 0; i < ARRIVALS && accept_guest(directory); i++)
			;
	else if (which >= OWNER && directory->guests[which - OWNER].owner >= 0)
		hear_owner(directory, &directory->guests[which - OWNER]);
	else if (which < LISTENER && directory->guests[which].fd >= 0 &&
		 directory->guests[which].owner < 0)
		asker_look_at(directory, &directory->guests[which]);
}

void shunt_directory_step(struct shunt_directory *directory)
{
	struct epoll_event events[EVENTS];
	uint64_t now = shunt_now(directory->engine);
	int n;

	if (directory->listener < 0 && directory->retry <= now)
		take_port(directory);
	if (directory->paused && directory->paused <= now) {
		directory->paused = 0;
		directory_watch(directory, EPOLL_CTL_MOD, directory->listener, LISTENER);
	}
	end_guests(directory, now);
	n = directory->engine->sys->epoll_pwait(directory->fd, events, EVENTS, 0, NULL);
	for (int i = 0; i < n; i++)
		asker_hear(directory, events[i].data.u32);
}

int shunt_directory_open(struct shunt_directory *directory)
{
	directory->listener = -1;
	directory->paused = directory->retry = directory->turned_away = 0;
	for (int i = 0; i < SHUNT_DIRECTORY_GUESTS; i++)
		directory->guests[i].fd = directory->guests[i].owner = -1;
	directory->fd = shunt_own_fds_make(&directory->engine->fds,
					   directory->engine->sys->epoll_create1(EPOLL_CLOEXEC));
	if (directory->fd < 0)
		return directory->fd;
	take_port(directory);
	return 0;
}

static void close_port(struct shunt_directory *directory)
{
	shunt_own_fds_close(&directory->engine->fds, directory->listener);
	shunt_own_fds_close(&directory->engine->fds, directory->fd);
	directory->listener = directory->fd = -1;
}

void shunt_directory_close(struct shunt_directory *directory)
{
	for (int i = 0; i < SHUNT_DIRECTORY_GUESTS; i++)
		if (directory->guests[i].fd >= 0)
			end_guest(directory, &directory->guests[i]);
	close_port(directory);
}

void shunt_directory_forget(struct shunt_directory *directory)
{
	for (int i = 0; i < SHUNT_DIRECTORY_GUESTS; i++) {
		shunt_own_fds_close(&directory->engine->fds, directory->guests[i].fd);
		shunt_own_fds_close(&directory->engine->fds, directory->guests[i].owner);
		directory->guests[i].fd = directory->guests[i].owner = -1;
	}
	close_port(directory);
}
