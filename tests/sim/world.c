/* SPDX-License-Identifier: MIT */
/* Two engines, their listeners, and the end of both. */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include "core/base/lsan.h"
#include "core/fd/own_fds.h"
#include "core/fork/fork_slots.h"
#include "core/peer/link_end.h"
#include "core/poll/devices.h"
#include "core/qos/monitor.h"
#include "core/qos/qos.h"
#include "core/qos/throttle.h"
#include "core/trace/book.h"
#include "core/service.h"
#include "core/stream/births.h"
#include "core/wait/epset.h"
#include "core/wait/watch.h"
#include "tests/inspect.h"
#include "tests/sim/born.h"
#include "tests/sim/sim.h"
#include "tests/sim/start.h"
#include "tests/sim/trust.h"

struct sim_world sim_world;

static uint64_t pow2_between(int low, int high)
{
	return 1ull << sim_between(low, high);
}

/* Rows of SHUNT_TUNE that the environment sets. */
static void note_fixed(size_t row, void *arg)
{
	const char *name = shunt_config_rows[row].name;
	bool *fixed = arg;

	fixed[0] |= !strcmp(name, "poll");
	fixed[1] |= !strcmp(name, "cqs");
}

/* poll and cqs of SHUNT_TUNE are for all seeds; other words are not looked at. */
static void choose_polling(struct shunt_config *config)
{
	bool fixed[2] = { false, false };
	const struct shunt_config_listener listener = { .took = note_fixed, .arg = fixed };
	const char *words = getenv("SHUNT_TUNE");
	struct shunt_config given;

	shunt_config_defaults(&given);
	if (words)
		shunt_config_set(&given, "SHUNT_TUNE", words, &listener);
	config->poll = sim_below(5);
	config->cqs = sim_between(1, 8);
	config->spin_us = sim_one_in(2) ? 0 : sim_between(1, 30);
	config->poll_retry = sim_one_in(2) ? sim_size(1000) : config->poll_retry;
	config->poll_batch = sim_one_in(2) ? sim_between(1, 4) : sim_between(1, 64);
	if (fixed[0])
		config->poll = given.poll;
	if (fixed[1])
		config->cqs = given.cqs;
}

/* A limit, a capacity with a reservation, or both. */
static void choose_rules(struct shunt_config *config)
{
	uint32_t kops = 1u << (config->seed >> 24 & 7), share = config->seed >> 27 & 3;

	config->qos_convert = config->seed >> 29 & 1;
	config->qos_pace = config->seed >> 30 & 1;
	if (share)
		snprintf(config->qos_rules, sizeof(config->qos_rules),
			 "period 100ms; capacity %s%uKops; class all reserve=%u%%%s",
			 config->seed >> 31 & 1 ? "auto " : "", kops, share * 30,
			 config->seed >> 32 & 1 ? " limit=200Kops" : "");
	else
		snprintf(config->qos_rules, sizeof(config->qos_rules),
			 "period 100ms; class all limit=%uKops", kops);
}

/* Small queues and rings: wraps, stalls and growth all the time. */
static void choose_config(struct shunt_config *config)
{
	shunt_config_defaults(config);
	choose_polling(config);
	config->log_level = SHUNT_LOG_NONE;
	config->seed = sim_random() >> 1 | 1;
	config->arena_bytes = 16 << 20;
	config->ring_min = pow2_between(12, 14);
	config->ring_max = config->ring_min << sim_below(6);
	config->mr_bytes = pow2_between(19, 22);
	config->lanes = sim_one_in(2) ? 1 : sim_between(2, SHUNT_LANES_MAX);
	config->rq_depth = pow2_between(6, 7);
	config->sq_depth = pow2_between(6, 7);
	config->signal_every = sim_between(1, 40);
	config->chain_max = sim_between(1, 64);
	config->frag_bytes = sim_one_in(2) ? 65536 : sim_between(4096, 16384);
	config->inline_bytes = sim_one_in(2) ? 1 << 20 : sim_between(64, 4000);
	config->mr_threshold = sim_one_in(2) ? 0 : sim_between(2000, 20000);
	config->batch = sim_below(4);
	config->admit = sim_below(3);
	config->stage_max = 65536 << config->frag_bytes % 6;
	config->window_bytes = sim_one_in(2) ? 0 : sim_size(100000);
	config->window_wrs = sim_one_in(2) ? 0 : sim_between(1, 40);
	config->window_device = sim_one_in(4) ? sim_size(100000) + 1 : 0;
	config->proof = sim_world.nonces;
	config->retain = sim_world.nonces || sim_one_in(2);	/* between hosts it is always so */
	config->claim_ms = sim_between(10, 1000);
	config->keepalive_ms = config->seed & 2 ? 0 : config->seed >> 8 & 1023;
	if (sim_world.mocks) {
		config->mock = sim_below(3);
		config->slow_ms = sim_one_in(4) ? 0 : sim_between(1, 20);
		config->slow_times = sim_between(1, 3);
		config->return_max_ms = sim_between(1, 200);
	}
	config->return_ms = sim_one_in(8) ? 0 : sim_between(1, 50);
	if (sim_world.dying) {
		config->retain = 1;
		config->return_ms = 1;
		config->return_max_ms = sim_between(1, 4);
	}
	config->flip_bytes = sim_one_in(2) || sim_avoids("flip") ? 0 : sim_size(8000);
	/* An eighth of the seeds: polls and steps are timed, and short ones are late. */
	if (!(config->seed >> 34 & 7)) {
		config->poll_warn_us = config->seed >> 37 & 63;
		config->slow_us = config->seed >> 43 & 63;
	}
	/* An eighth of the seeds, or all of them with SIM_QOS; no other choice changes with it. */
	if (!(config->seed >> 20 & 7) || getenv("SIM_QOS"))
		choose_rules(config);
	/* A quarter of the seeds, or all with SIM_TRACE. */
	if (!(config->seed >> 33 & 3) || getenv("SIM_TRACE"))
		config->trace = 1 + (config->seed >> 35 & 3);
	config->copy = (config->seed >> 40 & 3) % 3;	/* half auto */
	config->prefetch = config->seed >> 42 & 1 ? config->seed >> 44 & 4095 : 0;
	sim_born_config(config);
}

static int lowest_free(int from)
{
	int fd = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, from);

	if (fd >= 0)
		close(fd);
	return fd;	/* cppcheck-suppress deallocret */
}

static void make_engine(int i)
{
	struct sim_world *world = &sim_world;
	struct shunt_engine *engine;
	int fd;

	choose_config(&world->config[i]);
	engine = shunt_engine_create(&world->config[i], sim_trust_sys(i));
	if (!engine) {
		sim_fail("no engine");
		return;
	}
	engine->forks.pid += i << 22;	/* as if each were a process: no pid is higher */
	world->table = engine->fds.files->limit;
	engine->fds.files->limit = SIM_FDS;
	engine->loop.manual = true;
	engine->trim_every = sim_one_in(2) ? 0 : sim_size(20000000);
	engine->send_buffer = 65536;
	engine->lanes.ring_quiet = sim_one_in(2) ? 0 : sim_size(50000000);
	world->engine[i] = engine;
	world->epfd[i] = sim_fd_ep();
	shunt_file_epoll(engine, world->epfd[i]);
	world->listener[i] = (struct sim_sock) { .state = SIM_TCP_CLOSED };
	world->listener[i].peer = &world->listener[i];
	world->listener[i].local = (struct sockaddr_in) { .sin_family = AF_INET,
							  .sin_addr = world->address,
							  .sin_port = htons(7000 + i) };
	world->listener_fd[i] = fd = sim_fd_sock(&world->listener[i]);
	shunt_file_socket(engine, fd, true);
	if (!world->no_listener)
		shunt_file_listening(engine, fd);
	sim_born_listen(i);
}

/* A quarter of the seeds. Near the last border everything that is sent must still fit. */
static void choose_start(uint64_t start[2], uint64_t seed)
{
	unsigned int border = seed >> 1 & 3;

	for (int side = 0; seed & 1 && side < 2; side++) {
		uint64_t some = (seed >> side) * 7919 % 50000;

		start[side] = sim_start(border, border == 2 ? 200000 + some : some);
	}
}

void sim_world_make(uint64_t seed)
{
	struct sim_world *world = &sim_world;
	uint32_t pid = getpid();

	memset(world, 0, sizeof(*world));
	sim_random_state = seed * 0x2545f4914f6cdd1dull + 1;
	sim_numbers = seed;
	world->imm = sim_imm_chosen(seed);
	choose_start(world->start, seed);
	sim_trust_choose(seed);
	sim_born_choose(seed);
	sim_clock = 1000000000 + sim_below(1000000000);
	sim_fd_begin();
	world->lowest = lowest_free(0);
	world->high = lowest_free(SIM_FDS / 2);
	world->address.s_addr = htonl(127u << 24 | (pid & 0xffffff));
	world->no_listener = sim_one_in(50);
	world->kills = sim_one_in(20) && !sim_avoids("kill");
	world->faulty = sim_one_in(4) && !sim_avoids("fault");
	world->nonces = sim_one_in(3) && !sim_avoids("nonce");
	world->retires = sim_one_in(4) && !sim_avoids("retire");
	sim_busy_channel = sim_one_in(4) && !sim_avoids("busy") ? sim_between(2, 6) : 0;
	world->mocks = sim_one_in(3) && !sim_avoids("mock");
	world->dying = sim_one_in(20) && !sim_avoids("kill");
	world->kills |= world->dying;
	/* The process that gets a connection counts from its first byte. */
	world->hands = !world->born && !world->start[0] && !world->start[1] &&
		       !sim_avoids("hands") && sim_one_in(3);
	make_engine(0);
	make_engine(1);
}

/* --- nothing may be left --- */

static int stream_left(struct shunt_stream *stream, void *arg)
{
	(void)arg;
	if (stream->fd == sim_world.listener_fd[0] || stream->fd == sim_world.listener_fd[1])
		return 0;
	sim_fail("a stream is left: fd %d state %d holds %u link %p release %d claimed %u",
		 stream->fd, stream_state(stream), stream->holds, (void *)stream_link(stream),
		 stream->seat->release, stream->claim.state);
}

/* Every ring was given back, once; and what they were carved out of, after a while. */
static void check_arena(struct shunt_link *link)
{
	struct shunt_arena *arena = &link->arena;
	uint32_t regions = atomic_load(&arena->regions);
	uint64_t left = 0;

	if (arena->strays)
		sim_fail("a ring was given back twice");
	for (uint32_t i = arena->first; i < arena->count; i++)
		left += arena->blocks[i].taken;
	if (left != link->tracing.bytes)
		sim_fail("%lu bytes of rings were not given back", left - link->tracing.bytes);
	if (!left && (regions != 1 || atomic_load(&arena->registered) != arena->memory.reserved))
		sim_fail("%u memory regions are registered", regions);
}

/* Between two steps no thread is in the library: whoever has posted has woken the peer. */
static void check_rings(const struct shunt_service *service)
{
	for (struct shunt_link *link = service ? service->links : NULL; link; link = link->next)
		for (uint32_t i = 0; i < link->lane_count; i++)
			if (link->lanes[i].rings && *link->lanes[i].rings)
				sim_fail("nobody has rung for what lane %u has posted", i);
}

void sim_world_rung(void)
{
	for (int i = 0; i < 2; i++)
		if (!sim_world.dead[i])
			check_rings(sim_world.engine[i]->service);
}

static void check_engine(struct shunt_engine *engine)
{
	struct shunt_service *service = engine->service;

	shunt_streams_each(engine, stream_left, NULL);
	if (engine->lanes.book && !sim_world.killed &&
	    atomic_load(&engine->lanes.book->counts[SHUNT_TRACE_REFUSED]))
		sim_fail("a record of a send was not believed");
	if (engine->links.distrusted && !sim_world.killed)
		sim_fail("a link was distrusted");
	if (!sim_world.killed && atomic_load(&engine->group.inflight))
		sim_fail("%lu bytes count for the device's window", atomic_load(&engine->group.inflight));
	for (struct shunt_link *link = service ? service->links : NULL; link; link = link->next) {
		if (link->seated)
			sim_fail("%u seats are taken", link->seated);
		for (uint32_t i = 0; i < link->lane_count; i++)
			if (link->lanes[i].seats)
				sim_fail("%u seats of lane %u are taken", link->lanes[i].seats, i);
		if (shunt_channel_waits(&link->channel) && !(service->qos && service->qos->monitor))
			sim_fail("a message was not sent");
		if (link->pd)	/* else nobody needed it any more */
			check_arena(link);
	}
}

void sim_world_check(void)
{
	int count = sim_fd_count() - 2 - sim_born_listeners();

	for (int i = 0; i < 2; i++)
		if (!sim_world.dead[i])
			check_engine(sim_world.engine[i]);
	sim_trust_check();
	if (count)
		sim_fail("%d scripted descriptors are left", count);
}

/* --- the end --- */

static void end_service(struct shunt_engine *engine)
{
	struct shunt_service *service = engine->service;
	struct shunt_link *link;

	if (!service)
		return;
	for (link = service->links; link; link = link->next)
		role_kill_link(link, "the simulation ends");
	while ((link = service->links) != NULL) {
		service->links = link->next;
		shunt_link_destroy(link);
	}
	shunt_service_abandon(engine);
	while (engine->rendezvous) {
		struct shunt_rendezvous *next = engine->rendezvous->next;

		free(engine->rendezvous);
		engine->rendezvous = next;
	}
	free(service);
}

static void end_engine(struct shunt_engine *engine)
{
	for (int i = 0; i < engine->fds.wakers.count; i++)
		shunt_own_fds_close(&engine->fds, engine->fds.wakers.fd[i]);
	shunt_devices_close(&engine->group);
	seats_free(engine);
	for (uint32_t i = 0; i < engine->slab_count; i++)
		shunt_lsan_unmap(engine->slabs[i], SHUNT_SLAB_STREAMS * sizeof(struct shunt_stream));
	free(engine->slabs);
	free(engine->lanes.book);
	free(engine->verdict);
	while (engine->spares.births) {
		struct shunt_births *next = engine->spares.births->next;

		free(engine->spares.births);
		engine->spares.births = next;
	}
	while (engine->free_sets) {
		struct shunt_epset *next = engine->free_sets->next_free;

		free(engine->free_sets);
		engine->free_sets = next;
	}
	shunt_lsan_unmap(engine->fds.files,
			 sizeof(*engine->fds.files) +
				 sim_world.table * sizeof(engine->fds.files->slot[0]));
	if (engine->forks.shared)
		munmap(engine->forks.shared, SHUNT_FORK_SLOTS_BYTES);
	free(engine);
}

void sim_world_end(void)
{
	struct sim_world *world = &sim_world;

	for (int i = 0; i < 2; i++) {
		if (world->listener_fd[i] >= 0) {
			shunt_file_closing(world->engine[i], world->listener_fd[i]);
			sim_fd_close(world->listener_fd[i]);
		}
		shunt_file_closing(world->engine[i], world->epfd[i]);
		sim_fd_close(world->epfd[i]);
	}
	end_service(world->engine[0]);
	end_service(world->engine[1]);
	end_engine(world->engine[0]);
	end_engine(world->engine[1]);
	if (lowest_free(0) != world->lowest || lowest_free(SIM_FDS / 2) != world->high)
		sim_fail("a descriptor leaked: %d free, was %d; %d free, was %d", lowest_free(0),
			 world->lowest, lowest_free(SIM_FDS / 2), world->high);
}

/* --- what it looks like --- */

static void show_end(struct sim_end *end)
{
	struct shunt_stream *stream = end->life == SIM_OPEN ? sim_end_stream(end) : NULL;
	struct sim_sock *sock = &end->conn->sock[end->side];

	printf("#  end %d of %d: engine %d fd %d life %d style %d sent %lu of %lu received %lu may %d%d watch %x spent %d shut %d%d eof %d error %d\n",
	       end->side, (int)(end->conn - sim_world.conn), end->which, end->fd, end->life, end->style,
	       end->sent, end->goal, end->received, end->may_read, end->may_write, end->watch_events,
	       end->spent, end->shut_write, end->shut_read, end->eof, end->error);
	printf("#    tcp: state %d written %lu acked %lu read-by-peer %lu fin %d%d err %d\n", sock->state,
	       sock->out.written, sock->out.acked, sock->out.read, sock->out.fin_sent,
	       sock->out.fin_arrived, sock->error);
	if (stream)
		stream_print(stdout, "#    ", stream);
}

static void show_link(struct shunt_link *link)
{
	printf("#  link: state %d initiator %d seated %u failed %d (%s)\n", link->state, link->initiator, link->seated,
	       link->failed, link->failure ? link->failure : "");
	for (uint32_t i = 0; i < link->lane_count; i++) {
		struct shunt_lane *lane = &link->lanes[i];

		printf("#    lane %u: seats %u sent %lu allowed %lu retired %lu waiting %u received %lu reposted %lu granted %lu due %d\n",
		       i, lane->seats, lane->sent, lane->allowed, lane->retired, lane->waiting, lane->received,
		       lane->reposted, lane->granted, lane->lane_due);
	}
}

/* Of a node's period: what was granted and drawn, less what was given back, and what lies in pools. */
static void check_ledger(int i, const struct shunt_service *service)
{
	const struct shunt_ledger *ledger = service->monitor ? &service->monitor->ledger : NULL;

	if (ledger &&
	    ledger->reserved + ledger->drawn + ledger->pooled > ledger->capacity + ledger->returned)
		sim_fail("node %d has handed out more tokens than it has", i);
}

void sim_world_tokens(void)
{
	for (int i = 0; i < 2; i++) {
		struct shunt_service *service = sim_world.engine[i] ? sim_world.engine[i]->service :
								      NULL;

		if (service)
			check_ledger(i, service);
		for (struct shunt_link *link = service ? service->links : NULL; link;
		     link = link->next) {
			const struct shunt_throttle *throttle = link->throttle;

			if (throttle && throttle->rate &&
			    shunt_bucket_due(&throttle->bucket, sim_clock, 0) > sim_clock)
				sim_fail("engine %d has taken tokens that are not due", i);
		}
	}
}

void sim_world_show(void)
{
	for (int i = 0; i < 2; i++) {
		struct shunt_config *c = &sim_world.config[i];
		struct shunt_service *service = sim_world.engine[i] ? sim_world.engine[i]->service : NULL;

		printf("# engine %d: poll %lu cqs %lu batch %lu spin %lu retry %lu\n", i, c->poll, c->cqs,
		       c->poll_batch, c->spin_us, c->poll_retry);
		printf("# engine %d: ring %lu…%lu rq %lu sq %lu lanes %lu signal %lu chain %lu frag %lu flip %lu batch %lu admit %lu window %lu wrs %lu device %lu\n",
		       i, c->ring_min, c->ring_max, c->rq_depth, c->sq_depth, c->lanes, c->signal_every, c->chain_max,
		       c->frag_bytes, c->flip_bytes, c->batch, c->admit, c->window_bytes, c->window_wrs,
		       c->window_device);
		for (struct shunt_link *link = service ? service->links : NULL; link; link = link->next)
			show_link(link);
		sim_ep_show(sim_ep_of[sim_world.epfd[i]], 1);
	}
	printf("# kills %d killed %d broken %d faulty %d retires %d nonces %d imm %d\n",
	       sim_world.kills, sim_world.killed, sim_world.broken, sim_world.faulty,
	       sim_world.retires, sim_world.nonces, sim_world.imm);
	for (int i = 0; i < sim_world.conns; i++) {
		printf("# connection %d: established %d reset_ok %d born %d\n", i,
		       sim_world.conn[i].established, sim_world.conn[i].reset_ok,
		       sim_world.conn[i].born);
		show_end(&sim_world.conn[i].end[0]);
		show_end(&sim_world.conn[i].end[1]);
	}
}
