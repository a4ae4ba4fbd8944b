/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include "core/link/channel.h"
#include "core/base/address.h"
#include "core/base/scm_rights.h"
#include "core/fd/own_fds.h"
#include "core/link/common.h"
#include "core/link/screen.h"
#include "core/link/trust.h"
#include "core/loop/loop.h"
#include "core/loop/porter.h"

struct shunt_outgoing {
	struct shunt_outgoing *next;
	size_t bytes, sent;
	int count;
	int fds[SHUNT_CHANNEL_FDS];	/* duplicates, ours until sent */
	_Alignas(struct shunt_message) uint8_t data[sizeof(struct shunt_sealed)];
};

static const struct shunt_sys *sys_of(const struct shunt_channel *channel)
{
	return channel->links->loop->fds->sys;
}

static struct shunt_fds *fds_of(const struct shunt_channel *channel)
{
	return channel->links->loop->fds;
}

static struct shunt_porter *porter_of(const struct shunt_channel *channel)
{
	return channel->links->loop->porter;
}

/* --- sending --- */

/* So many of the bytes, or -errno. A Unix channel takes all or nothing. */
static ssize_t put(struct shunt_channel *channel, const void *data, size_t bytes, const int *fds, int count)
{
	struct iovec iov = { (void *)data, bytes };
	char space[CMSG_SPACE(SHUNT_CHANNEL_FDS * sizeof(int))] = { 0 };
	struct msghdr header = { .msg_iov = &iov, .msg_iovlen = 1 };
	ssize_t sent;

	shunt_scm_rights_attach(&header, space, fds, count);
	sent = sys_of(channel)->sendmsg(channel->fd, &header, MSG_DONTWAIT | MSG_NOSIGNAL);
	return sent < 0 ? -errno : sent;
}

static void drop_first(struct shunt_channel *channel)
{
	struct shunt_outgoing *out = channel->first;

	channel->first = out->next;
	channel->kept--;
	if (!channel->first)
		channel->last = NULL;
	for (int i = 0; i < out->count; i++)
		shunt_own_fds_close(fds_of(channel), out->fds[i]);
	free(out);
}

/* Keeps what is left of `data` after `sent` bytes, with its own hold on the descriptors. */
static int message_keep(struct shunt_channel *channel, const void *data, size_t bytes, size_t sent,
			const int *fds, int count)
{
	struct shunt_outgoing *out;

	if (channel->proves && channel->kept >= SHUNT_CHANNEL_KEPT)
		return -ENOBUFS;
	out = calloc(1, sizeof(*out));
	if (!out)
		return -ENOMEM;
	memcpy(out->data, data, bytes);
	out->bytes = bytes;
	out->sent = sent;
	for (int i = 0; i < count; i++) {
		out->fds[i] = shunt_own_fds_copy(fds_of(channel), fds[i]);
		if (out->fds[i] < 0) {
			while (i--)
				shunt_own_fds_close(fds_of(channel), out->fds[i]);
			free(out);
			return -EMFILE;
		}
	}
	out->count = count;
	if (channel->last)
		channel->last->next = out;
	else
		channel->first = out;
	channel->last = out;
	channel->kept++;
	return 0;
}

static int put_or_keep(struct shunt_channel *channel, const void *data, size_t bytes,
		       const int *fds, int count)
{
	ssize_t sent = -EAGAIN;
	int result;

	if (!channel->first)
		sent = put(channel, data, bytes, fds, count);
	if (sent < 0 && sent != -EAGAIN)
		return (int)sent;	/* -errno */
	if (sent == (ssize_t)bytes)
		return 0;
	result = message_keep(channel, data, bytes, sent < 0 ? 0 : sent, fds, count);
	/* The peer would take what comes next for the rest of this. */
	if (result && sent > 0)
		sys_of(channel)->shutdown(channel->fd, SHUT_RDWR);
	return result;
}

/* A message that could not be sent has not been numbered. */
static int send_sealed(struct shunt_channel *channel, const struct shunt_message *message)
{
	struct shunt_sealed sealed = { .message = *message };
	int result;

	shunt_seal_make(&channel->seal, &sealed.message, sizeof(sealed.message), sealed.code);
	result = put_or_keep(channel, &sealed, sizeof(sealed), NULL, 0);
	if (!result)
		shunt_seal_sent(&channel->seal);
	return result;
}

int shunt_channel_send(struct shunt_channel *channel, const struct shunt_message *message,
		       const int *fds, int count)
{
	if (channel->kind != SHUNT_CHANNEL_UNIX && count)
		return -EINVAL;
	return channel->seal.on ? send_sealed(channel, message) :
	       put_or_keep(channel, message, sizeof(*message), fds, count);
}

/* To another host bytes are under way for long, and nothing is said of those that have not come: there it is the same. */
int shunt_channel_send_now(struct shunt_channel *channel, const struct shunt_message *message)
{
	ssize_t sent;

	if (channel->kind != SHUNT_CHANNEL_UNIX)
		return shunt_channel_send(channel, message, NULL, 0);
	if (channel->first)
		return -EAGAIN;
	sent = put(channel, message, sizeof(*message), NULL, 0);
	return sent < 0 ? (int)sent : 0;	/* -errno */
}

void shunt_channel_flush(struct shunt_channel *channel)
{
	while (channel->first) {
		struct shunt_outgoing *out = channel->first;
		ssize_t sent = put(channel, out->data + out->sent, out->bytes - out->sent, out->fds, out->count);

		if (sent == -EAGAIN)
			return;
		if (sent >= 0)
			out->sent += sent;
		if (sent < 0 || out->sent == out->bytes)
			drop_first(channel);
	}
}

bool shunt_channel_waits(const struct shunt_channel *channel)
{
	return channel->first;
}

/* --- receiving --- */

static int wrong(struct shunt_channel *channel, const char *what)
{
	channel->wrong = what;
	return -EPROTO;
}

/* The kernel's word for it: these are of the time at which it was sent. */
static bool is_sent_by(const struct msghdr *header, const struct ucred *peer)
{
	struct cmsghdr *control = CMSG_FIRSTHDR(header);
	struct ucred sender;

	if (!control || control->cmsg_level != SOL_SOCKET ||
	    control->cmsg_type != SCM_CREDENTIALS ||
	    control->cmsg_len != CMSG_LEN(sizeof(sender)))
		return false;
	memcpy(&sender, CMSG_DATA(control), sizeof(sender));
	return sender.pid == peer->pid && sender.uid == peer->uid && sender.gid == peer->gid;
}

/* It was let in as one who may send descriptors, and may have. */
static void become_strange(struct shunt_channel *channel)
{
	shunt_channel_strange(channel);
	channel->admitted = true;
	shunt_porter_guard(porter_of(channel), channel->fd);
}

static int check_knock(struct shunt_channel *channel, const struct shunt_message *message,
		       const struct msghdr *header)
{
	const int off = 0;
	struct ucred peer;

	sys_of(channel)->setsockopt(channel->fd, SOL_SOCKET, SO_PASSCRED, &off, sizeof(off));
	if ((message->type == SHUNT_MSG_KNOCK || message->type == SHUNT_MSG_HELLO) &&
	    message->hello.magic == SHUNT_WIRE_MAGIC &&
	    message->hello.version != SHUNT_WIRE_VERSION) {
		channel->other_version = true;
		return wrong(channel, "it speaks another version");
	}
	if (message->type != SHUNT_MSG_KNOCK || message->hello.magic != SHUNT_WIRE_MAGIC)
		return wrong(channel, "it does not knock first");
	if (message->knock.proves > 1)
		return wrong(channel, "its knock makes no sense");
	/* Where the sender is not whom the kernel named, the socket is from before the peer became what it is. */
	if (!channel->other_netns && (message->knock.proves ||
	    (!channel->proves && (!shunt_trust_peer(sys_of(channel), channel->fd, &peer) ||
				  !is_sent_by(header, &peer)))))
		become_strange(channel);
	channel->peer = message->knock.process;
	channel->awaits_knock = false;
	channel->known = true;
	return 1;
}

/* Of a stranger nothing is received that could take long to close: such a packet stays where it is, and is looked at once. */
static int screen(struct shunt_channel *channel)
{
	int most = channel->takes_fds && !channel->awaits_knock ? SHUNT_CHANNEL_FDS : 0, result;

	if (channel->wrong)
		return -EPROTO;
	result = shunt_screen_packet(channel->links->loop, channel->fd, most,
				     channel->awaits_knock);
	return result == -EBADMSG ? wrong(channel, "descriptors that it must not send") : result;
}

static bool may_have_fds(const struct shunt_message *message)
{
	return message->type == SHUNT_MSG_HELLO || message->type == SHUNT_MSG_QOS_POOL;
}

/* They are not ours any more where they are not. */
static bool sockets_are_good(struct shunt_channel *channel, const int *fds, int *count)
{
	if (!channel->proves || shunt_screen_sockets(channel->links, channel->fd, fds, *count))
		return true;
	*count = 0;
	return false;
}

static int receive_packet(struct shunt_channel *channel, struct shunt_message *message, int *fds, int *count)
{
	const struct shunt_sys *sys = sys_of(channel);
	struct iovec iov = { message, sizeof(*message) };
	char space[CMSG_SPACE(2 * SHUNT_CHANNEL_FDS * sizeof(int))];
	struct msghdr header = { .msg_iov = &iov, .msg_iovlen = 1, .msg_control = space };
	ssize_t got = 1;

	if (channel->proves)
		got = screen(channel);
	if (got < 1)
		return (int)got;
	_Static_assert(sizeof(space) >= CMSG_SPACE(sizeof(struct ucred)), "credentials must fit");
	/* Where there is no room for descriptors the kernel drops them. */
	if (channel->awaits_knock)
		header.msg_controllen = CMSG_SPACE(sizeof(struct ucred));
	else if (channel->takes_fds)
		header.msg_controllen = sizeof(space);
	got = sys->recvmsg(channel->fd, &header, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
	/* It was closed with messages of ours unread: that is said once, and before what it has sent itself. */
	if (got < 0 && errno == ECONNRESET)
		got = sys->recvmsg(channel->fd, &header, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
	if (got < 0)
		return errno == EAGAIN || errno == EINTR ? 0 : -errno;
	*count = shunt_scm_rights_take(sys, &header, fds, SHUNT_CHANNEL_FDS);
	if (got == sizeof(*message) && !(header.msg_flags & (MSG_TRUNC | MSG_CTRUNC))) {
		if (channel->awaits_knock)
			return check_knock(channel, message, &header);
		channel->takes_fds &= !may_have_fds(message);
		if (!*count || may_have_fds(message))
			return sockets_are_good(channel, fds, count) ?
				       1 :
				       wrong(channel, "a socket that it must not send");
	}
	if (sockets_are_good(channel, fds, count))
		while (*count)
			shunt_screen_drop(channel->links->loop, fds[--*count], channel->proves);
	return got ? wrong(channel, "a message of the wrong size, or with descriptors") : -EPIPE;
}

/* Sizes and numbers are each side's own: a peer that writes them otherwise must not be read at all. */
static int check_first(struct shunt_channel *channel)
{
	const struct shunt_message *message = &channel->in.message;

	if (message->hello.magic == __builtin_bswap32(SHUNT_WIRE_MAGIC))
		return wrong(channel, "its byte order is another one");
	if (message->type != SHUNT_MSG_HELLO || message->hello.magic != SHUNT_WIRE_MAGIC)
		return wrong(channel, "it does not introduce itself");
	channel->begun = true;
	return 0;
}

/* A message counts only if its code is right. */
static int check_seal(struct shunt_channel *channel)
{
	const struct shunt_sealed *sealed = &channel->in.sealed;

	return !channel->seal.on || shunt_seal_check(&channel->seal, &sealed->message,
						     sizeof(sealed->message), sealed->code) ?
		       0 :
		       wrong(channel, "a message is not from who has the key (SHUNT_KEY)");
}

static int receive_stream(struct shunt_channel *channel, struct shunt_message *message)
{
	size_t whole = channel->seal.on ? sizeof(struct shunt_sealed) : sizeof(*message);
	struct iovec iov = { channel->in.bytes + channel->in_bytes, whole - channel->in_bytes };
	struct msghdr header = { .msg_iov = &iov, .msg_iovlen = 1 };
	ssize_t got;

	if (channel->wrong)
		return -EPROTO;
	got = sys_of(channel)->recvmsg(channel->fd, &header, MSG_DONTWAIT);
	if (got < 0)
		return errno == EAGAIN || errno == EINTR ? 0 : -errno;
	if (!got)
		return -EPIPE;
	channel->in_bytes += got;
	if (channel->in_bytes < whole)
		return 0;
	channel->in_bytes = 0;
	if (check_seal(channel) || (!channel->begun && check_first(channel)))
		return -EPROTO;
	*message = channel->in.message;
	return 1;
}

int shunt_channel_receive(struct shunt_channel *channel, struct shunt_message *message, int fds[SHUNT_CHANNEL_FDS],
			  int *count)
{
	*count = 0;
	return channel->kind == SHUNT_CHANNEL_UNIX ? receive_packet(channel, message, fds, count) :
						     receive_stream(channel, message);
}

/* --- life --- */

void shunt_channel_init(struct shunt_channel *channel, struct shunt_links *links,
			enum shunt_channel_kind kind, int fd)
{
	*channel = (struct shunt_channel) { .links = links, .kind = kind, .fd = fd, .number = ++links->channels,
					    .takes_fds = kind == SHUNT_CHANNEL_UNIX };
}

void shunt_channel_strange(struct shunt_channel *channel)
{
	channel->proves = true;
	channel->takes_fds = false;
}

void shunt_channel_proven(struct shunt_channel *channel)
{
	channel->proven = true;
	shunt_channel_expect_fd(channel);
}

void shunt_channel_expect_fd(struct shunt_channel *channel)
{
	if (channel->kind != SHUNT_CHANNEL_UNIX)
		return;
	channel->takes_fds = true;
	if (!channel->proves)
		return;
	channel->admitted = true;
	shunt_porter_trust(porter_of(channel), channel->fd);
}

/* The queue may have some already. They are seen before they are received (screen()). */
void shunt_channel_expect_no_fd(struct shunt_channel *channel)
{
	channel->takes_fds = false;
	if (channel->proves && channel->fd >= 0)
		shunt_porter_guard(porter_of(channel), channel->fd);
}

void shunt_channel_other_netns(struct shunt_channel *channel)
{
	channel->proves = channel->other_netns = true;
	shunt_channel_proven(channel);
}

/* By us: for the kernel to add them (SO_PASSCRED), a socket without a name would have to get one. */
static int send_credentials(struct shunt_channel *channel, struct shunt_message *message,
			    const struct ucred *self)
{
	char space[CMSG_SPACE(sizeof(*self))] = { 0 };
	struct iovec iov = { message, sizeof(*message) };
	struct msghdr header = { .msg_iov = &iov, .msg_iovlen = 1, .msg_control = space,
				 .msg_controllen = sizeof(space) };
	struct cmsghdr *control = CMSG_FIRSTHDR(&header);

	control->cmsg_level = SOL_SOCKET;
	control->cmsg_type = SCM_CREDENTIALS;
	control->cmsg_len = CMSG_LEN(sizeof(*self));
	memcpy(CMSG_DATA(control), self, sizeof(*self));
	return sys_of(channel)->sendmsg(channel->fd, &header,
					     MSG_DONTWAIT | MSG_NOSIGNAL) < 0 ? -errno : 0;
}

int shunt_channel_knock(struct shunt_channel *channel, const struct shunt_identity *process)
{
	struct shunt_message message = { .type = SHUNT_MSG_KNOCK };
	const int on = 1;
	struct ucred self;
	int result;

	shunt_trust_self(sys_of(channel), &self);
	message.knock.magic = SHUNT_WIRE_MAGIC;
	message.knock.version = SHUNT_WIRE_VERSION;
	message.knock.proves = channel->proves;
	message.knock.process = *process;
	result = send_credentials(channel, &message, &self);
	if (result == -EINVAL || result == -EPERM)	/* our user has no number in our own namespace */
		result = shunt_channel_send(channel, &message, NULL, 0);
	channel->awaits_knock = true;
	if (sys_of(channel)->setsockopt(channel->fd, SOL_SOCKET, SO_PASSCRED, &on, sizeof(on)))
		return -errno;
	return result;
}

void shunt_channel_close(struct shunt_channel *channel)
{
	while (channel->first)
		drop_first(channel);
	if (channel->kind == SHUNT_CHANNEL_UNIX && (channel->admitted || !channel->proves))
		shunt_porter_let_go(porter_of(channel), channel->fd);
	else if (channel->proves)
		shunt_porter_dismiss(porter_of(channel), channel->fd);
	else
		shunt_own_fds_close(fds_of(channel), channel->fd);
	channel->fd = -1;
}

/* The kernel probes an idle peer after a third of the time, and twice more. */
int shunt_channel_options(const struct shunt_sys *sys, int fd, uint32_t silence_ms)
{
	const int seconds = silence_ms > 3000 ? silence_ms / 3000 : 1;
	const struct option {
		int level, name, value;
	} options[] = {
		{ IPPROTO_TCP, TCP_NODELAY, 1 },
		{ IPPROTO_TCP, TCP_USER_TIMEOUT, silence_ms },
		{ IPPROTO_TCP, TCP_KEEPIDLE, seconds },
		{ IPPROTO_TCP, TCP_KEEPINTVL, seconds },
		{ IPPROTO_TCP, TCP_KEEPCNT, 2 },
		{ SOL_SOCKET, SO_KEEPALIVE, 1 },
	};

	for (size_t i = 0; i < sizeof(options) / sizeof(options[0]); i++)
		if (sys->setsockopt(fd, options[i].level, options[i].name, &options[i].value,
				    sizeof(int)))
			return -errno;
	return 0;
}

/* --- tcp --- */

int shunt_channel_locate(struct shunt_channel *channel)
{
	const struct shunt_sys *sys = sys_of(channel);
	struct sockaddr_storage here, there;
	socklen_t here_bytes = sizeof(here), there_bytes = sizeof(there);
	uint16_t port;

	if (sys->getsockname(channel->fd, (struct sockaddr *)&here, &here_bytes) ||
	    sys->getpeername(channel->fd, (struct sockaddr *)&there, &there_bytes))
		return -errno;
	return shunt_address_of(&here, channel->here, &port) ||
			       shunt_address_of(&there, channel->there, &port) ?
		       -EAFNOSUPPORT :
		       0;
}

bool shunt_channel_joins(const struct shunt_channel *channel, const uint8_t here[16],
			 const uint8_t there[16])
{
	return channel->kind == SHUNT_CHANNEL_UNIX ||
	       (!memcmp(channel->here, here, 16) && !memcmp(channel->there, there, 16));
}

static socklen_t size_of(const struct sockaddr *address)
{
	return address->sa_family == AF_INET6 ? sizeof(struct sockaddr_in6) : sizeof(struct sockaddr_in);
}

/* The kernel has them only when the connection is made. */
static void set_ends(struct shunt_channel *channel, const struct sockaddr *from,
		     const struct sockaddr *to)
{
	struct sockaddr_storage address = { 0 };
	uint16_t port;

	memcpy(&address, to, size_of(to));
	shunt_address_of(&address, channel->there, &port);
	if (!from)
		return;
	memcpy(&address, from, size_of(from));
	shunt_address_of(&address, channel->here, &port);
}

int shunt_channel_connect(struct shunt_channel *channel, struct shunt_links *links,
			  const struct sockaddr *from, const struct sockaddr *to,
			  const uint8_t cookie[SHUNT_COOKIE_BYTES], uint32_t silence_ms)
{
	struct shunt_fds *fds = links->loop->fds;
	const struct shunt_sys *sys = fds->sys;
	int fd = shunt_own_fds_make(
		fds, sys->socket(to->sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK,
					  IPPROTO_TCP));
	int result;

	if (fd < 0)
		return fd;
	shunt_channel_init(channel, links, SHUNT_CHANNEL_TCP, fd);
	set_ends(channel, from, to);
	result = shunt_channel_options(sys, fd, silence_ms);
	if (!result && from && sys->bind(fd, from, size_of(from)))
		result = -errno;
	if (!result && sys->connect(fd, to, size_of(to)) && errno != EINPROGRESS)
		result = -errno;
	if (!result)
		result = message_keep(channel, cookie, SHUNT_COOKIE_BYTES, 0, NULL, 0);
	if (result)
		shunt_channel_close(channel);
	return result;
}
