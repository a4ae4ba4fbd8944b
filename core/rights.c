/*
 * Streams that a fork has given two owners (PF-49). The link is the parent's. A child that touches
 * such a stream shows the socket to the parent, which hands the stream back to the kernel; from
 * then on both are ordinary owners of an ordinary socket.
 */
#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/un.h>
#include <unistd.h>
#include "core/service.h"
#include "core/quiet.h"

#define PATIENCE_MS 6000

static socklen_t name_of(pid_t pid, struct sockaddr_un *address)
{
	*address = (struct sockaddr_un) { .sun_family = AF_UNIX };
	return offsetof(struct sockaddr_un, sun_path) + 1 +
	       snprintf(address->sun_path + 1, sizeof(address->sun_path) - 1, "shunt/rights/%d", (int)pid);
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

/* --- the child --- */

static int show(struct shunt_engine *engine, int to, int fd)
{
	char byte = 1, space[CMSG_SPACE(sizeof(int))] = { 0 };
	struct iovec iov = { &byte, 1 };
	struct msghdr message = { .msg_iov = &iov, .msg_iovlen = 1, .msg_control = space,
				  .msg_controllen = sizeof(space) };
	struct cmsghdr *control = CMSG_FIRSTHDR(&message);

	control->cmsg_level = SOL_SOCKET;
	control->cmsg_type = SCM_RIGHTS;
	control->cmsg_len = CMSG_LEN(sizeof(int));
	memcpy(CMSG_DATA(control), &fd, sizeof(int));
	return engine->sys->sendmsg(to, &message, MSG_NOSIGNAL) < 0 ? -errno : 0;
}

static int converse(struct shunt_engine *engine, int to, int fd)
{
	struct pollfd waiting = { .fd = to, .events = POLLIN };
	struct timespec patience = { PATIENCE_MS / 1000, 0 };
	struct sockaddr_un address;
	socklen_t length = name_of(engine->parent, &address);
	pid_t pid = 0;
	char byte = 0;
	int result;

	if (engine->sys->connect(to, (struct sockaddr *)&address, length))
		return -errno;
	if (!same_user(engine, to, &pid) || pid != engine->parent)
		return -EPERM;
	result = show(engine, to, fd);
	if (result)
		return result;
	while (engine->sys->ppoll(&waiting, 1, &patience, NULL) < 0)
		if (errno != EINTR)
			return -errno;
	if (engine->sys->read(to, &byte, 1) != 1)
		return -ETIMEDOUT;
	return byte ? 0 : -EBUSY;
}

int shunt_rights_ask(struct shunt_engine *engine, int fd, struct shunt_stream *stream)
{
	int saved = errno;
	int to, result;

	shunt_lock_take(&stream->rx.lock);
	shunt_lock_take(&stream->tx.lock);
	result = 0;
	if (atomic_load(&stream->state) == SHUNT_FOREIGN) {
		to = channel(engine);
		result = to < 0 ? to : converse(engine, to, fd);
		shunt_private_close(engine, to);
		stream->reason = "shared by a fork";
		atomic_store(&stream->state, SHUNT_PLAIN);
		if (result)
			shunt_log(SHUNT_LOG_WARN, "descriptor %d: process %d, which shared it with us, did not hand it over (error %d)",
				  fd, (int)engine->parent, -result);
	}
	shunt_lock_leave(&stream->tx.lock);
	shunt_lock_leave(&stream->rx.lock);
	errno = saved;
	return result;
}

/* --- the parent --- */

int shunt_rights_listen(struct shunt_engine *engine)
{
	struct sockaddr_un address;
	socklen_t length = name_of(engine->pid, &address);
	int fd = channel(engine);

	if (fd < 0)
		return fd;
	if (!engine->sys->bind(fd, (struct sockaddr *)&address, length) && !engine->sys->listen(fd, 16))
		return fd;
	shunt_private_close(engine, fd);
	return -EADDRINUSE;
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
		stream->tuple_known = !shunt_rendezvous_tuple(search->engine, stream->fd, &stream->tuple);
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
	struct cmsghdr *control;
	int count = 0, *fds = NULL, result = -EPROTO;
	ssize_t got;

	shunt_private_begin(engine);
	got = engine->sys->recvmsg(from, &message, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);
	control = got < 0 ? NULL : CMSG_FIRSTHDR(&message);
	if (control && control->cmsg_level == SOL_SOCKET && control->cmsg_type == SCM_RIGHTS) {
		fds = (int *)CMSG_DATA(control);
		count = (control->cmsg_len - CMSG_LEN(0)) / sizeof(int);
	}
	memset(tuple, 0, sizeof(*tuple));
	if (got == 1 && count == 1)
		result = shunt_rendezvous_tuple(engine, fds[0], tuple);
	for (int i = 0; i < count; i++)	/* padding has room for more than was asked for */
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
	int fd = stream->retire_fd;

	if (fd < 0)
		return;
	stream->retire_fd = -1;
	say_done(engine, fd, atomic_load(&stream->retiring) == SHUNT_RETIRED);
	shunt_streams_unhold(stream);
}

void shunt_rights_serve(struct shunt_engine *engine, int fd)
{
	struct search search = { .engine = engine };
	struct pollfd waiting = { .events = POLLIN };
	struct timespec patience = { 0, 100000000 };
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
	if (engine->sys->ppoll(&waiting, 1, &patience, NULL) <= 0 ||
	    receive_tuple(engine, waiting.fd, &search.tuple)) {
		shunt_private_close(engine, waiting.fd);
		return;
	}
	shunt_lock_take(&engine->streams_lock);
	shunt_streams_each(engine, is_it, &search);
	shunt_lock_leave(&engine->streams_lock);
	if (!search.found || search.found->retire_fd >= 0) {
		say_done(engine, waiting.fd, !search.found);
		if (search.found)
			shunt_streams_unhold(search.found);
		return;
	}
	search.found->retire_fd = waiting.fd;
	shunt_retire_begin(engine, search.found, "shared by a fork");
	if (atomic_load(&search.found->retiring) != SHUNT_RETIRING)
		shunt_rights_answer(engine, search.found);
}
