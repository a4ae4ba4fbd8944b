/* SPDX-License-Identifier: MIT */
/* The schedule: which end does which step. */
#include <errno.h>
#include <arpa/inet.h>
#include "core/admin/command.h"
#include "core/base/answer.h"
#include "core/device/soft/soft.h"
#include "core/loop/request.h"
#include "core/service.h"
#include "tests/inspect.h"
#include "tests/sim/born.h"
#include "tests/sim/sim.h"
#include "tests/sim/trust.h"
#include "tests/sim/witness.h"

static uint8_t rings[SIM_BORN_CONNS][2][SIM_PIPE_BYTES];

/* --- connections come --- */

static void plan_end(struct sim_conn *conn, int side, int which)
{
	conn->end[side] = (struct sim_end) {
		.conn = conn, .side = side, .which = which, .fd = -1, .twin = -1,
		.style = sim_below(SIM_STYLES),
		.goal = sim_one_in(6) ? 0 : sim_size(100000),
		.salt = sim_below(65521),
		.lazy = sim_one_in(4),
		.drops = sim_one_in(8),
	};
}

static void open_connection(void)
{
	struct sim_world *world = &sim_world;
	struct sim_conn *conn = &world->conn[world->conns];
	uint8_t *both[2] = { rings[world->conns][0], rings[world->conns][1] };
	int from = sim_below(2);

	conn->sock = world->pair[world->conns++];
	plan_end(conn, 0, from);
	plan_end(conn, 1, !from);
	conn->options[0] = conn->options[1] = SIM_OPTIONS_FIRST;
	if (world->born) {
		sim_born_plan(conn);
		sim_born_open(conn, both);
		return;
	}
	sim_tcp_pair(conn->sock, both, world->address, 7000 + !from, 20000 + world->conns);
	if (sim_one_in(2)) {
		sim_tcp_establish(&conn->sock[0]);
		conn->established = true;
	}
	sim_end_open(&conn->end[0]);
}

/* --- the network --- */

static bool deliver(struct sim_conn *conn, int side, uint64_t bytes)
{
	if (!conn->established) {
		if (conn->sock[0].state != SIM_TCP_CONNECTING)
			return false;
		conn->established = true;
		sim_tcp_establish(&conn->sock[0]);
		sim_born_queued(conn);
		return true;
	}
	return sim_tcp_deliver(&conn->sock[side], bytes);
}

static bool deliver_all(void)
{
	bool moved = false;

	for (int i = 0; i < sim_world.conns; i++)
		for (int side = 0; side < 2; side++)
			while (deliver(&sim_world.conn[i], side, UINT64_MAX))
				moved = true;
	return moved;
}

static void deliver_some(void)
{
	struct sim_conn *conn;

	if (!sim_world.conns)
		return;
	conn = &sim_world.conn[sim_below(sim_world.conns)];
	deliver(conn, sim_below(2), sim_size(100000));
}

/* --- the engines --- */

static bool poll_one(int which)
{
	return !sim_world.dead[which] &&
	       shunt_group_poll(&sim_world.engine[which]->group) > 0;
}

/* Some stream may be idle: idle.c, which asks then, does not run here. */
static void service(int which)
{
	struct shunt_engine *engine = sim_world.engine[which];

	if (!engine->service || sim_world.dead[which])
		return;
	shunt_request_memory(&engine->loop);
	shunt_service_step(engine, 0);
}

static struct shunt_link *some_link(void)
{
	struct shunt_service *one = sim_world.engine[sim_below(2)]->service;
	struct shunt_link *link = one ? one->links : NULL;

	if (link && link->next && sim_one_in(2))
		link = link->next;
	return link && atomic_load(&link->state) == SHUNT_LINK_UP ? link : NULL;
}

static struct ibv_qp *some_qp(struct shunt_link *link)
{
	return link->lanes[sim_below(link->lane_count)].qp;
}

static void fault(void)
{
	struct shunt_link *link = some_link();
	int what = sim_below(3);

	if (!link || !sim_world.faulty || sim_world.silent)
		return;
	trace("fault %d", what);
	if (what == 0)
		soft_qp_fault(some_qp(link), SOFT_FAULT_STALL);
	else if (what == 1)
		soft_qp_fault(some_qp(link), SOFT_FAULT_NONE);
	else
		soft_qp_fail_post(some_qp(link), sim_between(1, 20));
}

static void end_faults(void)
{
	for (int i = 0; i < 2; i++) {
		struct shunt_service *one = sim_world.engine[i]->service;

		for (struct shunt_link *link = one ? one->links : NULL; link; link = link->next) {
			for (uint32_t n = 0; n < link->lane_count; n++) {
				soft_qp_fault(link->lanes[n].qp, SOFT_FAULT_NONE);
				soft_qp_fail_post(link->lanes[n].qp, 0);
			}
		}
	}
}

/* An engine that retains what it has sent loses nothing with its queue pair. */
static void lose_queue_pair(void)
{
	if (sim_world.engine[0]->config.retain && sim_world.engine[1]->config.retain)
		sim_world.broken = true;
	else
		sim_world.killed = true;
}

/*
 * A stalled device is a dead one to an engine that has waited dead_ms for its READ
 * (core/lane/remote_read.c): the engine gives the queue pair up.
 */
static void note_failovers(void)
{
	for (int i = 0; i < 2; i++) {
		struct shunt_service *service = sim_world.engine[i]->service;

		if (atomic_load(&sim_world.engine[i]->failovers))
			lose_queue_pair();
		for (struct shunt_link *link = service ? service->links : NULL; link;
		     link = link->next)
			sim_world.killed |= link->silent && (!link->resumed || sim_world.nonces);
	}
}

static void kill_link(void)
{
	struct shunt_link *link = some_link();

	if (!link || !sim_world.kills || link->channel.fd < 0)
		return;
	trace("a link is killed");
	if (!sim_world.dying && sim_one_in(4)) {
		sim_world.killed = true;
		shutdown(link->channel.fd, SHUT_RDWR);
		return;
	}
	lose_queue_pair();
	if (!sim_world.broken || sim_step & 1) {
		soft_qp_fault(some_qp(link), SOFT_FAULT_KILL);
		return;
	}
	trace("without a word");	/* a host that has gone: its silence has to be noticed */
	end_faults();
	sim_world.silent = true;
	for (uint32_t n = 0; n < link->lane_count; n++)
		soft_qp_fault(link->lanes[n].qp, SOFT_FAULT_DROP);
}

/* --- the operator --- */

/* A command, as `shunt adm` sends it: for all streams, or for one by either of its names. */
static void operator(void)
{
	static const char *const words[] = { "auto", "tcp", "rdma" };
	uint64_t conns = sim_world.born ? SIM_BORN_CONNS : SIM_CONNS;
	struct sim_end *end = &sim_world.conn[sim_below(conns)].end[sim_below(2)];
	struct shunt_engine *engine = sim_world.engine[sim_below(2)];
	const char *word = words[sim_below(3)];
	struct shunt_answer answer;
	char line[SHUNT_COMMAND_MAX];
	int how = sim_below(3), length;

	if (!sim_world.mocks || !engine->service || sim_world.dead[0] || sim_world.dead[1])
		return;
	length = snprintf(line, sizeof(line), "mock %s", word);
	if (how && end->conn && end->life == SIM_OPEN) {
		const struct sim_sock *sock = &end->conn->sock[end->side];
		char local[INET_ADDRSTRLEN], peer[INET_ADDRSTRLEN];

		inet_ntop(AF_INET, &sock->local.sin_addr, local, sizeof(local));
		inet_ntop(AF_INET, &sock->remote.sin_addr, peer, sizeof(peer));
		engine = sim_world.engine[end->which];
		length = how == 1 ? snprintf(line, sizeof(line), "mock %s %d", word, end->fd) :
			 snprintf(line, sizeof(line), "mock %s %s:%d %s:%d", word, local, ntohs(sock->local.sin_port), peer,
				  ntohs(sock->remote.sin_port));
	}
	trace("operator: %s", line);
	if (shunt_command_run(engine, line, length, &answer) && how < 2)	/* its addresses may not be known yet */
		sim_fail("%s: %s", line, answer.text);
}

/* --- programs --- */

/* Waits, so the rest of the world goes on meanwhile (sim_idle). */
static void retire(struct sim_end *end)
{
	struct shunt_stream *stream = sim_end_stream(end);
	int result;

	if (!sim_world.retires || !stream || shunt_stream_is_plain(stream) || !end->conn->established)
		return;
	trace("connection %d end %d: retire", (int)(end->conn - sim_world.conn), end->side);
	result = shunt_stream_retire(sim_world.engine[end->which], end->fd, stream,
				     SHUNT_CAUSE_SPLICE);
	trace("connection %d end %d: retired: %d", (int)(end->conn - sim_world.conn), end->side, result);
	/* The handback may wait for receives that only the peer's program would post: then it gives up. */
	if (result && result != -EBUSY && result != -ETIMEDOUT && !sim_world.killed && !sim_world.broken && !sim_world.faulty)
		sim_fail("retire fails with error %d", -result);
}

/*
 * The connection goes to another process: as by exec, or by SCM_RIGHTS. Another stream takes the number, which knows what
 * the kernel counts and nothing else.
 */
static void change_hands(struct sim_end *end)
{
	struct shunt_engine *engine = sim_world.engine[end->which];
	struct shunt_stream *stream = sim_end_stream(end);
	const struct sim_sock *sock = &end->conn->sock[end->side];
	int result;

	if (!stream || end->twin >= 0 || !end->conn->established || end->eof || end->error ||
	    end->shut_write || end->shut_read)
		return;
	result = shunt_stream_retire(engine, end->fd, stream, SHUNT_CAUSE_INHERITED);
	/* Only a link that is dead has what is unread: the next owner is told by a reset. */
	end->conn->reset_ok |= result == -EBUSY && sock->state == SIM_TCP_CLOSED;
	if (result || end->life == SIM_CLOSED || !shunt_stream_is_plain(stream))
		return;
	trace("connection %d end %d: another process has it", (int)(end->conn - sim_world.conn),
	      end->side);
	sim_world.handed_on += stream_came_to_link(stream);
	if (end->style == SIM_EPOLL)
		sim_watch_drop(end);
	shunt_file_closing(engine, end->fd);
	shunt_file_received(engine, end->fd, SHUNT_CAUSE_INHERITED);
	if (end->style == SIM_EPOLL)
		sim_watch_add(end);
	sim_world.handed++;
}

static bool may_read(struct sim_end *end)
{
	return !end->eof && !end->error && (end->style != SIM_EPOLL || end->may_read);
}

static bool may_write(struct sim_end *end)
{
	return end->sent < end->goal && !end->shut_write && !end->error &&
	       (end->style != SIM_EPOLL || end->may_write);
}

static void odd(struct sim_end *end)
{
	if (sim_world.hands && sim_one_in(4)) {
		change_hands(end);
		return;
	}
	switch (sim_below(7)) {
	case 0:
		sim_end_twin(end);
		break;
	case 1:
		if (end->twin >= 0)
			sim_end_close(end);
		break;
	case 2:
		retire(end);
		break;
	case 3:
		if (end->drops && sim_one_in(2))
			sim_end_close(end);
		break;
	case 4:
		if (end->drops && !end->shut_write && end->conn->established)
			sim_end_shutdown(end, sim_below(3));
		break;
	case 5:
		if (end->style == SIM_EPOLL)
			sim_watch_rearm(end);
		break;
	default:
		if (end->style != SIM_EPOLL)
			sim_end_queues(end);
	}
}

static int receive_flags(struct sim_end *end)
{
	if (!sim_one_in(4))
		return 0;
	if (end->style == SIM_EPOLL)
		return MSG_WAITALL;
	return sim_one_in(2) ? MSG_PEEK : sim_one_in(2) ? MSG_TRUNC : MSG_WAITALL;
}

static void run_end(struct sim_end *end)
{
	if (end->life == SIM_UNBORN) {
		if (end->conn->established && sim_one_in(3) && !sim_world.born)
			sim_end_open(end);
		return;
	}
	if (end->life == SIM_CLOSED)
		return;
	if (sim_one_in(16))
		odd(end);
	else if (end->style == SIM_EPOLL && sim_one_in(2))
		sim_watch_wait(end->which);
	else if (end->style == SIM_POLLS && !end->shut_write && sim_one_in(end->lazy ? 20 : 1))
		sim_end_poll(end);
	else if (sim_one_in(2) && may_write(end))
		sim_end_send(end, sim_size(sim_world.born ? 400 : 65536), false);
	else if (may_read(end) && sim_one_in(end->lazy ? 20 : 1))
		sim_end_receive(end, sim_size(65536), false, receive_flags(end));
}

static void run_some_end(void)
{
	if (sim_world.conns)
		run_end(&sim_world.conn[sim_below(sim_world.conns)].end[sim_below(2)]);
}

/* With births few are open at a time. */
static bool may_open(int most)
{
	int open = 0;

	for (int i = 0; sim_world.born && i < sim_world.conns; i++)
		open += sim_world.conn[i].end[0].life != SIM_CLOSED ||
			sim_world.conn[i].end[1].life != SIM_CLOSED;
	return sim_world.born ? open < most && sim_world.conns < SIM_BORN_CONNS :
				sim_world.conns < most;
}

static void step(int most)
{
	uint64_t dice;

	sim_world_rung();
	if (sim_world.born && sim_one_in(2)) {
		sim_born_step();
		return;
	}
	dice = sim_below(1000);
	if (sim_world.dying)
		sim_clock += 100000;	/* channels rest for a few milliseconds */
	if (may_open(most) && dice < 100)
		open_connection();
	else if (dice < 650)
		run_some_end();
	else if (dice < 800)
		deliver_some();
	else if (dice < 880)
		poll_one(sim_below(2));
	else if (dice < 970)
		service(sim_below(2));
	else if (dice < 980)
		sim_clock += sim_size(sim_one_in(10) ? 2000000000 : 2000000);
	else if (dice < 990)
		fault();
	else if (dice == 990 || (dice > 994 && sim_world.dying))
		kill_link();
	else if (dice < 995)
		operator();
}

/* --- the end --- */

bool sim_play_finish(struct sim_end *end)
{
	uint64_t before = end->sent + end->received;
	bool ended = end->eof || end->error || end->shut_read;

	if (end->life == SIM_CLOSED)
		return false;
	if (end->life == SIM_UNBORN && sim_world.born && end->conn->established)
		return sim_born_wait(end);
	if (end->life == SIM_UNBORN) {
		if (end->conn->established)
			sim_end_open(end);
		else if (sim_end_peer(end)->life == SIM_CLOSED)
			end->life = SIM_CLOSED;	/* nobody ever came */
		return true;
	}
	if (sim_born_is_through(end)) {
		sim_end_close(end);
		return true;
	}
	if (end->style == SIM_EPOLL) {
		/* Calls that it may still make are tried below; a one-shot registration is renewed either way. */
		if (end->spent)
			sim_watch_rearm(end);
		sim_watch_wait(end->which);
	} else if (end->style == SIM_POLLS && !end->shut_write) {
		sim_end_poll(end);
	}
	if (may_write(end) && end->style != SIM_POLLS)
		sim_end_send(end, 65536, false);
	if (may_read(end) && (end->style != SIM_POLLS || end->shut_write))
		sim_end_receive(end, 65536, false, 0);
	if ((end->sent == end->goal || end->error) && !end->shut_write && end->conn->established &&
	    !ended && !end->brief) {
		sim_end_shutdown(end, SHUT_WR);
		return true;
	}
	if (ended && (end->sent == end->goal || end->error || end->shut_write)) {
		sim_end_close(end);
		return true;
	}
	return end->sent + end->received != before;
}

bool sim_play_advance(void)
{
	bool moved = deliver_all();

	for (int which = 0; which < 2; which++) {
		service(which);
		moved |= poll_one(which);
	}
	sim_world_rung();
	sim_world_tokens();
	sim_clock += 1000000;
	sim_step++;
	sim_trust_step();
	note_failovers();
	return moved;
}

/* Most waits only look; a few last, while the world goes on. */
struct timespec sim_patience(void)
{
	return (struct timespec) { 0, sim_one_in(16) ? sim_size(200000) : 0 };
}

void sim_idle(void)
{
	sim_play_advance();
}

static bool all_closed(void)
{
	for (int i = 0; i < sim_world.conns; i++)
		for (int side = 0; side < 2; side++)
			if (sim_world.conn[i].end[side].life != SIM_CLOSED)
				return false;
	return true;
}

static void force_close(void)
{
	for (int i = 0; i < sim_world.conns; i++)
		for (int side = 0; side < 2; side++)
			while (sim_world.conn[i].end[side].life == SIM_OPEN)
				sim_end_close(&sim_world.conn[i].end[side]);
}

static bool any_link(bool (*is)(const struct shunt_link *))
{
	for (int i = 0; i < 2; i++) {
		struct shunt_service *one = sim_world.engine[i]->service;

		for (struct shunt_link *link = one ? one->links : NULL; link; link = link->next)
			if (is(link))
				return true;
	}
	return false;
}

static bool speaks(const struct shunt_link *link)
{
	return shunt_channel_waits(&link->channel);
}

static bool lives(const struct shunt_link *link)
{
	return link->seated || speaks(link);
}

static void finish(void)
{
	int patience = sim_world.silent ? 2500 : 400;	/* ms: bytes may be gathered for 200 (MSG_MORE) */
	int idle = 0;

	while (!all_closed() && idle < patience) {
		bool moved = sim_play_advance();

		for (int i = 0; i < sim_world.conns; i++)
			for (int side = 0; side < 2; side++)
				moved |= sim_play_finish(&sim_world.conn[i].end[side]);
		idle = moved ? 0 : idle + 1;
	}
	if (!all_closed() && !sim_world.killed)
		sim_fail("nothing moves any more, but not all is done");
	force_close();
	for (idle = 0; idle < 8; idle++)
		if (sim_play_advance())
			idle = 0;
	sim_clock += 70000000000ull;	/* every patience ends */
	for (idle = 0; idle < 100 && (idle < 8 || any_link(lives)); idle++) {
		sim_clock += 50000000;
		sim_play_advance();
	}
	/* Empty memory is kept for up to two seconds; a queue pair may be found dead meanwhile, and its failover begin. */
	for (idle = 0; idle < 100 && (idle < 3 || any_link(speaks)); idle++) {
		sim_clock += 1000000000;
		sim_play_advance();
	}
}

void sim_play(void)
{
	int most = sim_between(1, SIM_CONNS);
	uint64_t steps = sim_size(sim_world.dying ? 3000 : 600) + 50;

	if (sim_world.born)
		steps += 3000;
	for (sim_step = 0; sim_step < steps; sim_step++)
		step(most), sim_trust_serve(), sim_trust_step(), note_failovers(),
			sim_world_tokens();
	if (!sim_world.silent)
		end_faults();
	while (!sim_world.conns)
		open_connection();
	finish();
	sim_count(sim_world.broken, atomic_load(&sim_world.engine[0]->returns) + atomic_load(&sim_world.engine[1]->returns),
		  sim_world.again, sim_trust_proven(), sim_born_count());
	sim_count_hands(sim_world.handed, sim_world.handed_on);
	sim_born_bury();
	sim_world_check();
}
