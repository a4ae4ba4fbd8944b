/* SPDX-License-Identifier: MIT */
#include "core/link/trust.h"

#include <errno.h>
#include <linux/capability.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>
#include "core/fd/own_fds.h"

#define DUMPABLE 1	/* PR_GET_DUMPABLE: by its user; 2 is by root only */
#define LINK_BYTES 64	/* "pid:[4026531836]" and its like are shorter */

enum shunt_cause shunt_trust_reason(int error)
{
	switch (error) {
	case -ENOKEY:
		return SHUNT_CAUSE_UNTRACED;
	case -EPERM:
		return SHUNT_CAUSE_OTHER_USER;
	case -EACCES:
		return SHUNT_CAUSE_UNTRACEABLE;
	case -EXDEV:
		return SHUNT_CAUSE_OTHER_NAMESPACE;
	case -ENOTDIR:
		return SHUNT_CAUSE_NO_PROC;
	default:
		return SHUNT_CAUSE_NONE;
	}
}

/* --- what the peer could do --- */

int shunt_trust_self(const struct shunt_sys *sys, struct ucred *self)
{
	uid_t user[3];
	gid_t group[3];

	if (sys->getresuid(&user[0], &user[1], &user[2]) ||
	    sys->getresgid(&group[0], &group[1], &group[2]))
		return -ENOKEY;
	*self = (struct ucred) { .pid = getpid(), .uid = user[1], .gid = group[1] };
	if (user[0] != user[1] || user[1] != user[2] || group[0] != group[1] ||
	    group[1] != group[2])
		return -ENOKEY;
	return sys->prctl(PR_GET_DUMPABLE, 0, 0, 0, 0) == DUMPABLE ? 0 : -ENOKEY;
}

struct capabilities {
	uint64_t effective, permitted;
};

static bool capabilities_of(const struct shunt_sys *sys, pid_t pid, struct capabilities *them)
{
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3,
						   .pid = pid };
	struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3];

	memset(data, 0, sizeof(data));
	if (sys->capget(&header, data))
		return false;
	them->effective = (uint64_t)data[1].effective << 32 | data[0].effective;
	them->permitted = (uint64_t)data[1].permitted << 32 | data[0].permitted;
	return true;
}

/* A process with capabilities is traced by those only that have them, too. */
static bool has_ours(const struct shunt_sys *sys, pid_t pid, struct capabilities *ours)
{
	struct capabilities peers;

	return capabilities_of(sys, 0, ours) && capabilities_of(sys, pid, &peers) &&
	       !(ours->permitted & ~peers.effective);
}

/* Yama lets the peer do all that it lets us do. */
static bool yama_is_even(struct shunt_fds *fds, const struct capabilities *ours)
{
	enum shunt_yama yama;

	shunt_own_fds_begin(fds);
	yama = fds->sys->yama();
	shunt_own_fds_end(fds);
	return yama == SHUNT_YAMA_NONE ||
	       (yama != SHUNT_YAMA_NOBODY && ours->permitted >> CAP_SYS_PTRACE & 1);
}

/* --- what we could do --- */

static int read_link(const struct shunt_sys *sys, const char *path, char text[LINK_BYTES])
{
	ssize_t got = sys->readlink(path, text, LINK_BYTES - 1);

	if (got <= 0)
		return -errno;
	text[got] = 0;
	return 0;
}

/*
 * Numbers of processes in /proc mean what they mean to us: it may be the /proc of another PID
 * namespace.
 */
static bool proc_is_ours(const struct shunt_sys *sys)
{
	char text[LINK_BYTES];

	return !read_link(sys, "/proc/self", text) && atoi(text) == getpid();
}

static int shares_namespace(struct shunt_fds *fds, pid_t pid, const char *kind)
{
	char path[LINK_BYTES], ours[LINK_BYTES], theirs[LINK_BYTES];

	snprintf(path, sizeof(path), "/proc/self/ns/%s", kind);
	if (read_link(fds->sys, path, ours))
		return -ENOTDIR;
	snprintf(path, sizeof(path), "/proc/%d/ns/%s", (int)pid, kind);
	if (read_link(fds->sys, path, theirs))
		return -EACCES;
	return strcmp(ours, theirs) ? -EXDEV : 0;
}

static int may_read(struct shunt_fds *fds, pid_t pid)
{
	int result;

	if (!proc_is_ours(fds->sys))
		return -ENOTDIR;
	result = shares_namespace(fds, pid, "user");
	return result ? result : shares_namespace(fds, pid, "pid");
}

/* --- the question --- */

bool shunt_trust_peer(const struct shunt_sys *sys, int fd, struct ucred *peer)
{
	socklen_t length = sizeof(*peer);

	memset(peer, 0, sizeof(*peer));
	return !sys->getsockopt(fd, SOL_SOCKET, SO_PEERCRED, peer, &length);
}

/* `attach`: each could also attach to the other. */
static int peer_ask(struct shunt_fds *fds, int fd, bool attach)
{
	struct capabilities ours;
	struct ucred peer, self;
	int result = shunt_trust_self(fds->sys, &self);

	if (result)
		return result;
	if (!shunt_trust_peer(fds->sys, fd, &peer) || peer.uid != self.uid || peer.gid != self.gid)
		return -EPERM;
	if (peer.pid <= 0)	/* it has no number here */
		return -EXDEV;
	if (!has_ours(fds->sys, peer.pid, &ours))
		return -EACCES;
	result = may_read(fds, peer.pid);
	if (result || !attach)
		return result;
	return fds->sys->attach(peer.pid) || !yama_is_even(fds, &ours) ? -EACCES : 0;
}

static int ask(struct shunt_fds *fds, int fd, bool attach)
{
	int saved = errno, result = peer_ask(fds, fd, attach);

	errno = saved;
	return result;
}

int shunt_trust_ask(struct shunt_fds *fds, int fd)
{
	return ask(fds, fd, true);
}

bool shunt_trust_commands(struct shunt_fds *fds, int fd)
{
	struct ucred peer;

	return (shunt_trust_peer(fds->sys, fd, &peer) && peer.uid == 0) ||
	       !ask(fds, fd, false);
}
