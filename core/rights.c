/*
 * Streams that a fork has given two owners (PF-49). The link is one process's: the parent's, or who used it first
 * (shared.h). Another that touches such a stream shows the socket to that one, which hands the stream back to the
 * kernel; from then on both are ordinary owners of an ordinary socket.
 */
#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/un.h>
#include <unistd.h>
#include "core/service.h"
#include "core/cancel.h"
#include "core/fds.h"
#include "core/quiet.h"
#include "core/shared.h"

#define PATIENCE_MS 6000
#define TRIES 3

static socklen_t name_of(pid_t pid, struct sockaddr_un *address)
{
	*address = (struct sockaddr_un) { .sun_family = AF_UNIX };
	return (socklen_t)offsetof(struct sockaddr_un, sun_path) + 1 +	/* a number fits */
	       (socklen_t)snprintf(address->sun_path + 1, sizeof(address->sun_path) - 1,
				   "shunt/rights/%d", (int)pid);
}

static int channel(struct shunt_engine *engine)
{
	return shunt_private_make(engine, engine->sys->socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
}

static bool same_user(struct shunt_engine *engine, int fd, pid_t *pid)
{
	struct ucred peer;
	socklen_t length = sizeof(peer);

	if (engine->sys->getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &length))
		return false;
	*pid = peer.pid;
	return peer.uid == geteuid() || peer.uid == 0;
}

/* --- who touches it --- */

static int show(struct shunt_engine *engine, int to, int fd)
{
	char byte = 1, space[CMSG_SPACE(sizeof(int))] = { 0 };
	struct iovec iov = { &byte, 1 };
	struct msghdr message = { .msg_iov = &iov, .msg_iovlen = 1 };

	shunt_fds_attach(&message, space, &fd, 1);
	return engine->sys->sendmsg(to, &message, MSG_NOSIGNAL) < 0 ? -errno : 0;
}

static int converse(struct shunt_engine *engine, pid_t owner, int to, int fd)
{
	struct pollfd waiting = { .fd = to, .events = POLLIN };
	struct timespec patience = { PATIENCE_MS / 1000, 0 };
	struct sockaddr_un address;
	socklen_t length = name_of(owner, &address);
	pid_t pid = 0;
	char byte = 0;
	int result;

	if (engine->sys->connect(to, (struct sockaddr *)&address, length))
		return -errno;
	if (!same_user(engine, to, &pid) || pid != owner)
		return -EPERM;
	result = show(engine, to, fd);
	if (result)
		return result;
	while (engine->sys->ppoll(&waiting, 1, &patience, NULL) < 0)
		if (errno != EINTR)
			return -errno;
	if (engine->sys->read(to, &byte, 1) != 1)
		return -EAGAIN;		/* it has hung up: dead, or short of descriptors */
	return byte ? 0 : -EBUSY;
}

static int ask(struct shunt_engine *engine, pid_t owner, int fd)
{
	int result = -EAGAIN, state = shunt_cancel_off();	/* the stream's locks are held */

	for (int tries = 0; result == -EAGAIN && tries < TRIES; tries++) {
		int to = channel(engine);

		result = to < 0 ? to : converse(engine, owner, to, fd);
		shunt_private_close(engine, to);
	}
	shunt_cancel_restore(state);
	return result;
}

/*
 * From a child of vfork(): what it shares is our memory, and the parent's service thread goes on, but its descriptors are
 * copies from before. What the parent has opened since, the link's perhaps, it does not have.
 */
int shunt_rights_ask_parent(struct shunt_engine *engine, int fd)
{
	int result = -EAGAIN, state = shunt_cancel_off();

	for (int tries = 0; result == -EAGAIN && tries < TRIES; tries++) {
		int to = engine->sys->socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

		result = to < 0 ? -errno : converse(engine, engine->pid, to, fd);
		if (to >= 0)
			engine->sys->close(to);
	}
	shunt_cancel_restore(state);
	return result;
}

/* There is nobody any more who could have it, or it cannot be had. */
static bool is_final(int result)
{
	return !result || result == -ECONNREFUSED || result == -EPERM || result == -EBUSY;
}

int shunt_rights_ask(struct shunt_engine *engine, int fd, struct shunt_stream *stream)
{
	int saved = errno;
	int result;
	pid_t owner;

	shunt_lock_take(&stream->rx.lock);
	shunt_lock_take(&stream->tx.lock);
	result = 0;
	if (atomic_load(&stream->state) == SHUNT_FOREIGN) {
		owner = stream->slot ? shunt_shared_owner(stream) : engine->parent;
		result = owner ? ask(engine, owner, fd) : 0;	/* 0: it has been handed back meanwhile */
		if (is_final(result)) {
			shunt_streams_because(engine, stream, SHUNT_REASON_FORK);
			atomic_store(&stream->state, SHUNT_PLAIN);
		}
		if (result)
			shunt_log(SHUNT_LOG_WARN, "descriptor %d: process %d, which shared it with us, did not hand it over (error %d)",
				  fd, (int)owner, -result);
	}
	shunt_lock_leave(&stream->tx.lock);
	shunt_lock_leave(&stream->rx.lock);
	errno = saved;
	/* To use the socket now would mix up its bytes. The kernel, too, may be short of memory for a moment. */
	return is_final(result) ? result : -ENOMEM;
}

/* --- whose link it is on --- */

int shunt_rights_listen(struct shunt_engine *engine)
{
	struct sockaddr_un address;
	socklen_t length = name_of(engine->pid, &address);
	int fd = channel(engine), result;

	if (fd < 0)
		return fd;
	if (!engine->sys->bind(fd, (struct sockaddr *)&address, length) && !engine->sys->listen(fd, 16))
		return fd;
	result = -errno;
	shunt_private_close(engine, fd);
	return result;
}

struct search {
	struct shunt_engine *engine;
	struct shunt_tuple tuple;
	struct shunt_stream *found;
};

static int is_it(struct shunt_stream *stream, void *arg)
{
	struct search *search = arg;

	if (stream->fd < 0 || atomic_load(&stream->state) != SHUNT_LINKED)
		return 0;
	if (!stream->tuple_known)
		shunt_rendezvous_learn(stream);
	if (!stream->tuple_known || memcmp(&stream->tuple, &search->tuple, sizeof(search->tuple)))
		return 0;
	search->found = stream;
	stream->holds++;
	return 1;
}

/* The socket the child shows us; closed again at once. */
static int receive_tuple(struct shunt_engine *engine, int from, struct shunt_tuple *tuple)
{
	char byte, space[CMSG_SPACE(sizeof(int))];
	struct iovec iov = { &byte, 1 };
	struct msghdr message = { .msg_iov = &iov, .msg_iovlen = 1, .msg_control = space,
				  .msg_controllen = sizeof(space) };
	int fds[2], count = 0, result = -EPROTO;
	ssize_t got;

	shunt_private_begin(engine);
	got = engine->sys->recvmsg(from, &message, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);
	if (got >= 0)
		count = shunt_fds_take(engine->sys, &message, fds, 2);
	memset(tuple, 0, sizeof(*tuple));
	if (got == 1 && count == 1)
		result = shunt_rendezvous_tuple(engine, fds[0], tuple);
	for (int i = 0; i < count; i++)
		engine->sys->close(fds[i]);
	shunt_private_end(engine);
	return result;
}

static void say_done(struct shunt_engine *engine, int fd, bool handed_over)
{
	char byte = handed_over;

	if (shunt_quiet_write(engine->sys->write, fd, &byte, 1) != 1)
		shunt_log(SHUNT_LOG_DEBUG, "a child went away before it was answered");
	shunt_private_close(engine, fd);
}

void shunt_rights_answer(struct shunt_engine *engine, struct shunt_stream *stream)
{
	int fd = atomic_exchange(&stream->retire_fd, -1);

	if (fd < 0)
		return;
	say_done(engine, fd, atomic_load(&stream->retiring) == SHUNT_RETIRED);
	shunt_streams_unhold(stream);
}

/* Not while the peer's nonce is expected: neither owner may find that. */
static bool waits_for_proof(struct shunt_stream *stream)
{
	return atomic_load(&stream->retiring) == SHUNT_STAYING && atomic_load(&stream->state) == SHUNT_LINKED &&
	       !stream->rx.final;
}

static void hand_over(struct shunt_engine *engine, struct shunt_stream *stream)
{
	shunt_retire_begin(engine, stream, SHUNT_REASON_FORK);
	if (atomic_load(&stream->retiring) != SHUNT_RETIRING && !waits_for_proof(stream))
		shunt_rights_answer(engine, stream);
}

void shunt_rights_shown(struct shunt_engine *engine, struct shunt_stream *stream, int fd)
{
	atomic_store(&stream->retire_fd, fd);
	hand_over(engine, stream);
}

static int is_waiting(struct shunt_stream *stream, void *arg)
{
	struct search *search = arg;

	if (atomic_load(&stream->retire_fd) < 0 || atomic_load(&stream->retiring) != SHUNT_STAYING ||
	    atomic_load(&stream->rx.proof) == SHUNT_EXPECTED)
		return 0;
	search->found = stream;
	stream->holds++;
	return 1;
}

void shunt_rights_proven(struct shunt_engine *engine)
{
	struct search search;

	do {
		search.found = NULL;
		shunt_lock_take(&engine->streams_lock);
		shunt_streams_each(engine, is_waiting, &search);
		shunt_lock_leave(&engine->streams_lock);
		if (!search.found)
			return;
		hand_over(engine, search.found);
		shunt_streams_unhold(search.found);
	} while (true);
}

void shunt_rights_serve(struct shunt_engine *engine, int fd)
{
	struct search search = { .engine = engine };
	struct pollfd waiting = { .events = POLLIN };
	struct timespec patience = { 0, 100000000 };
	int result = -ETIMEDOUT;
	pid_t pid;

	waiting.fd = shunt_private_make(engine, engine->sys->accept4(fd, NULL, NULL, SOCK_CLOEXEC));
	if (waiting.fd < 0)
		return;
	/*
	 * Who has the socket may ask, also a child that has changed its user. A child sends at once after
	 * connecting; who does not is not one.
	 */
	if (!same_user(engine, waiting.fd, &pid))
		patience.tv_nsec /= 10;
	if (engine->sys->ppoll(&waiting, 1, &patience, NULL) > 0)
		result = receive_tuple(engine, waiting.fd, &search.tuple);
	if (result == -ENOTCONN)	/* the connection is over: the kernel says so to either */
		say_done(engine, waiting.fd, true);
	else if (result)
		shunt_private_close(engine, waiting.fd);
	if (result)
		return;
	shunt_lock_take(&engine->streams_lock);
	shunt_streams_each(engine, is_it, &search);
	shunt_lock_leave(&engine->streams_lock);
	if (!search.found || search.found->retire_fd >= 0) {
		say_done(engine, waiting.fd, !search.found);
		if (search.found)
			shunt_streams_unhold(search.found);
		return;
	}
	shunt_rights_shown(engine, search.found, waiting.fd);
}
