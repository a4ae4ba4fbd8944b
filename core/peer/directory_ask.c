/* SPDX-License-Identifier: MIT */
#include "core/peer/directory_ask.h"
#include <errno.h>
#include <netinet/in.h>
#include <sys/uio.h>
#include "core/device/cm/cm.h"
#include "core/engine.h"
#include "core/fd/own_fds.h"
#include "core/peer/remote_link.h"

static socklen_t size_of(const union cm_address *address)
{
	return address->any.sa_family == AF_INET6 ? sizeof(address->v6) : sizeof(address->v4);
}

static int open_socket(struct shunt_engine *engine, const union cm_address *from,
		       const union cm_address *to)
{
	const struct shunt_sys *sys = engine->sys;
	int fd = shunt_own_fds_make(&engine->fds, sys->socket(to->any.sa_family,
							SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK,
							IPPROTO_TCP));
	int result = 0;

	if (fd < 0)
		return fd;
	if (sys->bind(fd, &from->any, size_of(from)) ||
	    (sys->connect(fd, &to->any, size_of(to)) && errno != EINPROGRESS))
		result = -errno;
	if (!result)
		return fd;
	shunt_own_fds_close(&engine->fds, fd);
	return result;
}

int shunt_directory_ask_begin(struct shunt_directory_ask *ask, struct shunt_engine *engine,
			      const struct shunt_tuple *tuple, uint16_t port, const void *words,
			      unsigned int bytes)
{
	union cm_address from, to;

	*ask = (struct shunt_directory_ask) { .engine = engine };
	shunt_directory_question_make(&ask->question, tuple->peer, tuple->peer_port, words, bytes);
	shunt_remote_address(tuple->local, 0, &from);
	shunt_remote_address(tuple->peer, port, &to);
	ask->fd = open_socket(engine, &from, &to);
	return ask->fd < 0 ? ask->fd : 0;
}

static bool is_early(int error)
{
	return error == EAGAIN || error == EINTR || error == ENOTCONN;
}

/* 0 or -errno. */
static int send_rest(struct shunt_directory_ask *ask)
{
	struct iovec iov = { (uint8_t *)&ask->question + ask->sent,
			     sizeof(ask->question) - ask->sent };
	struct msghdr header = { .msg_iov = &iov, .msg_iovlen = 1 };
	ssize_t sent;

	if (shunt_directory_ask_is_sent(ask))
		return 0;
	sent = ask->engine->sys->sendmsg(ask->fd, &header, MSG_DONTWAIT | MSG_NOSIGNAL);
	if (sent < 0)
		return is_early(errno) ? 0 : -errno;
	ask->sent += (size_t)sent;
	return 0;
}

/* 1: more may be there; 0: nothing more now; -EPIPE: the end; or another -errno. */
static int receive_more(struct shunt_directory_ask *ask)
{
	struct iovec iov = { (uint8_t *)&ask->answer + ask->got, sizeof(ask->answer) - ask->got };
	struct msghdr header = { .msg_iov = &iov, .msg_iovlen = 1 };
	ssize_t got = ask->engine->sys->recvmsg(ask->fd, &header, MSG_DONTWAIT);

	if (got < 0)
		return is_early(errno) ? 0 : -errno;
	ask->got += (size_t)got;
	return got ? 1 : -EPIPE;
}

static int read_answer(struct shunt_directory_ask *ask)
{
	int result = 0, told = 0;

	while (!told && (result = receive_more(ask)) > 0)
		told = shunt_directory_answer_read(&ask->answer, ask->got, false);
	/* A directory that knows of no such listener closes, perhaps with a reset. */
	if (result == -EPIPE || result == -ECONNRESET)
		told = shunt_directory_answer_read(&ask->answer, ask->got, true);
	else if (result < 0)
		told = result;
	return told;
}

int shunt_directory_ask_step(struct shunt_directory_ask *ask)
{
	int result = send_rest(ask);

	if (result == -EPIPE || result == -ECONNRESET) /* what was said before that counts */
		result = 0;
	return result ? result : read_answer(ask);
}

void shunt_directory_ask_end(struct shunt_directory_ask *ask)
{
	if (ask->fd >= 0)	/* who has not asked has no engine either */
		shunt_own_fds_close(&ask->engine->fds, ask->fd);
	ask->fd = -1;
}
