/*
 * Finding the peer's process: an abstract Unix name per listening address (DESIGN 5.3). Abstract
 * names belong to the network namespace, as the addresses do.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/un.h>
#include <unistd.h>
#include "core/service.h"

static const uint8_t v4_prefix[12] = { 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff };

/* IPv4 as v4-mapped IPv6, so that a dual-stack listener's and its client's views agree (PF-56). */
static int normalise(const struct sockaddr_storage *address, uint8_t out[16], uint16_t *port)
{
	if (address->ss_family == AF_INET) {
		const struct sockaddr_in *v4 = (const struct sockaddr_in *)address;

		memcpy(out, v4_prefix, 12);
		memcpy(out + 12, &v4->sin_addr, 4);
		*port = v4->sin_port;
		return 0;
	}
	if (address->ss_family == AF_INET6) {
		const struct sockaddr_in6 *v6 = (const struct sockaddr_in6 *)address;

		memcpy(out, &v6->sin6_addr, 16);
		*port = v6->sin6_port;
		return 0;
	}
	return -EAFNOSUPPORT;
}

int shunt_rendezvous_tuple(struct shunt_engine *engine, int fd, struct shunt_tuple *tuple)
{
	struct sockaddr_storage address;
	socklen_t length = sizeof(address);

	if (engine->sys->getsockname(fd, (struct sockaddr *)&address, &length))
		return -errno;
	if (normalise(&address, tuple->local, &tuple->local_port))
		return -EAFNOSUPPORT;
	length = sizeof(address);
	if (engine->sys->getpeername(fd, (struct sockaddr *)&address, &length))
		return -errno;
	return normalise(&address, tuple->peer, &tuple->peer_port);
}

/* The peer's address is one of this host's: it can be bound. */
static bool can_bind(struct shunt_engine *engine, const uint8_t address[16])
{
	struct sockaddr_in6 v6 = { .sin6_family = AF_INET6 };
	int fd = engine->sys->socket(AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	bool local;

	if (fd < 0)
		return false;
	memcpy(&v6.sin6_addr, address, 16);
	local = engine->sys->bind(fd, (struct sockaddr *)&v6, sizeof(v6)) == 0;
	engine->sys->close(fd);
	return local;
}

bool shunt_rendezvous_is_local(struct shunt_engine *engine, const struct shunt_tuple *tuple)
{
	if (!memcmp(tuple->local, tuple->peer, 16))
		return true;
	if (!memcmp(tuple->peer, v4_prefix, 12) && tuple->peer[12] == 127)
		return true;
	return can_bind(engine, tuple->peer);
}

void shunt_rendezvous_name(const uint8_t address[16], uint16_t port, bool any,
			   struct shunt_name *name)
{
	char text[INET6_ADDRSTRLEN] = "*";

	if (!any)
		inet_ntop(AF_INET6, address, text, sizeof(text));
	name->text[0] = 0;
	name->length = 1 + snprintf(name->text + 1, sizeof(name->text) - 1, "shunt/tcp/%s:%u", text,
				    ntohs(port));
}

/* Redis and others listen on 0.0.0.0 and, apart, on :: for IPv6 only: two names. */
static void wildcard_name(const uint8_t address[16], uint16_t port, bool any, bool only_v6,
			  struct shunt_name *name)
{
	shunt_rendezvous_name(address, port, any, name);
	if (!any || !only_v6)
		return;
	name->text[0] = 0;
	name->length = 1 + snprintf(name->text + 1, sizeof(name->text) - 1, "shunt/tcp/*6:%u", ntohs(port));
}

static socklen_t unix_address(const struct shunt_name *name, struct sockaddr_un *address)
{
	*address = (struct sockaddr_un) { .sun_family = AF_UNIX };
	memcpy(address->sun_path, name->text, name->length);
	return offsetof(struct sockaddr_un, sun_path) + name->length;
}

static int channel_socket(struct shunt_engine *engine)
{
	return shunt_private_make(engine, engine->sys->socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC |
							       SOCK_NONBLOCK, 0));
}

/*
 * Who owns a name may be anybody; the claimant's socket is only shown to a process of our own user or
 * of root, who could take it anyway.
 */
static int check_owner(struct shunt_engine *engine, int fd)
{
	struct ucred peer;
	socklen_t length = sizeof(peer);

	if (engine->sys->getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &length))
		return -errno;
	return peer.uid == 0 || peer.uid == geteuid() ? 0 : -EPERM;
}

static int connect_name(struct shunt_engine *engine, const struct shunt_name *name)
{
	struct sockaddr_un address;
	socklen_t length = unix_address(name, &address);
	int fd = channel_socket(engine);
	int result;

	if (fd < 0)
		return fd;
	result = engine->sys->connect(fd, (struct sockaddr *)&address, length) ? -errno : 0;
	if (!result)
		result = check_owner(engine, fd);
	if (!result)
		return fd;
	shunt_private_close(engine, fd);
	return result;
}

int shunt_rendezvous_connect(struct shunt_engine *engine, const struct shunt_tuple *tuple,
			     struct shunt_name *name)
{
	int fd;

	shunt_rendezvous_name(tuple->peer, tuple->peer_port, false, name);
	fd = connect_name(engine, name);
	if (fd != -ECONNREFUSED)
		return fd;
	wildcard_name(tuple->peer, tuple->peer_port, true, memcmp(tuple->peer, v4_prefix, 12) != 0, name);
	fd = connect_name(engine, name);
	if (fd != -ECONNREFUSED)
		return fd;
	shunt_rendezvous_name(tuple->peer, tuple->peer_port, true, name);
	return connect_name(engine, name);
}

int shunt_rendezvous_offer(struct shunt_engine *engine, int fd)
{
	struct sockaddr_storage bound;
	struct sockaddr_un address;
	struct shunt_name name;
	socklen_t length = sizeof(bound);
	static const uint8_t zero[16];
	uint8_t ip[16];
	uint16_t port;
	int only_v6 = 0, result, channel;
	bool any;

	if (engine->sys->getsockname(fd, (struct sockaddr *)&bound, &length))
		return -errno;
	result = normalise(&bound, ip, &port);
	if (result)
		return result;
	length = sizeof(only_v6);
	if (bound.ss_family == AF_INET6)
		engine->sys->getsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &only_v6, &length);
	any = !memcmp(ip + 12, zero, 4) && (!memcmp(ip, v4_prefix, 12) || !memcmp(ip, zero, 12));
	wildcard_name(ip, port, any, only_v6, &name);
	channel = channel_socket(engine);
	if (channel < 0)
		return channel;
	length = unix_address(&name, &address);
	if (engine->sys->bind(channel, (struct sockaddr *)&address, length) ||
	    engine->sys->listen(channel, 128)) {
		result = -errno;
		shunt_private_close(engine, channel);
		return result;
	}
	return channel;
}

int shunt_rendezvous_accept(struct shunt_engine *engine, int fd)
{
	return shunt_private_make(engine, engine->sys->accept4(fd, NULL, NULL,
								SOCK_CLOEXEC | SOCK_NONBLOCK));
}
