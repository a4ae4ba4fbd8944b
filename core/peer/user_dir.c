/* SPDX-License-Identifier: MIT */
#include "core/peer/user_dir.h"
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "core/engine.h"
#include "core/fd/own_fds.h"
#include "core/peer/meeting_dir.h"
#include "core/peer/rendezvous.h"

#ifndef SO_NETNS_COOKIE
#define SO_NETNS_COOKIE 71
#endif

#define ABOVE "/run/shunt"
#define MODE 0711		/* everybody may look for a name that is known */
#define PATH_BYTES 32		/* of the directory; names are shorter than a shunt_name */

bool shunt_user_dir_exists(const struct shunt_engine *engine)
{
	return !engine->loop.manual && !access(ABOVE, F_OK);
}

void shunt_user_dir_of(struct shunt_engine *engine, int fd, struct shunt_user_dir *where)
{
	socklen_t length = sizeof(where->network);
	struct stat st;

	*where = (struct shunt_user_dir) { .network = 0 };
	if (!shunt_user_dir_exists(engine) || fstat(fd, &st))
		return;
	where->user = st.st_uid;
	if (engine->sys->getsockopt(fd, SOL_SOCKET, SO_NETNS_COOKIE, &where->network, &length))
		where->network = 0;
}

static void path_of(const struct shunt_user_dir *where, char path[PATH_BYTES])
{
	snprintf(path, PATH_BYTES, ABOVE "/%u", where->user);
}

/* shunt/tcp/ADDRESS:PORT becomes tcp-COOKIE-ADDRESS:PORT. */
static void name_of(const struct shunt_user_dir *where, const struct shunt_name *name,
		    struct shunt_name *file)
{
	const char *kind = name->text + 1 + strlen("shunt/"), *rest = strchr(kind, '/');

	file->length = snprintf(file->text, sizeof(file->text), "%.*s-%llu-%s", (int)(rest - kind),
				kind, (unsigned long long)where->network, rest + 1);
}

static int open_of(struct shunt_engine *engine, const struct shunt_user_dir *where, bool list)
{
	char path[PATH_BYTES];

	if (!where->network)
		return -ENOENT;
	path_of(where, path);
	return shunt_meeting_dir_open_of(engine, ABOVE, path, where->user, list);
}

static void dir_make(const struct shunt_engine *engine, const struct shunt_user_dir *where)
{
	char path[PATH_BYTES];

	if (where->user != geteuid() || !shunt_user_dir_exists(engine))
		return;
	path_of(where, path);
	if (!mkdir(path, 0700))		/* whatever the program's umask is */
		chmod(path, MODE);
}

bool shunt_user_dir_is_usable(struct shunt_engine *engine, const struct shunt_user_dir *where,
			      bool makes)
{
	int dir;

	if (makes && where->network)
		dir_make(engine, where);
	dir = open_of(engine, where, false);
	shunt_own_fds_close(&engine->fds, dir);
	return dir >= 0;
}

int shunt_user_dir_offer(struct shunt_engine *engine, const struct shunt_user_dir *where,
		     const struct shunt_name *name)
{
	int dir = open_of(engine, where, true), fd;
	struct shunt_name file;

	if (dir < 0)
		return dir;
	name_of(where, name, &file);
	fd = shunt_meeting_dir_take(engine, dir, file.text);
	shunt_own_fds_close(&engine->fds, dir);
	return fd;
}

void shunt_user_dir_withdraw(struct shunt_engine *engine, const struct shunt_user_dir *where,
			 const struct shunt_name *name)
{
	int dir = open_of(engine, where, false);
	struct shunt_name file;

	if (dir < 0)
		return;
	name_of(where, name, &file);
	unlinkat(dir, file.text, 0);
	shunt_own_fds_close(&engine->fds, dir);
}

int shunt_user_dir_connect(struct shunt_engine *engine, const struct shunt_user_dir *where,
		       const struct shunt_name *name)
{
	int dir = open_of(engine, where, false), fd;
	struct shunt_name file;

	if (dir < 0)
		return -ECONNREFUSED;
	name_of(where, name, &file);
	fd = shunt_meeting_dir_reach(engine, dir, file.text);
	shunt_own_fds_close(&engine->fds, dir);
	return fd;
}
