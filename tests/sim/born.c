/* SPDX-License-Identifier: MIT */
#include "tests/sim/born.h"
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include "core/api.h"
#include "core/leave.h"
#include "core/service.h"
#include "core/wait/epset.h"
#include "core/wait/poll.h"
#include "tests/inspect.h"
#include "tests/sim/sim.h"
#include "tests/sim/trust.h"
#include "tests/sim/witness.h"

#define OPEN_AT_ONCE 5
#define LEAVING 10000 /* turns that a process may take to leave its links */

static struct listening {
	enum sim_style style;
	uint32_t events;
	bool spent; /* EPOLLONESHOT has fired */
	bool may;   /* SIM_EPOLL: reported, not yet exhausted */
} listening[2];

static struct {
	bool plain; /* engines keep what they need to keep connections */
	bool kills, leaves, closes;
} plan;

static struct sim_sock tomb[2]; /* what the numbers of a process that was killed lead to */

/* --- choosing --- */

void sim_born_choose(uint64_t seed)
{
	uint64_t x = (seed ^ 0x5851f42d4c957f2dull) * 0x9e3779b97f4a7c15ull;

	x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9ull;
	x ^= x >> 27;
	sim_world.born = (x % 5 == 0 && !sim_avoids("born")) || getenv("SIM_BORN");
	plan.plain = x >> 20 & 7;
	plan.kills = x >> 8 & 1 && x >> 9 & 1 && !sim_trust_chosen();
	plan.leaves = !(x >> 12 & 7);
	plan.closes = x >> 16 & 1;
	memset(listening, 0, sizeof(listening));
}

void sim_born_config(struct shunt_config *config)
{
	config->born = sim_world.born && !sim_one_in(16);
	if (!sim_world.born)
		return;
	/* Where nothing is kept for a queue pair that dies, the kernel's end may come before all that a stalled device has. */
	sim_world.faulty = false;
	if (!plan.plain)
		return;
	sim_world.nonces = false;
	config->retain = config->proof = 0;
	config->mock = config->slow_ms = 0;
	config->qos_rules[0] = 0;
	config->flip_bytes = 0;
	config->ring_max = config->ring_min;
}

/* --- who listens --- */

static struct shunt_engine *engine_of(int which)
{
	return sim_world.engine[which];
}

static bool listens(int which)
{
	return sim_world.listener_fd[which] >= 0;
}

static bool takes(int which)
{
	return listens(which) && !sim_world.dead[which];
}

static void control(int which, int op)
{
	struct listening *l = &listening[which];
	struct epoll_event event = { .data.ptr = l };
	int result;

	l->events = EPOLLIN | (sim_one_in(2) ? EPOLLET : 0) | (sim_one_in(4) ? EPOLLONESHOT : 0);
	l->spent = l->may = false;
	event.events = l->events;
	result = shunt_epset_ctl(engine_of(which), sim_world.epfd[which], op,
				 sim_world.listener_fd[which], &event);
	trace("engine %d: epoll_ctl %d of the listener for %x: %d", which, op, l->events, result);
	if (result)
		sim_fail("epoll_ctl of a listener fails with error %d", -result);
}

void sim_born_listen(int which)
{
	if (!sim_world.born)
		return;
	sim_world.listener[which].listens = true;
	listening[which].style = sim_below(SIM_STYLES);
	if (listening[which].style == SIM_EPOLL)
		control(which, EPOLL_CTL_ADD);
}

int sim_born_listeners(void)
{
	return listens(0) + listens(1);
}

void sim_born_queued(struct sim_conn *conn)
{
	struct sim_sock *listener = &sim_world.listener[conn->end[1].which];

	if (!sim_world.born)
		return;
	listener->queued++;
	sim_epoll_wake(listener->items, EPOLLIN | EPOLLRDNORM);
}

static bool is_awaited(const struct sim_conn *conn, int which)
{
	return conn->established && conn->end[1].life == SIM_UNBORN && conn->end[1].which == which;
}

static struct sim_conn *first_queued(int which)
{
	for (int i = 0; i < sim_world.conns; i++)
		if (is_awaited(&sim_world.conn[i], which) && !sim_world.conn[i].born)
			return &sim_world.conn[i];
	return NULL;
}

static struct sim_conn *conn_of(const struct sim_sock *sock, int side)
{
	for (int i = 0; i < sim_world.conns; i++)
		if (&sim_world.conn[i].sock[side] == sock)
			return &sim_world.conn[i];
	return NULL;
}

/* A socket of a spare has the options of a new one. */
static void check_new(struct sim_end *end, int nodelay)
{
	socklen_t length = sizeof(int);
	int value = -1;

	if (sim_end_stream(end))
		shunt_spare_option_shows(sim_end_stream(end), IPPROTO_TCP, TCP_NODELAY);
	if (sim_sys.getsockopt(end->fd, IPPROTO_TCP, TCP_NODELAY, &value, &length) ||
	    value != nodelay)
		sim_fail("a new socket has TCP_NODELAY %d, not %d", value, nodelay);
}

static void set_nodelay(struct sim_end *end, int value)
{
	struct shunt_stream *stream = sim_end_stream(end);

	if (stream)
		shunt_spare_option_changes(stream, IPPROTO_TCP, TCP_NODELAY);
	sim_sys.setsockopt(end->fd, IPPROTO_TCP, TCP_NODELAY, &value, sizeof(value));
}

static void begin(struct sim_end *end)
{
	end->life = SIM_OPEN;
	end->twin = -1;
	if (end->style == SIM_EPOLL)
		sim_watch_add(end);
}

/* accept() has made this number of a spare. */
static void adopt(int which, int fd, const struct sockaddr_in *from)
{
	struct sim_conn *conn = conn_of(sim_sock_of[fd], 1);
	struct sim_end *end = conn ? &conn->end[1] : NULL;

	if (!conn || !conn->born || end->which != which ||
	    !(end->life == SIM_UNBORN || conn->lost)) {
		sim_fail("engine %d accepts what nobody has connected", which);
		return;
	}
	if (from->sin_port != conn->sock[1].remote.sin_port)
		sim_fail("accept() names another peer");
	conn->lost = false;
	end->fd = fd;
	trace("connection %d acceptor: accepted as a birth, fd %d",
	      (int)(conn - sim_world.conn), fd);
	check_new(end, 0);
	begin(end);
	if (sim_one_in(4))
		set_nodelay(end, 1);
}

static int accept_birth(int which, bool again)
{
	struct shunt_engine *engine = engine_of(which);
	struct shunt_stream *listener =
		(struct shunt_stream *)shunt_file(engine, sim_world.listener_fd[which]);
	union {
		struct sockaddr_storage any;
		struct sockaddr_in v4;
	} from = { 0 };
	int fd = shunt_born_accept(engine, listener, again, sim_one_in(2) ? SOCK_NONBLOCK : 0,
				   &from.any);

	if (fd >= 0)
		adopt(which, fd, &from.v4);
	else if (fd != -EAGAIN)
		sim_fail("accept() of a birth fails with error %d", -fd);
	return fd;
}

/* As preload/accept.c. False: there was none. */
static bool accept_one(int which)
{
	struct sim_conn *conn;

	if (accept_birth(which, false) >= 0)
		return true;
	conn = first_queued(which);
	if (conn) {
		sim_world.listener[which].queued--;
		sim_end_open(&conn->end[1]);
		return true;
	}
	return accept_birth(which, true) >= 0;
}

/* True: it got somewhere. */
static bool accept_told(int which, bool must)
{
	struct listening *l = &listening[which];
	bool some = accept_one(which);

	if (!some)
		l->may = false;
	if (!some && must && !sim_world.killed)
		sim_fail("the listener is readable, and nothing is accepted");
	return some;
}

bool sim_born_told(int which, const void *data, uint32_t events)
{
	struct listening *l = &listening[which];

	if (data != l)
		return false;
	trace("engine %d: epoll reports %x for the listener", which, events);
	if (!listens(which) || events & ~EPOLLIN || l->spent)
		sim_fail("epoll reports %x for a listener", events);
	l->spent = l->events & EPOLLONESHOT;
	l->may = true;
	accept_told(which, true);
	if (!(l->events & (EPOLLET | EPOLLONESHOT)))
		l->may = false;
	return true;
}

static bool poll_listener(int which)
{
	struct pollfd fd = { .fd = sim_world.listener_fd[which], .events = POLLIN };
	struct timespec patience = sim_patience();
	int n = shunt_wait_poll(engine_of(which), &fd, 1, &patience, NULL);

	trace("engine %d: poll of the listener: %d, %x", which, n, fd.revents);
	if (n < 0 || n != (fd.revents != 0) || fd.revents & ~POLLIN)
		sim_fail("poll of a listener returns %d with %x", n, fd.revents);
	if (n)
		return accept_told(which, true);
	if (sim_one_in(2) && accept_one(which))
		sim_fail("the listener is not readable, and accepts");
	return false;
}

static bool serve(int which)
{
	struct listening *l = &listening[which];

	if (!listens(which) || sim_world.dead[which])
		return false;
	if (l->style == SIM_BLIND)
		return accept_one(which);
	if (l->style == SIM_POLLS)
		return poll_listener(which);
	if (l->may && accept_told(which, false))
		return true;
	if (l->spent || sim_one_in(20))
		control(which, EPOLL_CTL_MOD);
	sim_watch_wait(which);
	return false;
}

bool sim_born_wait(struct sim_end *end)
{
	struct sim_conn *conn = end->conn;
	bool gone = conn->end[0].life == SIM_CLOSED && (sim_world.killed || conn->reset_ok);
	bool some = serve(end->which);

	if (end->life == SIM_UNBORN && gone && !some) {	/* its peer need not hear of it any more */
		conn->lost = true;
		end->life = SIM_CLOSED;
	}
	return some;
}

/* --- who connects --- */

static void deliver_all(void)
{
	for (int i = 0; i < sim_world.conns; i++)
		for (int side = 0; side < 2; side++)
			while (sim_tcp_deliver(&sim_world.conn[i].sock[side], UINT64_MAX))
				;
}

void sim_born_plan(struct sim_conn *conn)
{
	for (int side = 0; side < 2; side++) {
		struct sim_end *end = &conn->end[side];

		end->goal = sim_between(300, 4000);
		end->brief = !sim_one_in(8);
		end->drops = sim_one_in(16);
		end->lazy = sim_one_in(16);
	}
}

/* Of a spare: it is on the link from its first byte. */
static void plan_born(struct sim_conn *conn)
{
	for (int side = 0; side < 2; side++)
		conn->end[side].goal = sim_one_in(4) ? 0 : sim_size(6000);
}

static void name_target(const struct sim_conn *conn, struct sockaddr_in *target)
{
	*target = (struct sockaddr_in) { .sin_family = AF_INET,
					 .sin_addr = sim_world.address,
					 .sin_port = htons(7000 + conn->end[1].which) };
}

/* A socket that is not connected. */
static void make_fresh(struct sim_conn *conn)
{
	for (int side = 0; side < 2; side++)
		conn->sock[side] = (struct sim_sock) { .state = SIM_TCP_CLOSED,
						       .peer = &conn->sock[!side],
						       .options = SIM_OPTIONS_FIRST,
						       .local.sin_family = AF_INET };
}

/* connect() has put a spare under the number. */
static void take(struct sim_conn *conn)
{
	struct sim_end *end = &conn->end[0];
	struct sim_sock *sock = sim_sock_of[end->fd], *own = conn->sock;
	struct sim_conn *old = conn_of(sock, 0);

	if (!old || old == conn) {
		sim_fail("connect() takes the place of a socket that nobody has left");
		return;
	}
	if (old->end[0].life != SIM_CLOSED || old->end[1].life != SIM_CLOSED)
		sim_fail("connect() takes a connection that is in use");
	if (old->end[0].which != end->which || old->end[1].which != conn->end[1].which)
		sim_fail("connect() takes a connection to another address");
	if (!takes(conn->end[1].which))
		sim_fail("connect() to a listener that is closed");
	conn->sock = old->sock;
	old->sock = own;
	conn->born = conn->established = true;
	plan_born(conn);
}

/* A second connect() tells of a first that did not wait, and others that it is connected. */
static void connect_more(struct sim_conn *conn, bool told)
{
	struct sockaddr_in target;
	int result = 1;

	name_target(conn, &target);
	for (int i = 0; i < 2; i++, told = true)
		if (shunt_born_connect(engine_of(conn->end[0].which), conn->end[0].fd,
				       (struct sockaddr *)&target, sizeof(target), &result) == told)
			sim_fail("connect() once more: %d", result);
	if (result)
		sim_fail("a second connect(): error %d", -result);
}

static bool connect_born(struct sim_conn *conn, bool nonblocking, int nodelay)
{
	struct shunt_engine *engine = engine_of(conn->end[0].which);
	struct sim_end *end = &conn->end[0];
	struct sockaddr_in target;
	int result = 1;

	name_target(conn, &target);
	if (!takes(conn->end[1].which))
		deliver_all();	/* on one host the kernel's ends are at their peers at once */
	if (!shunt_born_any(engine) ||
	    !shunt_born_connect(engine, end->fd, (struct sockaddr *)&target, sizeof(target),
				&result))
		return false;
	take(conn);
	trace("connection %d connector: born, fd %d: %d", (int)(conn - sim_world.conn), end->fd,
	      result);
	if (result != (nonblocking ? -EINPROGRESS : 0))
		sim_fail("connect() returns %d", result);
	check_new(end, nodelay);
	if (nonblocking && sim_one_in(4))
		connect_more(conn, false);
	return true;
}

static void give_up(struct sim_conn *conn)
{
	shunt_file_closing(engine_of(conn->end[0].which), conn->end[0].fd);
	sim_fd_close(conn->end[0].fd);
	conn->end[0].life = conn->end[1].life = SIM_CLOSED;
	trace("connection %d: refused", (int)(conn - sim_world.conn));
}

static void connect_kernel(struct sim_conn *conn, uint8_t *rings[2])
{
	struct sim_end *end = &conn->end[0];
	int nodelay = conn->sock[0].nodelay;

	sim_tcp_pair(conn->sock, rings, sim_world.address, 7000 + conn->end[1].which,
		     20000 + sim_world.conns);
	conn->sock[0].refs = 1;
	conn->sock[0].nodelay = nodelay;
	if (sim_one_in(2)) {
		sim_tcp_establish(&conn->sock[0]);
		conn->established = true;
		sim_born_queued(conn);
	}
	shunt_file_connected(engine_of(end->which), end->fd, conn->established ? 0 : -EINPROGRESS,
			     (struct sockaddr *)&conn->sock[0].remote, sizeof(struct sockaddr_in));
	stream_start_at(sim_end_stream(end), sim_world.start[0], sim_world.start[1]);
	trace("connection %d connector: open, fd %d", (int)(conn - sim_world.conn), end->fd);
}

void sim_born_open(struct sim_conn *conn, uint8_t *rings[2])
{
	struct sim_end *end = &conn->end[0];
	bool nonblocking = sim_one_in(2), nodelay = sim_one_in(4);

	if (sim_world.dead[end->which]) {
		conn->end[0].life = conn->end[1].life = SIM_CLOSED;
		make_fresh(conn);
		return;
	}
	make_fresh(conn);
	end->fd = sim_fd_sock(&conn->sock[0]);
	shunt_file_socket(engine_of(end->which), end->fd, nonblocking);
	if (nodelay)
		set_nodelay(end, 1);
	if (!connect_born(conn, nonblocking, nodelay)) {
		if (!takes(conn->end[1].which)) {
			give_up(conn);
			return;
		}
		connect_kernel(conn, rings);
	}
	begin(end);
}

/* --- ends --- */

bool sim_born_is_through(const struct sim_end *end)
{
	const struct sim_end *peer = &end->conn->end[!end->side];
	bool ended = end->eof || end->error;

	if (!end->brief || end->shut_write || !end->conn->established ||
	    (end->sent < end->goal && !end->error))
		return false;
	return ended || (end->received == peer->goal &&
			 (peer->received == end->sent || sim_one_in(8)));
}

/* One that lives, most likely. */
static struct sim_end *some_end(void)
{
	struct sim_end *end = NULL;

	for (int i = 0; i < 8 && (!end || end->life != SIM_OPEN); i++)
		end = &sim_world.conn[sim_below((uint64_t)sim_world.conns)].end[sim_below(2)];
	return end;
}

static void finish_some(void)
{
	struct sim_end *end = sim_world.conns ? some_end() : NULL;

	if (end && end->life == SIM_OPEN)
		sim_play_finish(end);
}

/* --- what goes wrong --- */

/* The kernel resets connections that were not accepted. */
static void refuse_waiting(int which)
{
	for (int i = 0; i < sim_world.conns; i++) {
		struct sim_conn *conn = &sim_world.conn[i];

		if (conn->end[1].which != which || conn->end[1].life != SIM_UNBORN)
			continue;
		conn->end[1].life = SIM_CLOSED;
		conn->reset_ok = true;
		if (conn->born)
			continue;
		if (!conn->established)
			sim_tcp_establish(&conn->sock[0]);
		conn->established = true;
		sim_tcp_abort(&conn->sock[1]);
	}
	sim_world.listener[which].queued = 0;
}

static void close_listener(int which)
{
	trace("engine %d: the listener is closed", which);
	shunt_file_closing(engine_of(which), sim_world.listener_fd[which]);
	sim_fd_close(sim_world.listener_fd[which]);
	sim_world.listener_fd[which] = -2;
	refuse_waiting(which);
}

static void open_listener(int which)
{
	struct sim_sock *listener = &sim_world.listener[which];
	int fd = sim_fd_sock(listener);

	trace("engine %d: a listener again, fd %d", which, fd);
	listener->queued = 0;
	sim_world.listener_fd[which] = fd;
	shunt_file_socket(engine_of(which), fd, true);
	shunt_file_listening(engine_of(which), fd);
	sim_born_listen(which);
}

/* Its sockets are closed, and its channels. Numbers stay taken until the seed is over. */
static void kill_process(int which)
{
	struct sim_world *world = &sim_world;
	struct shunt_engine *engine = engine_of(which);

	trace("process %d is killed", which);
	world->killed = world->dead[which] = true;
	tomb[which] = (struct sim_sock) { .state = SIM_TCP_CLOSED, .peer = &tomb[which] };
	for (struct shunt_link *link = engine->service ? engine->service->links : NULL; link;
	     link = link->next)
		if (link->channel.fd >= 0)
			shutdown(link->channel.fd, SHUT_RDWR);
	for (struct shunt_rendezvous *r = engine->rendezvous; r; r = r->next)
		if (r->fd >= 0)
			shutdown(r->fd, SHUT_RDWR);
	refuse_waiting(which);
	for (int i = 0; i < world->conns; i++)
		for (int side = 0; side < 2; side++)
			if (world->conn[i].end[side].which == which) {
				if (world->conn[i].end[side].life == SIM_OPEN)
					world->conn[i].reset_ok = true;
				if (!side || world->conn[i].end[side].life != SIM_UNBORN)
					world->conn[i].end[side].life = SIM_CLOSED;
			}
	for (int fd = SIM_FIRST; fd < SIM_FDS; fd++) {
		struct sim_sock *sock = sim_sock_of[fd];
		struct sim_conn *conn = sock ? conn_of(sock, 0) : NULL;
		int side = !conn;

		if (sock && !conn)
			conn = conn_of(sock, 1);
		if ((conn && conn->end[side].which == which) || sock == &world->listener[which])
			sim_fd_lead_to(fd, &tomb[which]);
	}
	world->listener[which].listens = false;
}

/* The process confines itself, or changes its user: nothing of it may be outside meanwhile (core/leave.c). */
static void *end_at_once(void *arg)
{
	return arg;
}

static void leave(int which)
{
	struct shunt_engine *engine = engine_of(which);
	struct shunt_service *service = engine->service;

	if (!service || service->ended)
		return;
	trace("engine %d leaves its links", which);
	sim_world.killed = true;	/* what cannot come back in time is reset */
	shunt_spares_end(engine, NULL);
	atomic_store(&service->leaving, true);
	for (int i = 0; i < LEAVING && !atomic_load(&service->stopping); i++)
		sim_play_advance();
	if (!atomic_load(&service->stopping))
		sim_fail("a process cannot leave its links");
	service->threaded = true;
	if (pthread_create(&service->thread, NULL, end_at_once, NULL))
		sim_fail("no thread");
	shunt_engine_leave(engine, false);
	if (shunt_engine_left(engine))
		shunt_engine_begin_anew(engine);
	trace("engine %d has left its links", which);
}

static void trouble(void)
{
	int which = sim_below(2);

	if (sim_world.dead[which])
		return;
	if (plan.closes && sim_one_in(3)) {
		if (listens(which))
			close_listener(which);
		else
			open_listener(which);
	} else if (plan.leaves && sim_one_in(6)) {
		leave(which);
	} else if (plan.kills && sim_one_in(12)) {
		kill_process(which);
	}
}

void sim_born_step(void)
{
	uint64_t dice = sim_below(400);

	if (dice < 100)
		serve(sim_below(2));
	else if (dice < 399)
		finish_some();
	else
		trouble();
}

/* --- after the seed --- */

uint64_t sim_born_count(void)
{
	uint64_t count = 0;

	for (int which = 0; which < 2; which++)
		count += atomic_load(&engine_of(which)->spares.accepted);
	return count;
}

static bool is_the_programs(struct shunt_engine *engine, int fd)
{
	const struct shunt_file *file = shunt_file(engine, fd);

	return file && file->kind == SHUNT_FILE_STREAM;
}

static void bury(int which)
{
	struct shunt_engine *engine = engine_of(which);

	for (int fd = SIM_FIRST; fd < SIM_FDS; fd++)
		if (sim_sock_of[fd] == &tomb[which] && is_the_programs(engine, fd)) {
			shunt_file_closing(engine, fd);
			sim_fd_close(fd);
		}
	sim_world.listener_fd[which] = -2;
	sim_world.dead[which] = false;
	for (int i = 0; i < 8; i++)
		sim_play_advance();
	for (int fd = SIM_FIRST; fd < SIM_FDS; fd++)
		if (sim_sock_of[fd] == &tomb[which])
			sim_fd_close(fd);
	sim_world.dead[which] = true;
}

void sim_born_bury(void)
{
	for (int which = 0; which < 2; which++)
		if (sim_world.dead[which])
			bury(which);
}
