/* SPDX-License-Identifier: MIT */
#include "tests/sim/trust.h"
#include <errno.h>
#include <netinet/in.h>
#include <stdarg.h>
#include <string.h>
#include <sys/prctl.h>
#include "core/api.h"
#include "core/stream/marks.h"
#include "tests/sim/sim.h"
#include "tests/sim/witness.h"

#define LATE 300	/* steps after which a witness comes, at most */

static const int names[SIM_OPTIONS] = { IP_FREEBIND, IP_BIND_ADDRESS_NO_PORT, IP_MULTICAST_ALL,
					IP_MULTICAST_LOOP };

static struct trust {
	bool strangers;
	bool options;		/* programs use the four options themselves */
	bool hides[2];		/* the engine's process is not dumpable */
	uint64_t sees_at[2];	/* step from which on there is a witness */
	uint64_t chance;
} trust;

static struct shunt_sys sys[2];

/* splitmix64, as in sys.c. */
static uint64_t chance(void)
{
	uint64_t x = trust.chance += 0x9e3779b97f4a7c15ull;

	x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9ull;
	x = (x ^ x >> 27) * 0x94d049bb133111ebull;
	return x ^ x >> 31;
}

/* --- the engines' surroundings --- */

static int hidden_prctl(int option, ...)
{
	unsigned long value[4];
	va_list args;

	va_start(args, option);
	for (int i = 0; i < 4; i++)
		value[i] = va_arg(args, unsigned long);
	va_end(args);
	return option == PR_GET_DUMPABLE ? 0 :
					   prctl(option, value[0], value[1], value[2], value[3]);
}

static int make_socket(int which, int family, int type, int protocol)
{
	if (family != AF_NETLINK || sim_step >= trust.sees_at[which])
		return socket(family, type, protocol);
	errno = EAFNOSUPPORT;
	return -1;
}

static int socket_of_0(int family, int type, int protocol)
{
	return make_socket(0, family, type, protocol);
}

static int socket_of_1(int family, int type, int protocol)
{
	return make_socket(1, family, type, protocol);
}

bool sim_trust_chosen(void)
{
	return trust.strangers;
}

const struct shunt_sys *sim_trust_sys(int which)
{
	return trust.strangers ? &sys[which] : &sim_sys;
}

void sim_trust_choose(uint64_t seed)
{
	uint64_t who;

	trust = (struct trust) { .chance = seed };
	trust.strangers = chance() % 4 == 0 && !sim_avoids("stranger");
	trust.options = chance() % 2;
	who = chance() % 3;
	for (int i = 0; i < 2; i++) {
		uint64_t how = chance() % 20;

		trust.hides[i] = (int)who != i;
		trust.sees_at[i] = how == 0 ? UINT64_MAX : how < 3 ? chance() % LATE : 0;
		sys[i] = sim_sys;
		sys[i].socket = i ? socket_of_1 : socket_of_0;
		if (trust.hides[i])
			sys[i].prctl = hidden_prctl;
	}
}

/* --- the programs --- */

static void use_option(struct sim_end *end)
{
	struct shunt_stream *stream = sim_end_stream(end);
	uint8_t *own = &end->conn->options[end->side];
	unsigned int bit = chance() % SIM_OPTIONS;
	socklen_t length = sizeof(int);
	int value = 0;
	bool shown = stream && shunt_stream_option_begins(stream, IPPROTO_IP, names[bit]);

	if (sim_sys.getsockopt(end->fd, IPPROTO_IP, names[bit], &value, &length) ||
	    value != (*own >> bit & 1))
		sim_fail("option %u of connection %d end %d is %d", bit,
			 (int)(end->conn - sim_world.conn), end->side, value);
	if (chance() % 2) {
		if (stream)
			shunt_spare_option_changes(stream, IPPROTO_IP, names[bit]);
		value = !value;
		*own ^= (uint8_t)(1 << bit);
		sim_sys.setsockopt(end->fd, IPPROTO_IP, names[bit], &value, sizeof(value));
	}
	if (shown)
		shunt_stream_option_ends(stream);
	trace("connection %d end %d: option %u is %d", (int)(end->conn - sim_world.conn), end->side,
	      bit, value);
}

static void check_options(struct sim_end *end)
{
	struct shunt_stream *stream = end->life == SIM_OPEN ? sim_end_stream(end) : NULL;
	uint8_t real = end->conn->sock[end->side].options, own = end->conn->options[end->side];
	uint8_t kept = stream ? atomic_load(&stream->marks.own) : SHUNT_MARKS_NONE;

	if (kept == SHUNT_MARKS_NONE ? real != own : kept != own || real != stream->marks.now)
		sim_fail("connection %d end %d: options %x, the program's %x, kept %x",
			 (int)(end->conn - sim_world.conn), end->side, real, own, kept);
	if (kept != SHUNT_MARKS_NONE && !stream->possession)
		sim_fail("connection %d end %d has marks without a proof",
			 (int)(end->conn - sim_world.conn), end->side);
}

void sim_trust_serve(void)
{
	uint64_t which = chance() % 4;

	if (trust.strangers && which < 2 && sim_world.engine[which]->service)
		shunt_service_step(sim_world.engine[which], 0);
}

void sim_trust_step(void)
{
	struct sim_world *world = &sim_world;
	struct sim_end *end;

	if (!trust.strangers)
		return;
	if (trust.options && world->conns && chance() % 16 == 0) {
		end = &world->conn[chance() % world->conns].end[chance() % 2];
		if (end->life == SIM_OPEN)
			use_option(end);
	}
	for (int i = 0; i < world->conns; i++)
		for (int side = 0; side < 2; side++)
			check_options(&world->conn[i].end[side]);
}

void sim_trust_check(void)
{
	for (int i = 0; i < 2; i++) {
		struct shunt_service *service = sim_world.engine[i]->service;

		if (service && service->proofs.first)
			sim_fail("a proof is left");
		for (int n = 0; n < sim_world.conns; n++)
			check_options(&sim_world.conn[n].end[i]);
	}
}

uint64_t sim_trust_proven(void)
{
	uint64_t proven[2];

	for (int i = 0; i < 2; i++)
		proven[i] = atomic_load(&sim_world.engine[i]->proven);
	if (!trust.strangers && (proven[0] || proven[1]))
		sim_fail("what needs no proof was proven");
	return proven[0] < proven[1] ? proven[0] : proven[1];
}
