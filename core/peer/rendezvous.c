/* SPDX-License-Identifier: MIT */
/*
 * Finding the peer's process: an abstract Unix name per listening address. Abstract
 * names belong to the network namespace, as the addresses do.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include "core/base/address.h"
#include "core/base/identity.h"
#include "core/engine.h"
#include "core/fd/own_fds.h"
#include "core/link/trust.h"
#include "core/peer/deaf.h"
#include "core/loop/endpoint.h"
#include "core/peer/meeting_dir.h"
#include "core/peer/rendezvous.h"
#include "core/service.h"
#include "core/stream/tuple.h"

#ifndef SO_NETNS_COOKIE
#define SO_NETNS_COOKIE 71
#endif

/* Addresses mean something else in another network namespace. 0: the kernel does not say. */
static uint64_t network_of(struct shunt_engine *engine, int fd)
{
	uint64_t cookie = 0;
	socklen_t length = sizeof(cookie);

	return engine->sys->getsockopt(fd, SOL_SOCKET, SO_NETNS_COOKIE, &cookie, &length) ?
	       0 : cookie;
}

int shunt_rendezvous_learn(struct shunt_stream *stream)
{
	struct shunt_engine *engine = shunt_stream_engine(stream);
	int result = stream->fd < 0 ? -EBADF :
		     shunt_tuple_of(engine->sys, stream->fd, &stream->tuple);

	stream->proven_on = 0;
	if (result)
		stream->tuple = (struct shunt_tuple) { 0 };
	else
		stream->network = network_of(engine, stream->fd);
	return result;
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

int shunt_rendezvous_names(const uint8_t address[16], uint16_t port, struct shunt_name names[SHUNT_NAMES])
{
	int count = 0;

	wildcard_name(address, port, false, false, &names[count++]);
	if (!shunt_address_is_v4(address))
		wildcard_name(address, port, true, true, &names[count++]);
	wildcard_name(address, port, true, false, &names[count++]);
	return count;
}

bool shunt_rendezvous_is_among(const struct shunt_name *name, const struct shunt_name *names, int count)
{
	while (count--)
		if (names[count].length == name->length && !memcmp(names[count].text, name->text, name->length))
			return true;
	return false;
}

bool shunt_rendezvous_covers(const struct shunt_name *name, const uint8_t address[16], uint16_t port)
{
	struct shunt_name names[SHUNT_NAMES];
	int count = shunt_rendezvous_names(address, port, names);

	return shunt_rendezvous_is_among(name, names, count);
}

/* A name's owner may be any process, and so may a caller at ours. 0, or -errno: it gets nothing. */
static int peer_judge(struct shunt_engine *engine, int fd, bool *strange)
{
	int result = shunt_trust_ask(&engine->fds, fd);

	*strange = result != 0;
	return engine->config.trust == SHUNT_TRUST_USER ? result : 0;
}

static int meet(struct shunt_engine *engine, int fd, const struct shunt_name *name, bool *strange)
{
	int result;

	if (fd < 0)
		return fd;
	result = peer_judge(engine, fd, strange);
	if (!result && !*strange && !shunt_rendezvous_is_meeting(name))
		shunt_porter_trust(&engine->porter, fd);
	if (!result)
		return fd;
	shunt_own_fds_close(&engine->fds, fd);
	return result;
}

int shunt_rendezvous_knock(struct shunt_engine *engine, const struct shunt_name *name,
			   bool *strange)
{
	int fd = shunt_rendezvous_is_meeting(name) ?
		 shunt_meeting_dir_connect(engine, engine->config.dir, name->text + 1) :
		 shunt_endpoint_connect(&engine->porter, name->text + 1, SOCK_SEQPACKET);

	return meet(engine, fd, name, strange);
}

int shunt_rendezvous_knock_user_dir(struct shunt_engine *engine, const struct shunt_user_dir *where,
				const struct shunt_name *name, bool *strange)
{
	return meet(engine, shunt_user_dir_connect(engine, where, name), name, strange);
}

int shunt_rendezvous_connect(struct shunt_engine *engine, const struct shunt_tuple *tuple,
			     const struct shunt_user_dir *where, struct shunt_name *name,
			     bool *strange)
{
	struct shunt_name names[SHUNT_NAMES];
	int count = shunt_rendezvous_names(tuple->peer, tuple->peer_port, names), fd = -ECONNREFUSED;

	for (int i = 0; where->network && i < count && fd == -ECONNREFUSED; i++) {
		*name = names[i];
		fd = shunt_rendezvous_knock_user_dir(engine, where, name, strange);
	}

	for (int i = 0; i < count && fd == -ECONNREFUSED; i++) {
		*name = names[i];
		fd = shunt_rendezvous_knock(engine, name, strange);
	}
	return fd;
}

int shunt_rendezvous_of(struct shunt_engine *engine, int fd, struct shunt_name *name)
{
	struct sockaddr_storage bound;
	socklen_t length = sizeof(bound);
	static const uint8_t zero[16];
	uint8_t ip[16];
	uint16_t port;
	int result;
	bool any;

	if (engine->sys->getsockname(fd, (struct sockaddr *)&bound, &length))
		return -errno;
	result = shunt_address_of(&bound, ip, &port);
	if (result)
		return result;
	any = !memcmp(ip + 12, zero, 4) && (shunt_address_is_v4(ip) || !memcmp(ip, zero, 12));
	wildcard_name(ip, port, any, shunt_address_only_v6(engine->sys, fd, bound.ss_family), name);
	return 0;
}

void shunt_rendezvous_workers(const struct shunt_name *name, struct shunt_name *workers)
{
	workers->text[0] = 0;
	workers->length = 1 + snprintf(workers->text + 1, sizeof(workers->text) - 1,
				       "shunt/have/%.*s",
				       (int)(name->length - sizeof("shunt/tcp/")),
				       name->text + sizeof("shunt/tcp/"));
}

void shunt_rendezvous_process(const struct shunt_identity *process, struct shunt_name *name)
{
	char text[SHUNT_IDENTITY_TEXT];

	shunt_identity_text(process, text);
	name->text[0] = 0;
	name->length = 1 + snprintf(name->text + 1, sizeof(name->text) - 1, "shunt/link/%s", text);
}

static void write_meeting(struct shunt_name *name, const char *kind, const char *rest,
			 const char *port)
{
	name->text[0] = '/';
	name->length = 1 +
		       snprintf(name->text + 1, sizeof(name->text) - 1, "%s%s%s", kind, rest, port);
}

void shunt_rendezvous_meeting(const uint8_t address[16], uint16_t port, struct shunt_name *name)
{
	char text[INET6_ADDRSTRLEN], number[8];

	inet_ntop(AF_INET6, address, text, sizeof(text));
	snprintf(number, sizeof(number), ":%u", ntohs(port));
	write_meeting(name, SHUNT_MEETING_TCP, text, number);
}

void shunt_rendezvous_process_meeting(const struct shunt_identity *process, struct shunt_name *name)
{
	char text[SHUNT_IDENTITY_TEXT];

	shunt_identity_text(process, text);
	write_meeting(name, SHUNT_MEETING_LINK, text, "");
}

int shunt_rendezvous_offer(struct shunt_engine *engine, const struct shunt_name *name)
{
	return shunt_endpoint_listen(&engine->porter, name->text + 1, SOCK_SEQPACKET, 128);
}

void shunt_rendezvous_unname(struct shunt_engine *engine, const struct shunt_rendezvous *r)
{
	struct shunt_name workers;

	if (!r->in_user_dir || r->fd < 0)
		return;
	shunt_rendezvous_workers(&r->name, &workers);
	shunt_user_dir_withdraw(engine, &r->dir, &r->name);
	shunt_user_dir_withdraw(engine, &r->dir, &workers);
}

void shunt_rendezvous_close(struct shunt_engine *engine, struct shunt_rendezvous *r,
			    struct shunt_crowd *crowd)
{
	shunt_rendezvous_unname(engine, r);
	shunt_porter_close(&engine->porter, r->fd, crowd);
	shunt_porter_close(&engine->porter, r->worker_fd, crowd);
	shunt_porter_close(&engine->porter, r->abstract_fd, crowd);
	shunt_porter_close(&engine->porter, r->abstract_worker_fd, crowd);
	r->fd = r->worker_fd = r->abstract_fd = r->abstract_worker_fd = -1;
	r->in_user_dir = false;
}

int shunt_rendezvous_accept(struct shunt_engine *engine, int fd, bool *strange)
{
	int come = shunt_deaf_accept(engine, fd, SOCK_NONBLOCK);
	int result = come < 0 ? come : peer_judge(engine, come, strange);

	if (!result)
		return come;
	shunt_porter_dismiss(&engine->porter, come);
	return result;
}
