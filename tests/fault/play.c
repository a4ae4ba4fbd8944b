/* SPDX-License-Identifier: MIT */
/* Plays a plan: processes, blows, the watchdog, and the judgement. */
#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include "campaign.h"
#include "table.h"

#define NEVER UINT64_MAX

struct process {
	pid_t pid;		/* 0: none, or it has been reaped */
	int pidfd, to, from;	/* its standard input and output */
	bool killed;		/* by us */
	int status;
};

struct play {
	const struct plan *plan;
	struct table *table;
	int table_fd, event_fd, port;
	struct process servers[2];
	struct process client;
	const struct run *run;
	unsigned int number;
	bool failed;		/* the run */
};

/* Each run has its own: a server may still be hearing of connections whose client was killed long ago. */
static int first_slot(const struct play *play)
{
	return (int)play->number * (SLOTS / RUNS);
}

static uint64_t now_us(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000 + t.tv_nsec / 1000;
}

__attribute__((format(printf, 2, 3))) static void wrong(struct play *play, const char *format, ...)
{
	va_list arguments;

	if (!play->failed)
		plan_print(play->plan);
	play->failed = true;
	printf("# seed %llu run %u: ", (unsigned long long)play->plan->seed, play->number);
	va_start(arguments, format);
	vprintf(format, arguments);
	va_end(arguments);
	printf("\n");
	fflush(stdout);
}

/* --- processes --- */

static void set_environment(const struct plan *plan, const struct side *side)
{
	char modes[TEXT], *save = NULL;

	strcpy(modes, plan->modes);
	for (char *mode = strtok_r(modes, " ", &save); mode; mode = strtok_r(NULL, " ", &save)) {
		char *equals = strchr(mode, '=');

		*equals = 0;
		setenv(mode, equals + 1, 1);
	}
	setenv("SHUNT_FAULT", no_rules ? "" : side->rules, 1);
	setenv("SHUNT_LOG", verbose ? "info" : "none", 1);
}

static void become(struct play *play, const struct side *side, char *const *arguments, int in, int out)
{
	const char *command[16] = { NULL };
	int count = 0;

	setpgid(0, 0);
	dup2(in, 0);
	dup2(out, 1);
	dup2(play->table_fd, TABLE_FD);
	dup2(play->event_fd, EVENT_FD);
	closefrom(EVENT_FD + 1);
	set_environment(play->plan, side);
	command[count++] = shunt_command;
	command[count++] = "run";
	while (*arguments)
		command[count++] = *arguments++;
	execv(command[0], (char *const *)command);
	_exit(127);
}

static void start(struct play *play, struct process *process, const struct side *side, char *const *arguments)
{
	int in[2], out[2];

	*process = (struct process) { .to = -1, .from = -1, .pidfd = -1 };
	if (pipe2(in, O_CLOEXEC) || pipe2(out, O_CLOEXEC))
		exit(3);
	fflush(stdout);
	process->pid = fork();
	if (process->pid < 0)
		exit(3);
	if (!process->pid)
		become(play, side, arguments, in[0], out[1]);
	setpgid(process->pid, process->pid);
	close(in[0]);
	close(out[1]);
	process->to = in[1];
	process->from = out[0];
	process->pidfd = syscall(SYS_pidfd_open, process->pid, 0);
}

/* Takes its status; whatever it has left running is found. */
static void reap(struct play *play, struct process *process)
{
	pid_t pid = process->pid;

	if (!pid)
		return;
	waitpid(pid, &process->status, 0);
	process->pid = 0;
	close(process->to);
	close(process->from);
	close(process->pidfd);
	if (!kill(-pid, SIGKILL))
		wrong(play, "process %d has left another behind", (int)pid);
}

static void destroy(struct play *play, struct process *process)
{
	if (!process->pid)
		return;
	kill(-process->pid, SIGKILL);
	waitpid(process->pid, &process->status, 0);
	process->pid = 0;
	close(process->to);
	close(process->from);
	close(process->pidfd);
	(void)play;
}

static void strike(struct process *process, int signal)
{
	if (!process->pid)
		return;
	process->killed |= signal == SIGKILL;
	syscall(SYS_pidfd_send_signal, process->pidfd, signal, NULL, 0);
}

static bool await_output(struct process *process, char *line, size_t bytes)
{
	struct pollfd fd = { .fd = process->from, .events = POLLIN };
	ssize_t got = poll(&fd, 1, limit_s * 1000) > 0 ? read(process->from, line, bytes - 1) : -1;

	line[got > 0 ? got : 0] = 0;
	return got > 0;
}

/* --- servers --- */

static bool start_server(struct play *play, struct process *process)
{
	char port[16], line[64];
	char *arguments[] = { (char *)load_program, "server", port, NULL };

	snprintf(port, sizeof(port), "%d", play->port);
	start(play, process, &play->plan->server, arguments);
	if (!await_output(process, line, sizeof(line))) {
		wrong(play, "the server does not begin");
		return false;
	}
	play->port = atoi(line);
	return true;
}

static int free_port(void)
{
	struct sockaddr_in address = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t length = sizeof(address);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (fd < 0 || bind(fd, (void *)&address, length) || getsockname(fd, (void *)&address, &length))
		exit(3);
	close(fd);
	return ntohs(address.sin_port);
}

static bool answers(int port)
{
	char name[32];
	char line[256];
	FILE *file = fopen("/proc/net/tcp", "re");
	bool found = false;

	snprintf(name, sizeof(name), "0100007F:%04X 00000000:0000 0A", port);
	while (file && !found && fgets(line, sizeof(line), file))
		found = strstr(line, name);
	if (file)
		fclose(file);
	return found;
}

static bool start_redis(struct play *play, struct process *process)
{
	char port[16];
	char *arguments[] = { "redis-server", "--port", port, "--bind", "127.0.0.1", "--save", "", "--appendonly", "no",
			      "--loglevel", "warning", NULL };
	uint64_t until = now_us() + limit_s * 1000000ull;

	play->port = free_port();
	snprintf(port, sizeof(port), "%d", play->port);
	start(play, process, &play->plan->server, arguments);
	while (!answers(play->port)) {
		if (now_us() > until) {
			wrong(play, "redis does not begin");
			return false;
		}
		usleep(2000);
	}
	return true;
}

static bool start_servers(struct play *play)
{
	if (play->plan->kind == REDIS)
		return start_redis(play, &play->servers[0]);
	if (!start_server(play, &play->servers[0]))
		return false;
	return play->plan->kind != OWNERS || start_server(play, &play->servers[1]);
}

static int count_descriptors(pid_t pid)
{
	char path[64];
	DIR *dir;
	int count = -2;

	snprintf(path, sizeof(path), "/proc/%d/fd", (int)pid);
	dir = opendir(path);
	while (dir && readdir(dir))
		count++;
	if (dir)
		closedir(dir);
	return count;
}

/* Of a link's memory, ours and the peer's. */
static int count_mappings(pid_t pid)
{
	char line[512];
	FILE *file;
	int count = 0;

	snprintf(line, sizeof(line), "/proc/%d/maps", (int)pid);
	file = fopen(line, "re");
	while (file && fgets(line, sizeof(line), file))
		count += strstr(line, "memfd:shunt") != NULL;
	if (file)
		fclose(file);
	return count;
}

/* After a client is gone, what it has cost comes back. */
static void check_leaks(struct play *play, const struct process *server)
{
	int most = play->plan->kind == REDIS ? 40 : 26, descriptors = 0, mappings = 0;
	uint64_t until = now_us() + 5000000;

	while (server->pid && now_us() < until) {
		descriptors = count_descriptors(server->pid);
		mappings = count_mappings(server->pid);
		if (descriptors <= most && !mappings)
			return;
		usleep(1000);
	}
	if (server->pid)
		wrong(play, "the server has kept %d descriptors, %d mappings of links", descriptors, mappings);
}

/* --- a run --- */

static void drain(int fd)
{
	uint64_t count;

	if (read(fd, &count, sizeof(count)) < 0 && errno != EAGAIN)
		exit(3);
}

static bool servers_are_done(const struct play *play)
{
	for (int s = 0; s < 2; s++)
		if (play->servers[s].killed && play->servers[s].pid)
			return false;
	for (int i = first_slot(play); i < first_slot(play) + SLOTS / RUNS; i++)
		for (int s = 0; s < 2; s++)
			if (atomic_load(&play->table->slots[i].server.outcome) == RUNNING && play->servers[s].pid &&
			    atomic_load(&play->table->slots[i].server.pid) == play->servers[s].pid)
				return false;
	return true;
}

struct blow_at {
	uint64_t at;
	struct process *whom;
	int signal;
};

static int collect(const struct run *run, struct play *play, struct blow_at *blows)
{
	struct process *whom[] = { &play->client, &play->servers[0] };
	enum blow blow[] = { run->client_blow, run->server_blow };
	unsigned int at[] = { run->client_at, run->server_at };
	uint64_t begin = now_us();
	int count = 0;

	for (int i = 0; i < 2; i++) {
		if (blow[i] == UNHARMED)
			continue;
		blows[count++] = (struct blow_at) { begin + at[i], whom[i], blow[i] == KILLED ? SIGKILL : SIGSTOP };
		if (blow[i] == STOPPED)
			blows[count++] = (struct blow_at) { begin + at[i] + run->stop, whom[i], SIGCONT };
	}
	return count;
}

/* Deals what is due. When the next is. */
static uint64_t deal(struct blow_at *blows, int count)
{
	uint64_t now = now_us(), next = NEVER;

	for (int i = 0; i < count; i++) {
		if (blows[i].at <= now) {
			strike(blows[i].whom, blows[i].signal);
			blows[i].at = NEVER;
		}
		if (blows[i].at < next)
			next = blows[i].at;
	}
	return next;
}

/* Waits for the first of: a process has ended, an end has told, a blow is due. False: none within the limit. */
static bool await_event(struct play *play, uint64_t next, uint64_t until)
{
	struct process *processes[] = { &play->client, &play->servers[0], &play->servers[1] };
	struct pollfd fds[4] = { { .fd = play->event_fd, .events = POLLIN } };
	uint64_t now = now_us(), wake = next < until ? next : until;
	struct timespec left = { 0, 0 };

	for (int i = 0; i < 3; i++)
		fds[i + 1] = (struct pollfd) { .fd = processes[i]->pid ? processes[i]->pidfd : -1, .events = POLLIN };
	if (wake > now)
		left = (struct timespec) { (wake - now) / 1000000, (wake - now) % 1000000 * 1000 };
	if (ppoll(fds, 4, &left, NULL) < 0)
		return errno == EINTR;
	if (fds[0].revents)
		drain(play->event_fd);
	for (int i = 0; i < 3; i++)
		if (fds[i + 1].revents)
			reap(play, processes[i]);
	return now_us() < until;
}

static void start_client(struct play *play, unsigned int slot)
{
	const struct run *run = play->run;
	char port[16], seed[32], first[16], connections[16], amount[32];
	char *arguments[] = { (char *)load_program, play->plan->kind == REDIS ? "redis" : "client", port, seed, first,
			      connections, amount, NULL };

	snprintf(port, sizeof(port), "%d", play->port);
	snprintf(seed, sizeof(seed), "%llu", (unsigned long long)run->seed);
	snprintf(first, sizeof(first), "%u", slot);
	snprintf(connections, sizeof(connections), "%u", run->connections);
	if (play->plan->kind == REDIS)
		snprintf(amount, sizeof(amount), "%u", run->rounds);
	else
		snprintf(amount, sizeof(amount), "%llu", (unsigned long long)run->bytes);
	start(play, &play->client, &run->client, arguments);
}

/* --- the judgement --- */

/* Without anybody's death: what is kept twice survives all that is done to the link. */
static bool must_complete(const struct play *play)
{
	const struct side *a = &play->plan->server, *b = &play->run->client;

	if (!a->loses && !b->loses)
		return true;
	return play->plan->retain && !a->forgets && !b->forgets;
}

static const char *const outcomes[] = { "unused", "running", "complete", "an early end", "broken", "wrong bytes" };

/* Can what `side` has sent end before its end? Where it dies with what its queue pair has swallowed, and none keeps that. */
static bool may_end_early(const struct play *play, const struct side *side, bool killed)
{
	return side->loses && killed && !play->plan->retain;
}

static void judge_end(struct play *play, int slot, const char *name, const struct end *end, const struct end *peer,
		      bool peer_killed, bool early)
{
	enum outcome outcome = atomic_load(&end->outcome);
	int error = atomic_load(&end->error);
	unsigned long long got = atomic_load(&end->got), sent = atomic_load(&peer->sent);
	bool good = false;

	switch (outcome) {
	case UNUSED:
	case COMPLETE:
		good = true;
		break;
	case EARLY:	/* as the kernel: all that a dead process had sent, then its end */
		good = early || (peer_killed && got >= sent);
		break;
	case BROKEN:
		good = (peer_killed || !must_complete(play)) &&
		       (error == ECONNRESET || error == EPIPE || error == ENOTCONN || (peer_killed && error == ECONNREFUSED));
		break;
	case RUNNING:
	case WRONG:
		break;
	}
	if (!good)
		wrong(play, "connection %d, %s: %s (%s) at %llu of %llu", slot, name, outcomes[outcome],
		      error ? strerror(error) : "-", got, sent);
}

static bool is_dead(const struct play *play, const struct end *server)
{
	for (int i = 0; i < 2; i++)
		if (play->servers[i].killed && (atomic_load(&server->outcome) == UNUSED ||
						atomic_load(&server->pid) == 0 || play->plan->kind != OWNERS))
			return true;
	return false;
}

static void judge(struct play *play, const pid_t *server_pids)
{
	for (int i = first_slot(play); i < first_slot(play) + SLOTS / RUNS; i++) {
		struct slot *slot = &play->table->slots[i];
		bool server_dead = is_dead(play, &slot->server);

		for (int s = 0; s < 2; s++)
			server_dead |= play->servers[s].killed && server_pids[s] &&
				       atomic_load(&slot->server.pid) == server_pids[s];
		if (!play->client.killed)
			judge_end(play, i, "client", &slot->client, &slot->server, server_dead,
				  may_end_early(play, &play->plan->server, server_dead));
		if (!server_dead)
			judge_end(play, i, "server", &slot->server, &slot->client, play->client.killed,
				  may_end_early(play, &play->run->client, play->client.killed));
	}
	if (!play->client.killed && play->client.status)
		wrong(play, "the client has ended with status %x", play->client.status);
	for (int s = 0; s < 2; s++)
		if (server_pids[s] && !play->servers[s].pid && !play->servers[s].killed)
			wrong(play, "a server has ended with status %x", play->servers[s].status);
}

static void hang(struct play *play)
{
	wrong(play, "nothing has happened for %u s: client %d, servers %d %d", limit_s, (int)play->client.pid,
	      (int)play->servers[0].pid, (int)play->servers[1].pid);
	for (int i = first_slot(play); i < first_slot(play) + SLOTS / RUNS; i++)
		if (atomic_load(&play->table->slots[i].client.outcome) == RUNNING ||
		    atomic_load(&play->table->slots[i].server.outcome) == RUNNING)
			wrong(play, "connection %d: the client has sent %llu and got %llu, the server %llu and %llu", i,
			      (unsigned long long)play->table->slots[i].client.sent,
			      (unsigned long long)play->table->slots[i].client.got,
			      (unsigned long long)play->table->slots[i].server.sent,
			      (unsigned long long)play->table->slots[i].server.got);
	if (getenv("KEEP")) {
		fflush(stdout);
		pause();
	}
}

static uint64_t progress(const struct play *play)
{
	uint64_t sum = 0;

	for (int i = first_slot(play); i < first_slot(play) + SLOTS / RUNS; i++) {
		struct slot *slot = &play->table->slots[i];

		sum += slot->client.sent + slot->client.got + slot->server.sent + slot->server.got;
		sum += slot->client.outcome + slot->server.outcome;
	}
	return sum;
}

static void play_run(struct play *play)
{
	pid_t server_pids[] = { play->servers[0].pid, play->servers[1].pid };
	uint64_t until = now_us() + limit_s * 1000000ull, next, moved = 0;
	struct blow_at blows[4];
	int count;

	drain(play->event_fd);
	play->failed = false;
	start_client(play, first_slot(play));
	count = collect(play->run, play, blows);
	for (;;) {
		next = deal(blows, count);
		if (!play->client.pid && servers_are_done(play) && next == NEVER)
			break;
		if (!await_event(play, next, until)) {
			if (progress(play) != moved) {	/* slow, but it moves */
				moved = progress(play);
				until = now_us() + limit_s * 1000000ull;
				continue;
			}
			hang(play);
			destroy(play, &play->client);
			destroy(play, &play->servers[0]);
			destroy(play, &play->servers[1]);
			return;
		}
	}
	judge(play, server_pids);
	check_leaks(play, &play->servers[0]);
	check_leaks(play, &play->servers[1]);
}

static void end_server(struct play *play, struct process *process)
{
	struct pollfd fd = { .fd = process->pidfd, .events = POLLIN };

	if (!process->pid)
		return;
	if (play->plan->kind == REDIS)
		kill(process->pid, SIGTERM);
	else
		dup2(play->event_fd, process->to);	/* closes the pipe */
	if (poll(&fd, 1, limit_s * 1000) <= 0) {
		wrong(play, "the server does not end");
		destroy(play, process);
		return;
	}
	reap(play, process);
	if (process->status)
		wrong(play, "the server has ended with status %x", process->status);
}

unsigned int plan_play(const struct plan *plan, unsigned int *failed)
{
	struct play play = { .plan = plan };
	unsigned int i;

	play.table_fd = memfd_create("campaign", MFD_CLOEXEC);
	play.event_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (play.table_fd < 0 || play.event_fd < 0 || ftruncate(play.table_fd, sizeof(struct table)))
		exit(3);
	/* Not where the children want theirs. */
	play.table_fd = fcntl(play.table_fd, F_DUPFD_CLOEXEC, 100);
	play.event_fd = fcntl(play.event_fd, F_DUPFD_CLOEXEC, 100);
	play.table = mmap(NULL, sizeof(struct table), PROT_READ | PROT_WRITE, MAP_SHARED, play.table_fd, 0);
	if (play.table == MAP_FAILED)
		exit(3);
	*failed = !start_servers(&play);
	for (i = 0; i < plan->count && !*failed && (play.servers[0].pid || play.servers[1].pid); i++) {
		play.run = &plan->runs[i];
		play.number = i;
		play_run(&play);
		*failed += play.failed;
	}
	play.failed = false;
	end_server(&play, &play.servers[0]);
	end_server(&play, &play.servers[1]);
	*failed += play.failed;
	munmap(play.table, sizeof(struct table));
	close(play.table_fd);
	close(play.event_fd);
	return i;
}
