/* SPDX-License-Identifier: MIT */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <stdarg.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <unistd.h>
#include "core/device/device.h"
#include "core/peer/link_end.h"
#include "core/peer/link_make.h"
#include "core/peer/witness.h"
#include "core/poll/devices.h"
#include "core/service.h"
#include "core/wait/epset.h"
#include "tests/fuzz/world.h"
#include "tests/inspect.h"
#include "tests/sim/random.h"
#include "tests/sim/sim.h"
#include "tests/sim/start.h"
#include "tests/sim/witness.h"

#define PATIENCE 100000000	/* ns that pass while somebody waits: nobody waits long */
#define LOOK 10000		/* ns between two looks at the clock */
#define LOOKS 90000		/* with one input: more is a wait that does not sleep */

struct fuzz_world fuzz_world;
ssize_t (*fuzz_world_sendmsg)(int fd, const struct msghdr *message, int flags);

/* Needed by tests/sim/sys.c. */
bool sim_verbose;
uint64_t sim_step;

static struct shunt_device_kind device;	/* the soft one with few streams: a link is soon made */
static struct shunt_sys sys, hostile_sys;
static bool is_service[SIM_FDS];	/* an epoll of a service thread's: what is real in it the kernel looks at, all at once */
static bool making;
static struct sim_sock listeners[FUZZ_ENGINES];
static int listener_fds[FUZZ_ENGINES];
static struct sim_sock fresh[2];	/* what has not connected yet */
static uint8_t pipes[FUZZ_CONNS + 2][2][SIM_PIPE_BYTES];
static uint16_t next_port;
static int scripted, real;	/* descriptors in use when the world is clean; -1: they may become more */
static uint64_t distrusted, lines, looks;

void sim_trace(const char *format, ...)
{
	(void)format;
}

/* --- surroundings: the simulator's, made fast --- */

/* The clock moves, so that polling for a time ends. */
static uint64_t sys_now(void)
{
	fuzz_check(++looks < LOOKS);
	return sim_clock += LOOK;
}

static int sys_epoll_create1(int flags)
{
	int fd = epoll_create1(flags);

	if (fd >= 0 && making)
		is_service[fd] = true;
	return fd;
}

static int sys_fcntl(int fd, int command, ...)
{
	va_list args;
	int argument, made;

	va_start(args, command);
	argument = va_arg(args, int);
	va_end(args);
	made = sim_sys.fcntl(fd, command, argument);
	if (made >= 0 && command == F_DUPFD_CLOEXEC && fd < SIM_FIRST && is_service[fd])
		is_service[made] = true;
	return made;
}

static int sys_epoll_ctl(int epfd, int op, int fd, struct epoll_event *event)
{
	if (epfd < SIM_FIRST && is_service[epfd] && fd >= 0 && fd < SIM_FIRST && !sim_sock_of[fd])
		return epoll_ctl(epfd, op, fd, event);
	return sim_sys.epoll_ctl(epfd, op, fd, event);
}

static int sys_epoll_pwait(int epfd, struct epoll_event *events, int max, int timeout_ms, const sigset_t *mask)
{
	int n = sim_sys.epoll_pwait(epfd, events, max, timeout_ms, mask), more;

	if (epfd >= SIM_FIRST || !is_service[epfd] || n >= max)
		return n;
	more = epoll_wait(epfd, events + n, max - n, 0);
	return n + (more > 0 ? more : 0);
}

/* --- making it --- */

/* The linker sends the engines here (local.mk). */
struct shunt_link *__real_shunt_link_create(struct shunt_engine *engine,
					    struct shunt_channel *channel, bool initiator,
					    enum shunt_cause *cause);
struct shunt_link *__wrap_shunt_link_create(struct shunt_engine *engine,
					    struct shunt_channel *channel, bool initiator,
					    enum shunt_cause *cause);

struct shunt_link *__wrap_shunt_link_create(struct shunt_engine *engine,
					    struct shunt_channel *channel, bool initiator,
					    enum shunt_cause *cause)
{
	fuzz_world.links += engine == fuzz_world.engine[FUZZ_VICTIM];
	return __real_shunt_link_create(engine, channel, initiator, cause);
}

static ssize_t count_line(int fd, const void *text, size_t bytes)
{
	(void)fd;
	lines += memmem(text, bytes, "broken off", 10) != NULL;
	return bytes;
}

static const struct shunt_log_calls counting = { .write = count_line };

/* The engines' descriptors are private ones, which are high. A low one would be lost on the way there. */
static int open_descriptors(void)
{
	struct pollfd fds[128];
	int closed = 0;

	for (int i = 0; i < 128; i++)
		fds[i] = (struct pollfd){ .fd = i < 32 ? i : SIM_FDS / 2 + i - 32 };
	poll(fds, 128, 0);
	for (int i = 0; i < 128; i++)
		closed += fds[i].revents == POLLNVAL;
	return 128 - closed;
}

static void configure(struct shunt_config *config)
{
	shunt_config_defaults(config);
	config->born = SHUNT_BORN_OFF;
	config->log_level = SHUNT_LOG_NONE;
	config->seed = 1;
	config->arena_bytes = 16 << 20;
	config->mr_bytes = 1 << 19;
	config->ring_min = 4096;
	config->ring_max = 32768;
	config->rq_depth = config->sq_depth = 64;
	config->signal_every = 4;
	config->spin_us = 0;
	config->poll = 2;
	config->claim_ms = 100;
	config->refused_ms = 0;
	config->dead_ms = 100;
}

static void make_engine(enum fuzz_who who, struct in_addr address)
{
	struct shunt_config config;
	struct shunt_engine *engine;
	struct sim_sock *listener = &listeners[who];
	int fd;

	configure(&config);
	engine = shunt_engine_create(&config, who == FUZZ_HOSTILE ? &hostile_sys : &sys);
	fuzz_check(engine);
	engine->fds.files->limit = SIM_FDS;
	engine->loop.manual = true;
	fuzz_world.engine[who] = engine;
	fuzz_check(shunt_devices_open(&engine->group, SHUNT_SOFT));
	engine->group.devices[SHUNT_SOFT].kind = &device;
	*listener = (struct sim_sock) { .state = SIM_TCP_CLOSED, .peer = listener };
	listener->local = (struct sockaddr_in) { .sin_family = AF_INET, .sin_addr = address, .sin_port = htons(7000 + who) };
	listener_fds[who] = fd = sim_fd_sock(listener);
	listener->listens = true;
	shunt_file_socket(engine, fd, true);
	shunt_file_listening(engine, fd);
	fuzz_check(engine->service);
}

static bool on_link(struct fuzz_conn *conn)
{
	for (int side = 0; side < 2; side++) {
		struct shunt_stream *stream = fuzz_world_stream(conn, conn->who[side]);

		if (!stream || !stream_is_on_link(stream))
			return false;
	}
	return true;
}

static void make_honest(struct fuzz_conn *conn)
{
	fuzz_check(fuzz_world_connect(FUZZ_HONEST, FUZZ_VICTIM) == conn);
	for (int i = 0; !on_link(conn); i++) {
		fuzz_check(i < 100);
		fuzz_world_honest(1);
	}
}

static void make(void)
{
	struct rlimit limit;
	struct in_addr address = { htonl(127u << 24 | (getpid() & 0xffffff)) };

	getrlimit(RLIMIT_NOFILE, &limit);
	limit.rlim_cur = limit.rlim_cur < SIM_FDS && limit.rlim_max >= SIM_FDS ? SIM_FDS : limit.rlim_cur;
	setrlimit(RLIMIT_NOFILE, &limit);
	device = shunt_device_soft;
	device.streams = 64;	/* half of them give way to a guard page */
	sys = sim_sys;
	sys.now = sys_now;
	sys.epoll_create1 = sys_epoll_create1;
	sys.fcntl = sys_fcntl;
	sys.epoll_ctl = sys_epoll_ctl;
	sys.epoll_pwait = sys_epoll_pwait;
	hostile_sys = sys;
	sim_random_state = 1;
	sim_numbers = 0;
	sim_clock = 1000000000;
	sim_fd_begin();
	making = true;
	for (enum fuzz_who who = 0; who < FUZZ_ENGINES; who++)
		make_engine(who, address);
	making = false;
	fuzz_world.epfd = sim_fd_ep();
	shunt_file_epoll(fuzz_world.engine[FUZZ_VICTIM], fuzz_world.epfd);
	make_honest(&fuzz_world.honest[0]);
	make_honest(&fuzz_world.honest[1]);
	for (int i = 0; i < 4; i++)
		fuzz_world_turn();
}

void fuzz_world_grows(void)
{
	real = -1;
}

/* Somebody sleeps, for which there are descriptors that stay. */
static void sleep_once(struct fuzz_conn *conn, enum fuzz_who who)
{
	struct pollfd fd = { .fd = conn->fd[fuzz_world_side(conn, who)], .events = POLLIN };
	struct timespec patience = { 0, 1000000 };
	uint8_t bytes[100];

	while (fuzz_world_receive(conn, fuzz_world_side(conn, who), bytes, sizeof(bytes), 0) > 0)
		;
	fuzz_check(shunt_wait_poll(fuzz_world.engine[who], &fd, 1, &patience, NULL) == 0);
}

void fuzz_world_witness(enum fuzz_who who)
{
	shunt_witness_look(fuzz_world.engine[who]->service, NULL, &(struct shunt_sighting) { 0 },
			   0);
}

/* Makes the objects that are made at first need and stay, before any input does. */
static void warm_up(void)
{
	struct shunt_engine *victim = fuzz_world.engine[FUZZ_VICTIM];
	struct epoll_event event = { .events = EPOLLIN };
	struct timespec no_time = { 0, 0 };
	struct fuzz_conn *conn = fuzz_world_connect(FUZZ_HOSTILE, FUZZ_VICTIM);
	uint8_t bytes[100];

	for (int i = 0; !on_link(conn); i++) {
		fuzz_check(i < 100);
		for (int side = 0; side < 2; side++) {
			fuzz_world_send(conn, side, "x", 1, 0);
			fuzz_world_turn();
			fuzz_world_receive(conn, !side, bytes, sizeof(bytes), 0);
		}
	}
	sleep_once(conn, FUZZ_VICTIM);
	sleep_once(conn, FUZZ_HOSTILE);
	fuzz_check(!shunt_epset_ctl(victim, fuzz_world.epfd, EPOLL_CTL_ADD, conn->fd[1], &event));
	shunt_epset_wait(victim, fuzz_world.epfd, &event, 1, &no_time, NULL);
	for (enum fuzz_who who = 0; who < FUZZ_ENGINES; who++)
		fuzz_world_witness(who);
	fuzz_world_grows();
	fuzz_world_end();
}

struct shunt_sys *fuzz_world_sys(void)
{
	return &sys;
}

void fuzz_world_begin(void)
{
	if (!fuzz_world.engine[0]) {
		make();
		warm_up();
	}
	hostile_sys.sendmsg = fuzz_world_sendmsg ? fuzz_world_sendmsg : sys.sendmsg;
	sim_random_state = 1;
	for (int i = 0; i < FUZZ_ENGINES; i++)
		fuzz_world.engine[i]->random = 1;
	memset(fuzz_world.engine[FUZZ_VICTIM]->service->users, 0,
	       sizeof(fuzz_world.engine[FUZZ_VICTIM]->service->users));
	fuzz_world.engine[FUZZ_VICTIM]->service->doubts.count = 0;
	fuzz_world.conns = 0;
	fuzz_world.links = 0;
	fuzz_world.start = 0;
	fuzz_world.born = false;
	next_port = 20000;
	lines = looks = 0;
	distrusted = fuzz_world.engine[FUZZ_VICTIM]->links.distrusted;
	atomic_store(&fuzz_world.engine[FUZZ_HOSTILE]->links.distrusted, 0);
	scripted = sim_fd_count();
	real = open_descriptors();
	shunt_log_setup(SHUNT_LOG_WARN, NULL, &counting);	/* each input may have as many messages as a process */
}

/* --- connections --- */

int fuzz_world_side(const struct fuzz_conn *conn, enum fuzz_who who)
{
	return conn->who[1] == who;
}

struct fuzz_conn *fuzz_world_connect(enum fuzz_who from, enum fuzz_who to)
{
	struct fuzz_world *world = &fuzz_world;
	bool honest = from == FUZZ_HONEST;
	struct fuzz_conn *conn;
	uint8_t *rings[2];
	int slot;

	for (slot = 0; honest && slot < 2 && world->honest[slot].sock[0].peer; slot++)
		;
	if (honest ? slot == 2 : world->conns == FUZZ_CONNS)
		return NULL;
	conn = honest ? &world->honest[slot] : &world->conn[world->conns++];
	slot = honest ? FUZZ_CONNS + slot : world->conns - 1;
	memset(conn, 0, sizeof(*conn));
	rings[0] = pipes[slot][0];
	rings[1] = pipes[slot][1];
	sim_tcp_pair(conn->sock, rings, listeners[to].local.sin_addr, 7000 + to, honest ? 30000 + slot : next_port++);
	sim_tcp_establish(&conn->sock[0]);
	conn->who[0] = from;
	conn->who[1] = to;
	for (int side = 0; side < 2; side++)
		conn->fd[side] = sim_fd_sock(&conn->sock[side]);
	shunt_file_socket(world->engine[from], conn->fd[0], true);
	shunt_file_connected(world->engine[from], conn->fd[0], 0, (struct sockaddr *)&conn->sock[0].remote,
			     sizeof(conn->sock[0].remote));
	shunt_file_accepted(world->engine[to], world->born ? listener_fds[to] : -1, conn->fd[1],
			    true, 0);
	for (int side = 0; side < 2; side++)
		stream_start_at(fuzz_world_stream(conn, conn->who[side]), world->start,
				world->start);
	return conn;
}

struct shunt_stream *fuzz_world_stream(struct fuzz_conn *conn, enum fuzz_who who)
{
	int side = fuzz_world_side(conn, who);
	struct shunt_stream *stream = conn->fd[side] < 0 ? NULL :
				      (struct shunt_stream *)shunt_file(fuzz_world.engine[who], conn->fd[side]);

	return !stream || shunt_stream_is_plain(stream) ? NULL : stream;
}

ssize_t fuzz_world_send(struct fuzz_conn *conn, int side, const void *bytes, size_t count, int flags)
{
	struct shunt_stream *stream = fuzz_world_stream(conn, conn->who[side]);
	struct iovec iov = { (void *)bytes, count };

	if (conn->fd[side] < 0)
		return -EBADF;
	if (!stream)
		return sim_tcp_send(&conn->sock[side], &iov, 1);
	return shunt_stream_send(fuzz_world.engine[conn->who[side]], conn->fd[side], stream, &iov, 1,
				 flags | MSG_DONTWAIT | MSG_NOSIGNAL);
}

ssize_t fuzz_world_receive(struct fuzz_conn *conn, int side, void *bytes, size_t count, int flags)
{
	struct shunt_stream *stream = fuzz_world_stream(conn, conn->who[side]);
	struct iovec iov = { bytes, count };

	if (conn->fd[side] < 0)
		return -EBADF;
	if (!stream)
		return sim_tcp_receive(&conn->sock[side], &iov, 1, flags);
	return shunt_stream_recv(fuzz_world.engine[conn->who[side]], conn->fd[side], stream, &iov, 1, flags | MSG_DONTWAIT);
}

void fuzz_world_close(struct fuzz_conn *conn, int side)
{
	struct shunt_engine *engine = fuzz_world.engine[conn->who[side]];

	if (conn->fd[side] < 0)
		return;
	shunt_file_closing(engine, conn->fd[side]);
	fuzz_check(!shunt_file(engine, conn->fd[side]));
	sim_fd_close(conn->fd[side]);
	conn->fd[side] = -1;
}

int fuzz_world_born_connect(enum fuzz_who from, enum fuzz_who to)
{
	struct shunt_engine *engine = fuzz_world.engine[from];
	struct sockaddr_in target = listeners[to].local;
	int fd, result = 0;

	if (!shunt_born_any(engine))
		return -ENOENT;
	for (int side = 0; side < 2; side++)
		fresh[side] = (struct sim_sock) { .state = SIM_TCP_CLOSED,
						  .peer = &fresh[!side],
						  .options = SIM_OPTIONS_FIRST,
						  .local.sin_family = AF_INET };
	fd = sim_fd_sock(&fresh[0]);
	shunt_file_socket(engine, fd, true);
	if (shunt_born_connect(engine, fd, (struct sockaddr *)&target, sizeof(target), &result)) {
		fuzz_check(result == -EINPROGRESS);
		return fd;
	}
	shunt_file_closing(engine, fd);
	sim_fd_close(fd);
	return -ENOENT;
}

int fuzz_world_born_accept(enum fuzz_who who)
{
	struct shunt_engine *engine = fuzz_world.engine[who];

	return shunt_born_accept(engine,
				 (struct shunt_stream *)shunt_file(engine, listener_fds[who]), true,
				 SOCK_NONBLOCK, NULL);
}

/* --- time --- */

static void deliver(struct fuzz_conn *conn)
{
	for (int side = 0; side < 2; side++)
		while (sim_tcp_deliver(&conn->sock[side], UINT64_MAX))
			;
}

/* It waits in the midst of a step. */
static bool at_work(struct shunt_engine *engine)
{
	if (!shunt_lock_try(&engine->group.seats_lock))
		return true;
	shunt_lock_leave(&engine->group.seats_lock);
	return false;
}

/* A peer's messages do not say which process it is: the kernel does. */
static void check_names(void)
{
	struct shunt_link *link = fuzz_world.engine[FUZZ_VICTIM]->service->links;

	for (; link; link = link->next)
		fuzz_check(link->channel.kind != SHUNT_CHANNEL_UNIX || link->channel.fd < 0 ||
			   link->peer_pid == (uint32_t)getpid());
}

void fuzz_world_turn(void)
{
	for (int i = 0; i < 2; i++)
		if (fuzz_world.honest[i].sock[0].peer)
			deliver(&fuzz_world.honest[i]);
	for (int i = 0; i < fuzz_world.conns; i++)
		deliver(&fuzz_world.conn[i]);
	for (enum fuzz_who i = 0; i < FUZZ_ENGINES; i++) {
		if (fuzz_world.raw && i == FUZZ_HOSTILE)
			continue;
		if (!at_work(fuzz_world.engine[i]))
			shunt_service_step(fuzz_world.engine[i], 0);
		shunt_group_poll(&fuzz_world.engine[i]->group);
	}
	check_names();
}

/* Somebody waits. */
void sim_idle(void)
{
	sim_clock += PATIENCE;
	fuzz_world_turn();
}

static uint8_t byte_at(uint64_t offset, int salt)
{
	return offset * 131 + (offset >> 8) * 7 + salt;
}

static void honest_receive(struct fuzz_conn *conn, int side)
{
	uint8_t bytes[4096];
	ssize_t got;

	while ((got = fuzz_world_receive(conn, side, bytes, sizeof(bytes), 0)) > 0)
		for (ssize_t i = 0; i < got; i++)
			fuzz_check(bytes[i] == byte_at(conn->received[!side]++, !side));
	fuzz_check(got == -EAGAIN);
}

void fuzz_world_honest(size_t bytes)
{
	uint8_t text[4096];

	for (int i = 0; i < 2; i++) {
		struct fuzz_conn *conn = &fuzz_world.honest[i];

		for (int side = 0; conn->sock[0].peer && side < 2; side++) {
			ssize_t sent;

			for (size_t k = 0; k < bytes && k < sizeof(text); k++)
				text[k] = byte_at(conn->sent[side] + k, side);
			sent = fuzz_world_send(conn, side, text, bytes < sizeof(text) ? bytes : sizeof(text), 0);
			fuzz_check(sent > 0 || sent == -EAGAIN);
			conn->sent[side] += sent > 0 ? sent : 0;
			fuzz_world_turn();
			honest_receive(conn, !side);
		}
	}
}

/* --- the links --- */

struct shunt_link *fuzz_world_link(enum fuzz_who who)
{
	struct shunt_link *link = fuzz_world.engine[who]->service->links;
	struct fuzz_conn *honest = &fuzz_world.honest[0];
	struct shunt_stream *its = who == FUZZ_VICTIM ? fuzz_world_stream(honest, who) : NULL;

	while (link &&
	       (atomic_load(&link->state) != SHUNT_LINK_UP || (its && its->seat->link == link)))
		link = link->next;
	return link;
}

struct soft_qp *fuzz_world_qp(struct shunt_link *link)
{
	return container_of(link->lanes[0].qp, struct soft_qp, ibv);
}

/* --- the end --- */

static int count_stream(struct shunt_stream *stream, void *arg)
{
	(void)stream;
	++*(int *)arg;
	return 0;
}

static int streams_of(enum fuzz_who who)
{
	int count = 0;

	shunt_streams_each(fuzz_world.engine[who], count_stream, &count);
	return count;
}

static int links_of(enum fuzz_who who)
{
	int count = 0;

	for (struct shunt_link *link = fuzz_world.engine[who]->service->links; link; link = link->next)
		count++;
	return count;
}

static int show_stream(struct shunt_stream *stream, void *arg)
{
	char prefix[32];

	snprintf(prefix, sizeof(prefix), "  %s: ", (const char *)arg);
	stream_print(stderr, prefix, stream);
	return 0;
}

static void show_sock(const struct sim_sock *sock, int conn, int side)
{
	fprintf(stderr, "  connection %d side %d: refs %d state %d orphan %d error %d written %" PRIu64 " acked %" PRIu64 " read %" PRIu64
		" fin %d%d reset %d\n", conn, side, sock->refs, sock->state, sock->orphan, sock->error, sock->out.written, sock->out.acked,
		sock->out.read, sock->out.fin_sent, sock->out.fin_arrived, sock->out.rst_sent);
}

static void show(void)
{
	static char *const names[] = { "victim", "hostile peer", "honest peer" };

	for (enum fuzz_who who = 0; who < FUZZ_ENGINES; who++) {
		struct shunt_link *link = fuzz_world.engine[who]->service->links;

		shunt_streams_each(fuzz_world.engine[who], show_stream, names[who]);
		for (; link; link = link->next)
			fprintf(stderr, "  %s: link %p state %d seated %u failed %d (%s) distrusted %d\n", names[who], (void *)link,
				link->state, link->seated, link->failed, link->failure ? link->failure : "", link->distrusted);
	}
	for (int i = 0; i < fuzz_world.conns; i++)
		for (int side = 0; side < 2; side++)
			show_sock(&fuzz_world.conn[i].sock[side], i, side);
}

/* A listener each, and what is honest. */
static bool is_clean(void)
{
	return streams_of(FUZZ_VICTIM) == 3 && streams_of(FUZZ_HOSTILE) == 1 &&
	       streams_of(FUZZ_HONEST) == 3 && links_of(FUZZ_VICTIM) == 1 &&
	       !links_of(FUZZ_HOSTILE) && links_of(FUZZ_HONEST) == 1 &&
	       !fuzz_world.engine[FUZZ_VICTIM]->service->reconnects &&
	       !fuzz_world.engine[FUZZ_VICTIM]->service->proofs.first;
}

static void end_hostile_links(void)
{
	struct shunt_link *link;

	for (link = fuzz_world.engine[FUZZ_HOSTILE]->service->links; link; link = link->next)
		role_kill_link(link, "its process ends");
	shunt_reconnect_forget(fuzz_world.engine[FUZZ_HOSTILE]->service);
}

static void check_honest(void)
{
	struct shunt_engine *victim = fuzz_world.engine[FUZZ_VICTIM];
	struct shunt_link *link = victim->service->links;

	fuzz_world_honest(100);
	fuzz_world_honest(1);
	for (int i = 0; i < 2; i++) {
		struct fuzz_conn *conn = &fuzz_world.honest[i];

		fuzz_check(conn->sent[0] == conn->received[0] && conn->sent[1] == conn->received[1]);
		fuzz_check(on_link(conn));
	}
	fuzz_check(atomic_load(&link->state) == SHUNT_LINK_UP && link->seated == 2 && !atomic_load(&link->distrusted));
	fuzz_check(!link->arena.strays && !atomic_load(&victim->work.resends) &&
		   !atomic_load(&victim->loop.requests.refusing) &&
		   !atomic_load(&victim->work.awaited) && !victim->work.asked &&
		   !atomic_load(&victim->breaking));
	fuzz_check(atomic_load(&victim->lanes.links_up) == 1 &&
		   !atomic_load(&fuzz_world.engine[FUZZ_HONEST]->links.distrusted));
}

/* Births wait for accept(), whatever has become of their link. */
static void accept_rest(enum fuzz_who who)
{
	int fd;

	while (fuzz_world.born && (fd = fuzz_world_born_accept(who)) >= 0) {
		shunt_file_closing(fuzz_world.engine[who], fd);
		sim_fd_close(fd);
	}
}

void fuzz_world_end(void)
{
	for (int i = 0; i < fuzz_world.conns; i++) {
		fuzz_world_close(&fuzz_world.conn[i], 0);
		fuzz_world_close(&fuzz_world.conn[i], 1);
	}
	end_hostile_links();
	fuzz_world_turn();
	accept_rest(FUZZ_VICTIM);
	accept_rest(FUZZ_HOSTILE);
	for (int i = 0; !is_clean(); i++) {
		if (i == 100)
			show();
		fuzz_check(i < 100);
		sim_clock += i < 5 ? 1000000 : 1000000000;
		end_hostile_links();
		fuzz_world_turn();
	}
	check_honest();
	for (int i = 0; i < fuzz_world.conns; i++)
		fuzz_check(!fuzz_world.conn[i].sock[0].refs && !fuzz_world.conn[i].sock[1].refs);
	for (int i = 0; i < fuzz_world.conns; i++)	/* nobody but a proof has changed them */
		fuzz_check(fuzz_world.conn[i]
				   .sock[fuzz_world_side(&fuzz_world.conn[i], FUZZ_VICTIM)]
				   .options == SIM_OPTIONS_FIRST);
	fuzz_check(real < 0 || (sim_fd_count() == scripted && open_descriptors() == real));
	fuzz_check(fuzz_world.engine[FUZZ_VICTIM]->links.distrusted - distrusted <=
			   fuzz_world.links ||
		   real < 0);
	fuzz_check(lines <= fuzz_world.engine[FUZZ_VICTIM]->links.distrusted - distrusted +
				    fuzz_world.engine[FUZZ_HOSTILE]->links.distrusted ||
		   real < 0);
}
