/* SPDX-License-Identifier: MIT */
/*
 * A command on other hosts, which ssh runs. It never asks for a password. A list of hosts is a file with a host a line.
 * Bytes from another host are held up to a bound, and are hostile until they are checked.
 */
#ifndef SHUNT_TOOLS_REMOTE_H
#define SHUNT_TOOLS_REMOTE_H

#include <poll.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#define SHUNT_HOSTS_MAX 256
#define SHUNT_HOST_TEXT 128 /* bytes: [USER@]HOST[:PORT] */
#define SHUNT_REMOTE_WHY 400

/* Letters, digits and ".:_-[]@" only. */
struct shunt_host {
	char text[SHUNT_HOST_TEXT]; /* as the file has it; no other host has the same */
	char to[SHUNT_HOST_TEXT]; /* without port and brackets */
	char port[8]; /* "": as ssh is configured */
};

struct shunt_hosts {
	struct shunt_host *of; /* to be freed */
	size_t count;
};

/* `who` is the command, for complaints. 0, or -1 after saying which line is wrong; then nothing is held. */
int shunt_hosts_read(const char *who, const char *path, struct shunt_hosts *hosts);

/* Bytes that have come from one pipe. */
struct shunt_heard {
	int fd; /* -1: it has ended */
	char *text;
	size_t length, most;
	bool lost; /* there were more than `most` */
};

struct shunt_remote {
	pid_t pid; /* 0: it has been reaped */
	int pidfd;
	int status; /* as from wait(2) */
	struct shunt_heard out, err;
};

#define SHUNT_REMOTE_FDS 3 /* that are to be polled */

/* `command` is for a shell of that host. `most`: bytes of its output. 0 or -errno. */
int shunt_remote_start(struct shunt_remote *remote, const struct shunt_host *host,
		       const char *command, size_t most);
void shunt_remote_poll(const struct shunt_remote *remote, struct pollfd fds[SHUNT_REMOTE_FDS]);
/* After poll(2). True: it has ended, and all that it said is there. */
bool shunt_remote_serve(struct shunt_remote *remote, const struct pollfd fds[SHUNT_REMOTE_FDS]);
/* Ends it if it runs, and frees what was heard. */
void shunt_remote_stop(struct shunt_remote *remote);
/* It has ended: why it failed and what to do, printable. Returns why. */
const char *shunt_remote_explain(const struct shunt_remote *remote, const struct shunt_host *host,
				 char why[SHUNT_REMOTE_WHY]);

#endif
