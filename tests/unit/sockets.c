/* SPDX-License-Identifier: MIT */
/* An engine on real sockets, and messages over its channels. */
#include <errno.h>
#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>
#include "tests/unit/sockets.h"

uint64_t clock_ns = 1;
size_t at_most;
bool full;
struct shunt_engine *engine;

static uint64_t now(void)
{
	return __atomic_load_n(&clock_ns, __ATOMIC_RELAXED);
}

static ssize_t send_some(int fd, const struct msghdr *message, int flags)
{
	struct iovec iov = *message->msg_iov;
	struct msghdr cut = *message;

	if (full) {
		errno = EAGAIN;
		return -1;
	}
	cut.msg_iov = &iov;
	if (at_most && iov.iov_len > at_most)
		iov.iov_len = at_most;
	return sendmsg(fd, &cut, flags);
}

static ssize_t receive_some(int fd, struct msghdr *message, int flags)
{
	struct iovec whole = *message->msg_iov;
	ssize_t got;

	if (at_most && whole.iov_len > at_most)
		message->msg_iov->iov_len = at_most;
	got = recvmsg(fd, message, flags);
	*message->msg_iov = whole;
	return got;
}

int capget(void *header, void *data);	/* libc's, which has no declaration of it */

static int receive_many(int fd, struct mmsghdr *messages, unsigned int count, int flags)
{
	return recvmmsg(fd, messages, count, flags, NULL);
}

static const struct shunt_sys sys = {
	.now = now, .sendmsg = send_some, .recvmsg = receive_some, .recvmmsg = receive_many,
	.setsockopt = setsockopt,
	.getsockopt = getsockopt, .getsockname = getsockname, .getpeername = getpeername, .shutdown = shutdown,
	.ioctl = ioctl, .fcntl = fcntl, .dup3 = dup3, .read = read, .write = write,
	.socket = socket, .bind = bind, .listen = listen, .accept4 = accept4, .connect = connect,
	.close = close, .epoll_create1 = epoll_create1, .epoll_ctl = epoll_ctl, .epoll_pwait = epoll_pwait,
	.getrandom = getrandom, .getresuid = getresuid, .getresgid = getresgid,
	.prctl = prctl, .capget = capget, .readlink = readlink,
	.attach = shunt_attach_ask, .yama = shunt_attach_yama,
};

int descriptors(void)
{
	int count = 0;

	for (int fd = 0; fd < 65536; fd++)
		count += fcntl(fd, F_GETFD) >= 0;
	return count;
}

int set_up(void **state)
{
	static struct shunt_config config;

	(void)state;
	at_most = 0;
	full = false;
	if (!engine)
		engine = shunt_engine_create(&config, &sys);
	return !engine;
}

struct shunt_message hello(void)
{
	return (struct shunt_message) { .type = SHUNT_MSG_HELLO, .hello.magic = SHUNT_WIRE_MAGIC };
}

int take(struct shunt_channel *channel, struct shunt_message *message)
{
	int fds[SHUNT_CHANNEL_FDS], count, result = shunt_channel_receive(channel, message, fds, &count);

	assert_int_equal(count, 0);
	return result;
}

int take_whole(struct shunt_channel *channel, struct shunt_message *message)
{
	for (unsigned int i = 0; i < sizeof(*message); i++) {
		int result = take(channel, message);

		if (result)
			return result;
	}
	return 0;
}
