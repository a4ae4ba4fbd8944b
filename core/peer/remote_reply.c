/* SPDX-License-Identifier: MIT */
#include "core/peer/remote_reply.h"
#include <arpa/inet.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/epoll.h>
#include "core/base/address.h"
#include "core/device/iwarp.h"
#include "core/fd/own_fds.h"
#include "core/peer/listener_worker.h"
#include "core/peer/remote_guest.h"
#include "core/peer/remote_course.h"
#include "core/peer/remote_link.h"
#include "core/peer/remote_words.h"
#include "core/service.h"
#include "core/stream/tuple.h"

/* A peer may take so long to come to the gate, or claim_ms if that is longer. */
#define TICKET_NS 5000000000ull
#define QUIET_NS 60000000000ull /* between two lines about hosts with another key */

/* --- the gate --- */

static void say_no_gate(const struct shunt_remote_listener *gate)
{
	static _Atomic bool said; /* each that asks would have it said again */

	if (gate->first_port && !atomic_exchange(&said, true))
		shunt_log(
			SHUNT_LOG_WARN,
			"no links from other hosts: none of the ports %u to %u is free (SHUNT_PORTS)",
			gate->first_port, gate->last_port);
}

/* An owner has told of its claimant before the claimant came, but that word may not have been read yet. */
static void hear_owners(void *service)
{
	shunt_listener_worker_hear_all(service);
}

struct shunt_remote_listener *shunt_remote_reply_gate(struct shunt_remote *remote, bool v6)
{
	struct shunt_engine *engine = remote->service->engine;
	struct shunt_remote_listener *gate = &remote->gates[v6];
	union cm_address any = { 0 };

	if (gate->fd >= 0)
		return gate;
	any.any.sa_family = v6 ? AF_INET6 : AF_INET;
	gate->engine = engine;
	gate->patience = engine->config.claim_ms * 1000000;
	if (gate->patience < TICKET_NS)
		gate->patience = TICKET_NS;
	gate->silence_ms = shunt_narrow_u32(engine->config.silence_s * 1000);
	gate->arg = remote->service;
	shunt_config_ports(engine->config.ports, &gate->first_port,
			   &gate->last_port); /* checked at the start */
	gate->let_in = shunt_remote_guest_come;
	gate->unknown = hear_owners;
	gate->expired = shunt_remote_guest_over;
	if (shunt_remote_listener_open(gate, &any.any)) {
		say_no_gate(gate);
		gate->fd = -1;
		return NULL;
	}
	if (shunt_loop_add(&engine->loop, gate->fd, &remote->gate_source, EPOLLIN)) {
		shunt_remote_listener_close(gate);
		gate->fd = -1;
		return NULL;
	}
	return gate;
}

/* --- what is said --- */

/* Its connections are not claimed: that is why. */
static void note_other_key(struct shunt_rendezvous *rendezvous, const struct cm_route *route)
{
	struct sockaddr_storage from = { 0 };
	uint16_t port;

	memcpy(&from, &route->peer, sizeof(route->peer));
	shunt_address_of(&from, rendezvous->other_key, &port);
}

/* Once a minute, because anybody may ask. */
static void say_other_key(struct shunt_remote *remote, const struct cm_route *route)
{
	struct shunt_engine *engine = remote->service->engine;
	bool v4 = route->peer.any.sa_family == AF_INET;
	char host[INET6_ADDRSTRLEN] = "?";

	atomic_fetch_add(&engine->other_keys, 1);
	if (shunt_now(engine) < remote->quiet_until)
		return;
	remote->quiet_until = shunt_now(engine) + QUIET_NS;
	inet_ntop(v4 ? AF_INET : AF_INET6,
		  v4 ? (const void *)&route->peer.v4.sin_addr : &route->peer.v6.sin6_addr, host,
		  sizeof(host));
	shunt_log(
		SHUNT_LOG_WARN,
		"connections from %s stay on TCP: that host has another key than this one, or one of the two has none (SHUNT_KEY)",
		host);
}

/* The answer's bytes, or -1: it is told nothing. */
static int answer_sound(struct shunt_remote *remote, const struct remote_question *asked,
			const struct cm_route *route, struct remote_answer *answer)
{
	struct shunt_remote_listener *gate = shunt_remote_reply_gate(
		remote, route->local.any.sa_family == AF_INET6);
	struct shunt_course course = { .device = NULL };
	int bytes;

	if (gate)
		course = shunt_remote_course(remote->service->engine, route);
	if (!course.device)
		return -1;
	bytes = shunt_remote_guest_expect(gate, &course, asked, answer);
	return bytes < 0 ? -1 : bytes;
}

/* How many bytes of the answer there are; negative: none. */
static int question_reply(struct shunt_rendezvous *rendezvous, const uint8_t *question,
			  unsigned int bytes, const struct cm_route *route,
			  struct remote_answer *answer)
{
	struct shunt_remote *remote = rendezvous->service->remote;
	struct remote_question asked;

	*answer = (struct remote_answer) { .port = 0 };
	switch (shunt_remote_question_read(&asked, remote->service->engine->key, question, bytes)) {
	case SHUNT_REMOTE_SOUND:
		memset(rendezvous->other_key, 0, sizeof(rendezvous->other_key));
		return answer_sound(remote, &asked, route, answer);
	case SHUNT_REMOTE_OTHER_KEY:
		note_other_key(rendezvous, route);
		say_other_key(remote, route);
		return (int)shunt_remote_answer_refuse(answer, SHUNT_REMOTE_WHY_KEY);
	case SHUNT_REMOTE_OTHER_VERSION:
		return (int)shunt_remote_answer_refuse(answer, SHUNT_REMOTE_WHY_VERSION);
	default:
		return -1;
	}
}

/* Another process has come to a listener: it is told where to come with its channel. */
int shunt_remote_reply_cm(void *rendezvous, const uint8_t *question, unsigned int bytes,
			  const struct cm_route *route, uint8_t *out)
{
	struct remote_answer answer;
	int length = question_reply(rendezvous, question, bytes, route, &answer);

	if (length > 0)
		memcpy(out, &answer, (size_t)length);
	return length;
}

/* The route that the connection manager would have told. False: no iWARP device has the address. */
static bool find_route(const struct shunt_tuple *asked, struct cm_route *route)
{
	struct shunt_iwarp_port found;
	uint8_t mac[SHUNT_IWARP_MAC];

	if (shunt_iwarp_mac(asked->local, mac) || shunt_iwarp_find("", mac, &found))
		return false;
	*route = (struct cm_route) { .port = found.port, .iwarp = true };
	memcpy(route->device, found.device, sizeof(found.device));
	shunt_remote_address(asked->local, asked->local_port, &route->local);
	shunt_remote_address(asked->peer, asked->peer_port, &route->peer);
	return true;
}

int shunt_remote_reply_words(struct shunt_rendezvous *rendezvous, const struct shunt_tuple *asked,
			     const struct shunt_have_words *said, struct remote_answer *answer)
{
	struct shunt_service *service = rendezvous->service;
	struct cm_route route;
	int bytes = -1;

	if (!service || !service->remote || !service->remote->open ||
	    said->bytes > sizeof(struct remote_question))
		return -1;
	shunt_remote_enter(&service->engine->fds); /* a device may be opened */
	if (find_route(asked, &route))
		bytes = question_reply(rendezvous, said->words, said->bytes, &route, answer);
	shunt_remote_leave(&service->engine->fds);
	return bytes;
}
