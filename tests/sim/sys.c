/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <fcntl.h>
#include <linux/sockios.h>
#include <linux/tcp.h>
#include <stdarg.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>
#include "core/fork/sole.h"
#include "shunt/wire.h"
#include "tests/sim/names.h"
#include "tests/sim/random.h"
#include "tests/sim/sim.h"
#include "tests/sim/sys.h"
#include "tests/sim/witness.h"

struct sim_sock *sim_sock_of[SIM_FDS];
struct sim_ep *sim_ep_of[SIM_FDS];
uint64_t sim_clock;
uint64_t sim_numbers;
unsigned int sim_busy_channel;
uint64_t sim_random_state;

static int fd_count, fd_hint = SIM_FIRST;

/* --- the table --- */

int sim_fd_new(void)
{
	for (int i = SIM_FIRST; i < SIM_FDS; i++) {
		int fd = SIM_FIRST + (fd_hint++ - SIM_FIRST) % (SIM_FDS - SIM_FIRST);

		if (!sim_sock_of[fd] && !sim_ep_of[fd])
			return fd;
	}
	return -1;
}

void sim_fd_begin(void)
{
	fd_hint = SIM_FIRST;
	fd_count = 0;
}

int sim_fd_sock(struct sim_sock *sock)
{
	int fd = sim_fd_new();

	sim_sock_of[fd] = sock;
	sock->refs++;
	fd_count++;
	return fd;
}

int sim_fd_ep(void)
{
	int fd = sim_fd_new();

	sim_ep_of[fd] = sim_ep_create();
	fd_count++;
	return fd;
}

int sim_fd_count(void)
{
	return fd_count;
}

static void drop_sock(int fd)
{
	struct sim_sock *sock = sim_sock_of[fd];

	sim_sock_of[fd] = NULL;
	if (--sock->refs)
		return;
	sim_ep_forget_sock(sock);
	sim_tcp_close(sock);
}

void sim_fd_lead_to(int fd, struct sim_sock *sock)
{
	sock->refs++;
	drop_sock(fd);
	sim_sock_of[fd] = sock;
}

int sim_fd_close(int fd)
{
	if (fd < 0)
		return -1;
	if (fd >= SIM_FDS)
		return close(fd);
	if (sim_sock_of[fd])
		drop_sock(fd);
	if (sim_ep_of[fd]) {
		struct sim_ep *ep = sim_ep_of[fd];

		sim_ep_of[fd] = NULL;
		sim_ep_destroy(ep);
	}
	if (fd >= SIM_FIRST) {
		fd_count--;
		fd_hint = SIM_FIRST + sim_below(8);
		return 0;
	}
	sim_ep_forget_real(fd);
	return close(fd);
}

static struct sim_sock *sock_of(int fd)
{
	return fd >= 0 && fd < SIM_FDS ? sim_sock_of[fd] : NULL;
}

static struct sim_ep *ep_of(int fd)
{
	if (!sim_ep_of[fd])
		sim_ep_of[fd] = sim_ep_create();
	return sim_ep_of[fd];
}

static int result(int value)
{
	if (value >= 0)
		return value;
	errno = -value;
	return -1;
}

/* --- passing a scripted socket: a memfd travels in its place and says which --- */

#define PASS_MAGIC 0x73696d70617373ull

struct pass {
	uint64_t magic;
	struct sim_sock *sock;
};

static int pass_pack(struct sim_sock *sock)
{
	struct pass pass = { PASS_MAGIC, sock };
	int fd = memfd_create("sim", MFD_CLOEXEC);

	if (write(fd, &pass, sizeof(pass)) != sizeof(pass))
		return -1;
	return fd;
}

static void pass_unpack(int fd)
{
	struct pass pass;

	if (fd >= SIM_FIRST || pread(fd, &pass, sizeof(pass), 0) != sizeof(pass) ||
	    pass.magic != PASS_MAGIC)
		return;
	sim_sock_of[fd] = pass.sock;
	pass.sock->refs++;
}

static int *message_fds(const struct msghdr *message, int *count)
{
	struct cmsghdr *control = message->msg_controllen ? CMSG_FIRSTHDR(message) : NULL;

	if (control && control->cmsg_type != SCM_RIGHTS)
		control = NULL;
	*count = control ? (control->cmsg_len - CMSG_LEN(0)) / sizeof(int) : 0;
	return control ? (int *)CMSG_DATA(control) : NULL;
}

/* A message on a link's channel. */
static ssize_t channel_send(int fd, const struct msghdr *message, int flags)
{
	int count, *fds = message_fds(message, &count);
	struct sim_sock *sock = count ? sock_of(fds[0]) : NULL;
	int kept = count ? fds[0] : -1;
	ssize_t sent;

	/* Never the first message: nobody's channel is full when it is new. */
	if (sim_busy_channel && *(uint32_t *)message->msg_iov->iov_base != SHUNT_MSG_HELLO &&
	    *(uint32_t *)message->msg_iov->iov_base != SHUNT_MSG_KNOCK &&
	    sim_one_in(sim_busy_channel)) {
		errno = EAGAIN;
		return -1;
	}
	trace("channel %d: message %u for stream %u", fd, ((uint32_t *)message->msg_iov->iov_base)[0],
	      ((uint32_t *)message->msg_iov->iov_base)[1]);
	if (sock)
		fds[0] = pass_pack(sock);
	sent = sendmsg(fd, message, flags);
	if (sock) {
		close(fds[0]);
		fds[0] = kept;
	}
	return sent;
}

static ssize_t sys_sendmsg(int fd, const struct msghdr *message, int flags)
{
	ssize_t sent;

	if (sim_witness_is_asked(message))
		return sim_witness_send(fd, message, flags);
	if (!sock_of(fd) && message->msg_iov->iov_len < sizeof(struct shunt_message))
		return sendmsg(fd, message, flags);	/* a wake-up: core/device/soft/bell.c */
	if (!sock_of(fd))
		return channel_send(fd, message, flags);
	sent = sim_tcp_send(sock_of(fd), message->msg_iov, message->msg_iovlen);
	if (sent >= 0)
		return sent;
	errno = -sent;
	return -1;
}

static ssize_t sys_recvmsg(int fd, struct msghdr *message, int flags)
{
	ssize_t got;
	int count, *fds;

	if (sock_of(fd)) {
		got = sim_tcp_receive(sock_of(fd), message->msg_iov, message->msg_iovlen, flags);
		if (got >= 0)
			return got;
		errno = -got;
		return -1;
	}
	if (sim_witness_is_asked(message))
		return sim_witness_receive(fd, message, flags);
	got = recvmsg(fd, message, flags);
	if (got <= 0)
		return got;
	fds = message_fds(message, &count);
	for (int i = 0; i < count; i++)
		pass_unpack(fds[i]);
	return got;
}

/* --- options and names --- */

static int sock_option(struct sim_sock *sock, int level, int name, void *value, socklen_t *length)
{
	if (level == IPPROTO_TCP && name == TCP_INFO) {
		struct tcp_info info;

		sim_tcp_info(sock, &info);
		if (*length > sizeof(info))
			*length = sizeof(info);
		memcpy(value, &info, *length);
		return 0;
	}
	if (sim_witness_bit(level, name) >= 0) {
		*(int *)value = sock->options >> sim_witness_bit(level, name) & 1;
		return 0;
	}
	if (level == IPPROTO_TCP && name == TCP_NODELAY) {
		*(int *)value = sock->nodelay;
		return 0;
	}
	if (level != SOL_SOCKET)
		return -ENOPROTOOPT;
	if (*length)
		memset(value, 0, *length);
	if (name == SO_COOKIE)
		*(uint64_t *)value = sim_witness_cookie(sock);
	if (name == SO_PROTOCOL)
		*(int *)value = IPPROTO_TCP;
	if (name == SO_SNDBUF)
		*(int *)value = (int)sock->out.sndbuf;
	if (name == SO_BUF_LOCK)
		*(int *)value = __builtin_ctz(sock->out.sndbuf) & 1 ? SOCK_SNDBUF_LOCK : 0;
	if (name == SO_MAX_PACING_RATE && *length == sizeof(uint64_t))
		*(uint64_t *)value = ~sock->unpaced;
	if (name == SO_ERROR) {
		*(int *)value = sock->error;
		sock->error = 0;
	}
	return 0;
}

static int sys_getsockopt(int fd, int level, int name, void *value, socklen_t *length)
{
	if (!sock_of(fd))
		return getsockopt(fd, level, name, value, length);
	return result(sock_option(sock_of(fd), level, name, value, length));
}

static int sys_setsockopt(int fd, int level, int name, const void *value, socklen_t length)
{
	struct sim_sock *sock = sock_of(fd);
	int bit = sim_witness_bit(level, name);

	if (!sock)
		return setsockopt(fd, level, name, value, length);
	if (level == SOL_SOCKET && name == SO_MAX_PACING_RATE && length == sizeof(uint64_t))
		sock->unpaced = ~*(const uint64_t *)value;
	if (level == IPPROTO_TCP && name == TCP_NODELAY)
		sock->nodelay = *(const int *)value;
	if (bit >= 0)
		sock->options = (uint8_t)((sock->options & ~(1u << bit)) |
					  (unsigned int)(*(const int *)value != 0) << bit);
	return 0;
}

static int sys_getsockname(int fd, struct sockaddr *address, socklen_t *length)
{
	if (!sock_of(fd))
		return getsockname(fd, address, length);
	memcpy(address, &sock_of(fd)->local, sizeof(struct sockaddr_in));
	*length = sizeof(struct sockaddr_in);
	return 0;
}

static int sys_getpeername(int fd, struct sockaddr *address, socklen_t *length)
{
	struct sim_sock *sock = sock_of(fd);

	if (!sock)
		return getpeername(fd, address, length);
	if (sock->state != SIM_TCP_OPEN)
		return result(-ENOTCONN);
	memcpy(address, &sock->remote, sizeof(struct sockaddr_in));
	*length = sizeof(struct sockaddr_in);
	return 0;
}

static int sys_shutdown(int fd, int how)
{
	return sock_of(fd) ? result(sim_tcp_shutdown(sock_of(fd), how)) : shutdown(fd, how);
}

static int sys_connect(int fd, const struct sockaddr *address, socklen_t length)
{
	if (!sock_of(fd))
		return sim_names_connect(fd, address, length);
	if (address->sa_family != AF_UNSPEC)
		return result(-EISCONN);
	sim_tcp_disconnect(sock_of(fd));
	return 0;
}

/* The world's addresses are its own: no address of the machine is one of its hosts'. */
static int sys_bind(int fd, const struct sockaddr *address, socklen_t length)
{
	return address->sa_family == AF_UNIX ? sim_names_bind(fd, address, length) : result(-EADDRNOTAVAIL);
}

static int sys_ioctl(int fd, unsigned long request, ...)
{
	struct sim_sock *sock = sock_of(fd);
	va_list args;
	int *value;

	va_start(args, request);
	value = va_arg(args, int *);
	va_end(args);
	if (!sock)
		return ioctl(fd, request, value);
	if (request == SIOCATMARK)
		*value = 0;	/* nobody sends urgent data */
	else
		*value = request == SIOCOUTQ ? sim_tcp_unsent(sock) : sim_tcp_unread(sock);
	return 0;
}

static int sys_fcntl(int fd, int command, ...)
{
	va_list args;
	long value;

	va_start(args, command);
	value = va_arg(args, long);
	va_end(args);
	if (fd >= SIM_FIRST && sock_of(fd) && (command == F_DUPFD_CLOEXEC || command == F_DUPFD))
		return sim_fd_sock(sock_of(fd));
	if (fd >= SIM_FIRST && sock_of(fd) && command == F_GETFL)
		return O_RDWR | O_NONBLOCK;	/* as all are */
	return fcntl(fd, command, value);
}

/* Of two scripted numbers. */
static int sys_dup3(int from, int to, int flags)
{
	(void)flags;
	if (!sock_of(from) || !sock_of(to))
		return result(-EBADF);
	sim_fd_lead_to(to, sock_of(from));
	return to;
}

/* --- waiting --- */

static bool answered(struct pollfd *fd)
{
	struct sim_sock *sock = sock_of(fd->fd);

	if (sock)
		fd->revents = sim_tcp_poll(sock) & (fd->events | POLLERR | POLLHUP);
	else if (fd->fd >= 0 && fd->fd < SIM_FDS && sim_ep_of[fd->fd])
		fd->revents = sim_ep_ready(sim_ep_of[fd->fd]) ? fd->events & POLLIN : 0;
	else
		return false;
	return true;
}

int sim_poll(struct pollfd *fds, nfds_t count)
{
	struct pollfd real[64];
	nfds_t index[64];
	int ready = 0, n = 0;

	for (nfds_t i = 0; i < count; i++) {
		fds[i].revents = 0;
		if (fds[i].fd < 0)
			continue;
		if (answered(&fds[i])) {
			ready += fds[i].revents != 0;
		} else {
			index[n] = i;
			real[n++] = fds[i];
		}
	}
	if (n && poll(real, n, 0) > 0)
		for (int i = 0; i < n; i++) {
			fds[index[i]].revents = real[i].revents;
			ready += real[i].revents != 0;
		}
	return ready;
}

static int sys_ppoll(struct pollfd *fds, nfds_t count, const struct timespec *timeout,
		     const sigset_t *mask)
{
	uint64_t until = timeout ? sim_clock + timeout->tv_sec * 1000000000ull + timeout->tv_nsec : UINT64_MAX;
	int ready = sim_poll(fds, count);

	(void)mask;
	while (!ready && sim_clock < until) {
		sim_idle();
		ready = sim_poll(fds, count);
	}
	return ready;
}

static int sys_epoll_ctl(int epfd, int op, int fd, struct epoll_event *event)
{
	return result(sim_ep_ctl(ep_of(epfd), op, fd, event));
}

static int sys_epoll_pwait(int epfd, struct epoll_event *events, int max, int timeout_ms,
			   const sigset_t *mask)
{
	(void)timeout_ms;
	(void)mask;
	return sim_ep_wait(ep_of(epfd), events, max);
}

static int sys_epoll_pwait2(int epfd, struct epoll_event *events, int max,
			    const struct timespec *timeout, const sigset_t *mask)
{
	uint64_t until = timeout ? sim_clock + timeout->tv_sec * 1000000000ull + timeout->tv_nsec : UINT64_MAX;
	int n = sys_epoll_pwait(epfd, events, max, 0, mask);

	while (!n && sim_clock < until) {
		sim_idle();
		n = sys_epoll_pwait(epfd, events, max, 0, mask);
	}
	return n;
}

static uint64_t sys_now(void)
{
	return sim_clock += 500;	/* who polls until some time sees it come */
}

/* The rest of the world goes on. */
static int sys_yield(void)
{
	sim_idle();
	return 0;
}

/* splitmix64; no draw of the script's, whose seeds would then be others. */
static ssize_t sys_getrandom(void *buffer, size_t bytes, unsigned int flags)
{
	(void)flags;
	for (size_t i = 0; i < bytes; i++) {
		uint64_t x = ++sim_numbers * 0x9e3779b97f4a7c15ull;

		x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9ull;
		x = (x ^ x >> 27) * 0x94d049bb133111ebull;
		((uint8_t *)buffer)[i] = x >> 56;
	}
	return bytes;
}

int capget(void *header, void *data);	/* libc's, which has no declaration of it */

static int receive_many(int fd, struct mmsghdr *messages, unsigned int count, int flags)
{
	return recvmmsg(fd, messages, count, flags, NULL);
}

/* Each socket of the simulator has a number of its own. */
static bool sys_socket_ask(int fd, struct shunt_sole_socket *socket)
{
	*socket = (struct shunt_sole_socket){ .fd = fd };
	return fd >= 0;
}

/* Sometimes somebody else holds it, for a while. */
static void sys_socket_look(struct shunt_fds *fds, struct shunt_sole_socket *sockets,
			    unsigned int count)
{
	(void)fds;
	for (unsigned int i = 0; i < count; i++)
		sockets[i].sole = sim_one_in(4) ? SHUNT_SOLE_HELD : SHUNT_SOLE_YES;
}

const struct shunt_sys sim_sys = {
	.now = sys_now, .sendmsg = sys_sendmsg, .recvmsg = sys_recvmsg, .recvmmsg = receive_many,
	.getsockopt = sys_getsockopt,
	.setsockopt = sys_setsockopt, .getsockname = sys_getsockname, .getpeername = sys_getpeername,
	.shutdown = sys_shutdown, .ioctl = sys_ioctl, .fcntl = sys_fcntl,
	.dup3 = sys_dup3, .socket = socket,
	.bind = sys_bind, .listen = listen, .accept4 = accept4, .connect = sys_connect, .read = read,
	.write = write, .close = sim_fd_close, .ppoll = sys_ppoll, .epoll_create1 = epoll_create1,
	.epoll_ctl = sys_epoll_ctl,
	.epoll_pwait = sys_epoll_pwait, .epoll_pwait2 = sys_epoll_pwait2, .getrandom = sys_getrandom,
	.yield = sys_yield, .getresuid = getresuid, .getresgid = getresgid,
	.prctl = prctl, .capget = capget, .readlink = readlink,
	.attach = shunt_attach_ask, .yama = shunt_attach_yama, .socket_ask = sys_socket_ask,
	.socket_look = sys_socket_look,
};
