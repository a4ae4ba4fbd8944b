/* SPDX-License-Identifier: MIT */
/* Commands on other hosts: the list of hosts, ssh, its pipes and its end. */
#include "tools/common/remote.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tools/common/output.h"

#define COMPLAINTS (16u << 10) /* bytes of standard error that are kept */
#define PIECE (16u << 10) /* bytes that are read at once, and a 0 */
#define LAST_WORDS 128

/* ---- the list ---- */

/* Nothing in it means something to a shell, and ssh takes no part of it for an option. */
static bool is_plain(const char *text)
{
	const char *at = strchr(text, '@');

	return *text && *text != '-' && (!at || (at[1] && at[1] != '-' && at > text)) &&
	       strlen(text) < SHUNT_HOST_TEXT &&
	       strspn(text,
		      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.:_-[]@") ==
		       strlen(text);
}

static bool is_port(const char *text)
{
	size_t digits = strspn(text, "0123456789");

	return digits && digits < 6 && !text[digits] && atoi(text) > 0 && atoi(text) < 65536;
}

static bool parse(struct shunt_host *host, const char *text)
{
	const char *name = strchr(text, '@'), *colon, *close;
	size_t user = name ? (size_t)(name - text) + 1 : 0, length;
	bool brackets;

	if (!is_plain(text) || (name && strchr(name + 1, '@')))
		return false;
	name = text + user;
	brackets = *name == '[';
	name += brackets;
	close = brackets ? strchr(name, ']') : NULL;
	colon = brackets ? (close && close[1] ? close + 1 : NULL) : strchr(name, ':');
	if (colon && !brackets && strchr(colon + 1, ':'))
		colon = NULL; /* an address of IPv6 */
	length = close ? (size_t)(close - name) : colon ? (size_t)(colon - name) : strlen(name);
	if (brackets != (close != NULL) || !length || strcspn(name, "[]") < length ||
	    (colon && (*colon != ':' || !is_port(colon + 1))))
		return false;
	*host = (struct shunt_host) { .port = "" };
	strcpy(host->text, text);
	snprintf(host->to, sizeof(host->to), "%.*s%.*s", (int)user, text, (int)length, name);
	if (colon)
		snprintf(host->port, sizeof(host->port), "%.5s", colon + 1);
	return true;
}

/* NULL, or what is wrong with the line. */
static const char *add(struct shunt_hosts *hosts, const char *text)
{
	struct shunt_host host;

	if (!parse(&host, text))
		return "it is no [USER@]HOST[:PORT]";
	for (size_t i = 0; i < hosts->count; i++)
		if (!strcmp(hosts->of[i].text, host.text))
			return "this host is there twice";
	if (hosts->count == SHUNT_HOSTS_MAX)
		return "there are more than 256 hosts";
	hosts->of = reallocarray(hosts->of, hosts->count + 1, sizeof(*hosts->of));
	if (!hosts->of)
		abort();
	hosts->of[hosts->count++] = host;
	return NULL;
}

/* Without its comment and the blanks around. NULL: a zero byte hides a part of it. */
static char *trim(char *line, size_t bytes)
{
	char *start = line + strspn(line, " \t"), *end;

	if (strlen(line) != bytes)
		return NULL;
	start[strcspn(start, "#\r\n")] = '\0';
	for (end = start + strlen(start); end > start && strchr(" \t", end[-1]); end--)
		end[-1] = '\0';
	return start;
}

int shunt_hosts_read(const char *who, const char *path, struct shunt_hosts *hosts)
{
	FILE *file = fopen(path, "re");
	const char *wrong = NULL;
	char *line = NULL, *text;
	size_t room = 0, number = 0;
	ssize_t got = 0;

	*hosts = (struct shunt_hosts) { 0 };
	while (file && !wrong && (got = getline(&line, &room, file)) > 0) {
		number++;
		text = trim(line, (size_t)got);
		wrong = !text ? "it has a zero byte" : *text ? add(hosts, text) : NULL;
	}
	if (wrong)
		fprintf(stderr, "%s: %s: line %zu: %s\n", who, path, number, wrong);
	else if (!file || ferror(file))
		fprintf(stderr, "%s: %s: %s\n", who, path, strerror(errno));
	else if (!hosts->count)
		fprintf(stderr, "%s: %s: there is no host in it\n", who, path);
	if (!wrong && file && !ferror(file) && hosts->count)
		got = 0;
	else
		got = -1;
	if (file)
		fclose(file);
	free(line);
	if (got) {
		free(hosts->of);
		*hosts = (struct shunt_hosts) { 0 };
	}
	return (int)got;
}

/* ---- starting ---- */

/* It ends with us. Signals that we block or ignore are none of ssh's business. */
static void __attribute__((noreturn)) become_ssh(char *const argv[], pid_t parent, int out, int err)
{
	static const char cannot[] = "ssh cannot be run here\n";
	int null = open("/dev/null", O_RDONLY | O_CLOEXEC);
	sigset_t none;

	prctl(PR_SET_PDEATHSIG, SIGTERM);
	signal(SIGPIPE, SIG_DFL);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	if (getppid() == parent && null >= 0 && dup2(null, STDIN_FILENO) >= 0 &&
	    dup2(out, STDOUT_FILENO) >= 0 && dup2(err, STDERR_FILENO) >= 0)
		execvp(argv[0], argv);
	if (write(STDERR_FILENO, cannot, sizeof(cannot) - 1) > 0)
		_exit(127);
	_exit(126);
}

static void spawn(struct shunt_remote *remote, const struct shunt_host *host, const char *command,
		  int out, int err)
{
	char *argv[] = { "ssh",	  "-T",
			 "-o",	  "BatchMode=yes",
			 "-o",	  "ConnectTimeout=5",
			 "-o",	  "ServerAliveInterval=5",
			 "-o",	  "ServerAliveCountMax=2",
			 "-p",	  (char *)host->port,
			 "--",	  (char *)host->to,
			 (char *)command, NULL };
	pid_t parent = getpid();

	if (!*host->port)
		memmove(&argv[10], &argv[12], 4 * sizeof(*argv));
	remote->pid = fork();
	if (!remote->pid)
		become_ssh(argv, parent, out, err);
	if (remote->pid > 0)
		remote->pidfd = (int)syscall(SYS_pidfd_open, remote->pid, 0); /* glibc 2.36 has a function */
}

int shunt_remote_start(struct shunt_remote *remote, const struct shunt_host *host,
		       const char *command, size_t most)
{
	int out[2], err[2], rc;

	*remote = (struct shunt_remote) { .pidfd = -1,
					  .out = { .fd = -1, .most = most },
					  .err = { .fd = -1, .most = COMPLAINTS } };
	if (pipe2(out, O_CLOEXEC))
		return -errno;
	if (pipe2(err, O_CLOEXEC)) {
		rc = -errno;
		close(out[0]);
		close(out[1]);
		return rc;
	}
	spawn(remote, host, command, out[1], err[1]);
	rc = remote->pidfd < 0 ? -errno : 0;
	close(out[1]);
	close(err[1]);
	remote->out.fd = out[0];
	remote->err.fd = err[0];
	fcntl(out[0], F_SETFL, O_NONBLOCK);
	fcntl(err[0], F_SETFL, O_NONBLOCK);
	if (rc)
		shunt_remote_stop(remote);
	return rc;
}

/* ---- hearing ---- */

static void grow(struct shunt_heard *heard)
{
	size_t room = PIECE;

	while (room < heard->length + PIECE)
		room *= 2;
	heard->text = realloc(heard->text, room);
	if (!heard->text)
		abort();
}

/* Bytes beyond the bound are read and dropped. False: nothing more for now. */
static bool hear(struct shunt_heard *heard)
{
	ssize_t got;

	grow(heard);
	got = heard->fd < 0 ? 0 : read(heard->fd, heard->text + heard->length, PIECE - 1);
	if (got < 0 && (errno == EAGAIN || errno == EINTR))
		return false;
	if (got <= 0 && heard->fd >= 0) {
		close(heard->fd);
		heard->fd = -1;
	}
	heard->length += got > 0 ? (size_t)got : 0;
	if (heard->length > heard->most) {
		heard->length = heard->most;
		heard->lost = true;
	}
	heard->text[heard->length] = '\0';
	return got > 0;
}

void shunt_remote_poll(const struct shunt_remote *remote, struct pollfd fds[SHUNT_REMOTE_FDS])
{
	bool runs = remote->pid > 0;

	fds[0] = (struct pollfd) { .fd = runs ? remote->out.fd : -1, .events = POLLIN };
	fds[1] = (struct pollfd) { .fd = runs ? remote->err.fd : -1, .events = POLLIN };
	fds[2] = (struct pollfd) { .fd = runs ? remote->pidfd : -1, .events = POLLIN };
}

static void reap(struct shunt_remote *remote)
{
	while (waitpid(remote->pid, &remote->status, 0) < 0 && errno == EINTR)
		;
	if (remote->pidfd >= 0)
		close(remote->pidfd);
	remote->pidfd = -1;
	remote->pid = 0;
}

/*
 * The end is that of ssh, not of its pipes: a master connection of ssh (ControlPersist) outlives it, and holds them open.
 * It may write without end, so what is read behind the end is bounded, too.
 */
bool shunt_remote_serve(struct shunt_remote *remote, const struct pollfd fds[SHUNT_REMOTE_FDS])
{
	if (fds[0].revents)
		hear(&remote->out);
	if (fds[1].revents)
		hear(&remote->err);
	if (!fds[2].revents)
		return false;
	reap(remote);
	while (!remote->out.lost && hear(&remote->out))
		;
	while (!remote->err.lost && hear(&remote->err))
		;
	return true;
}

static void forget(struct shunt_heard *heard)
{
	if (heard->fd >= 0)
		close(heard->fd);
	free(heard->text);
	*heard = (struct shunt_heard) { .fd = -1 };
}

void shunt_remote_stop(struct shunt_remote *remote)
{
	if (remote->pid > 0) {
		kill(remote->pid, SIGKILL);
		reap(remote);
	}
	forget(&remote->out);
	forget(&remote->err);
}

/* ---- what became of it ---- */

/* The last line that has something in it, printable. */
static const char *last_words(const struct shunt_heard *err, char shown[LAST_WORDS])
{
	size_t end = err->length, start;
	char line[LAST_WORDS];

	while (end && strchr(" \t\r\n", err->text[end - 1]))
		end--;
	for (start = end; start && err->text[start - 1] != '\n'; start--)
		;
	snprintf(line, sizeof(line), "%.*s", (int)(end - start), end ? err->text + start : "");
	return *line ? shunt_escape(line, shown, LAST_WORDS) : "it said nothing";
}

const char *shunt_remote_explain(const struct shunt_remote *remote, const struct shunt_host *host,
				 char why[SHUNT_REMOTE_WHY])
{
	int status = WIFEXITED(remote->status) ? WEXITSTATUS(remote->status) : -1;
	char said[LAST_WORDS];

	last_words(&remote->err, said);
	if (status < 0)
		snprintf(why, SHUNT_REMOTE_WHY, "signal %d has ended ssh",
			 WTERMSIG(remote->status));
	else if (status == 255)
		snprintf(
			why, SHUNT_REMOTE_WHY,
			"ssh has not reached it (%s); `ssh -o BatchMode=yes %s%s%s%s true` has to work",
			said, *host->port ? "-p " : "", host->port, *host->port ? " " : "",
			host->to);
	else if (status == 127)
		snprintf(why, SHUNT_REMOTE_WHY,
			 "no such command (%s); install Shunt there, and ssh here", said);
	else
		snprintf(why, SHUNT_REMOTE_WHY, "the command there has ended with status %d (%s)",
			 status, said);
	return why;
}
