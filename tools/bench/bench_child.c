/* SPDX-License-Identifier: MIT */
/* Child processes that never outlive us, and waiting for them without a fixed sleep. */
#include "tools/bench/bench.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "tools/shunt.h"

static int interrupts = -1;	/* signalfd; stays readable once a signal has come */

int shunt_child_init(void)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGHUP);
	sigaddset(&set, SIGPIPE);	/* nobody reads what we say: end in order, too */
	if (sigprocmask(SIG_BLOCK, &set, NULL))
		return -errno;
	interrupts = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	return interrupts < 0 ? -errno : 0;
}

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void redirect(const char *path, int flags, int fd)
{
	int file = open(path, flags | O_CLOEXEC, 0600);

	if (file < 0 || dup2(file, fd) < 0)
		_exit(126);
}

/* Also where it has that number already, with its close-on-exec flag. */
static void inherit(int fd)
{
	int copy = fcntl(fd, F_DUPFD_CLOEXEC, SHUNT_CHILD_FD + 1);

	if (copy < 0 || dup2(copy, SHUNT_CHILD_FD) < 0)
		_exit(126);
}

/* Words of SHUNT_TUNE go behind the user's: of two with one name the later counts. */
static int set_variable(char *variable)
{
	static const char tune[] = "SHUNT_TUNE";
	size_t length = sizeof(tune) - 1;
	const char *had = getenv(tune);
	char *value;
	int rc;

	if (!had || strncmp(variable, tune, length) || variable[length] != '=')
		return putenv(variable);
	if (asprintf(&value, "%s,%s", had, variable + length + 1) < 0)
		return -1;
	rc = setenv(tune, value, 1);
	free(value);
	return rc;
}

/* A bare run is bare even where the user has SHUNT_* set or runs us shunted. */
static int set_environment(const struct shunt_child_start *start)
{
	if (!start->library) {
		shunt_library_unload();
		return 0;
	}
	for (char *const *variable = start->variables; variable && *variable; variable++)
		if (set_variable(*variable))
			return -1;
	if (start->stats && setenv("SHUNT_STATS", start->stats, 1))
		return -1;
	return shunt_library_preload(start->library);
}

static void __attribute__((noreturn)) child_main(const struct shunt_child_start *start, pid_t parent)
{
	sigset_t none;

	/* Its own group: a ^C is for us, and we stop it in order. */
	setpgid(0, 0);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent)
		_exit(126);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	redirect("/dev/null", O_RDONLY, STDIN_FILENO);
	if (start->out)
		redirect(start->out, O_WRONLY | O_CREAT | O_TRUNC, STDOUT_FILENO);
	if (start->err)
		redirect(start->err, O_WRONLY | O_CREAT | O_TRUNC, STDERR_FILENO);
	if (start->inherit)
		inherit(start->inherit);
	if (start->cpus && sched_setaffinity(0, sizeof(*start->cpus), start->cpus)) {
		perror("cannot run on the CPUs that were asked for");
		_exit(126);
	}
	if (!chdir(start->dir) && !set_environment(start))
		execvp(start->argv[0], start->argv);
	perror(start->argv[0]);
	_exit(127);
}

int shunt_child_start(struct shunt_child *child, const struct shunt_child_start *start)
{
	pid_t parent = getpid();

	memset(child, 0, sizeof(*child));
	child->pid = fork();
	if (child->pid < 0)
		return -errno;
	if (!child->pid)
		child_main(start, parent);
	child->pidfd = (int)syscall(SYS_pidfd_open, child->pid, 0); /* glibc 2.36 has a function */
	if (child->pidfd < 0) {
		kill(child->pid, SIGKILL);
		waitpid(child->pid, NULL, 0);
		child->pid = 0;
		return -ENOSYS;
	}
	return 0;
}

static void reap(struct shunt_child *child)
{
	struct rusage usage;

	while (wait4(child->pid, &child->status, 0, &usage) < 0 && errno == EINTR)
		;
	child->cpu = (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
		     (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6;
	close(child->pidfd);
	child->pid = 0;
}

int shunt_child_wait(struct shunt_child *child, double seconds)
{
	double end = now() + seconds;

	while (child->pid) {
		struct pollfd fds[2] = {
			{ .fd = child->pidfd, .events = POLLIN },
			{ .fd = interrupts, .events = POLLIN },
		};
		double left = end - now();

		if (poll(fds, 2, left > 0 ? (int)(left * 1000) + 1 : 0) < 0 && errno != EINTR)
			return -errno;
		if (fds[0].revents)
			reap(child);
		else if (fds[1].revents)
			return -EINTR;
		else if (left <= 0)
			return -ETIMEDOUT;
	}
	return 0;
}

/*
 * Asked of the kernel rather than by connecting: iperf3 -1 takes the first connection for its only
 * client. Listening sockets come first in the file.
 */
static int is_listening(int port)
{
	FILE *sockets = fopen("/proc/net/tcp", "re");
	char line[256];
	int found = 0;

	while (!found && sockets && fgets(line, sizeof(line), sockets)) {
		unsigned int address, number, state;

		found = sscanf(line, " %*d: %x:%x %*x:%*x %x", &address, &number, &state) == 3 &&
			address == htonl(INADDR_LOOPBACK) && number == (unsigned int)port &&
			state == 0x0a;
	}
	if (sockets)
		fclose(sockets);
	return found;
}

int shunt_child_wait_listening(struct shunt_child *child, int port, double seconds)
{
	double end = now() + seconds;
	int rc;

	while (!is_listening(port)) {
		if (now() > end)
			return -ETIMEDOUT;
		rc = shunt_child_wait(child, 0.001);
		if (rc != -ETIMEDOUT)
			return rc ? rc : -ECHILD;
	}
	return 0;
}

int shunt_child_wait_line(struct shunt_child *child, int pipe, double seconds, char *line,
			  size_t size)
{
	double end = now() + seconds;
	size_t have = 0;

	while (have < size) {
		struct pollfd fds[2] = {
			{ .fd = pipe, .events = POLLIN },
			{ .fd = interrupts, .events = POLLIN },
		};
		double left = end - now();
		ssize_t got;

		if (poll(fds, 2, left > 0 ? (int)(left * 1000) + 1 : 0) < 0 && errno != EINTR)
			return -errno;
		if (!fds[0].revents) {
			if (fds[1].revents)
				return -EINTR;
			if (left <= 0)
				return -ETIMEDOUT;
			continue;
		}
		got = read(pipe, line + have, 1);
		if (got == 1 && line[have++] == '\n') {
			line[have - 1] = '\0';
			return 0;
		}
		/* Closed: it has ended, or is about to. */
		if (got == 0) {
			int rc = shunt_child_wait(child, left > 0 ? left : 0);

			return rc ? rc : -ECHILD;
		}
		if (got < 0 && errno != EINTR)
			return -errno;
	}
	return -EMSGSIZE;
}

double shunt_child_cpu(const struct shunt_child *child)
{
	struct timespec t = { 0 };
	clockid_t clock;

	if (!child->pid)
		return child->cpu;
	if (!clock_getcpuclockid(child->pid, &clock))
		clock_gettime(clock, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

void shunt_child_stop(struct shunt_child *child)
{
	if (!child->pid)
		return;
	kill(child->pid, SIGTERM);
	if (!shunt_child_wait(child, 5))
		return;
	kill(child->pid, SIGKILL);
	reap(child);
}

int shunt_child_free_port(void)
{
	struct sockaddr_in address = { .sin_family = AF_INET };
	socklen_t len = sizeof(address);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	int rc = -EIO;

	if (fd < 0)
		return -errno;
	address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	if (bind(fd, (struct sockaddr *)&address, sizeof(address)) ||
	    getsockname(fd, (struct sockaddr *)&address, &len))
		rc = -errno;
	else
		rc = ntohs(address.sin_port);
	close(fd);
	return rc;
}
