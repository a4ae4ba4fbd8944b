/* SPDX-License-Identifier: MIT */
#include "core/engine.h"
#include "core/peer/directory_owner.h"
#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include "core/peer/rendezvous.h"
#include "core/service.h"
#include "core/stream/tuple.h"

#ifndef SO_NETNS_COOKIE
#define SO_NETNS_COOKIE 71
#endif

/* Where the listener's user has its names. The witness wants the connection as the asker's end has it. */
static struct shunt_user_dir directory_of(struct shunt_engine *engine, int asker,
					  const struct shunt_tuple *asked)
{
	struct shunt_tuple from = shunt_tuple_reverse(asked);
	struct shunt_user_dir where = { .network = 0 };
	socklen_t length = sizeof(where.network);

	if (!shunt_user_dir_exists(engine) ||
	    !shunt_witness_listener(engine->service, &from, &where.user) ||
	    engine->sys->getsockopt(asker, SOL_SOCKET, SO_NETNS_COOKIE, &where.network, &length))
		where.network = 0;
	return where;
}

static struct shunt_rendezvous *find_ours(struct shunt_engine *engine,
					  const struct shunt_name *name)
{
	struct shunt_rendezvous *r;

	shunt_lock_take(&engine->rendezvous_lock);
	for (r = engine->rendezvous; r; r = r->next)
		if (r->fd >= 0 && shunt_rendezvous_is_among(&r->name, name, 1))
			break;
	shunt_lock_leave(&engine->rendezvous_lock);
	return r; /* none is ever taken out of the list */
}

static int owner_knock(struct shunt_engine *engine, const struct shunt_name *name,
		       const struct shunt_user_dir *where)
{
	struct shunt_name workers;
	bool strange;

	shunt_rendezvous_workers(name, &workers);
	return where ? shunt_rendezvous_knock_user_dir(engine, where, &workers, &strange) :
		       shunt_rendezvous_knock(engine, &workers, &strange);
}

int shunt_directory_owner_find(struct shunt_engine *engine, int asker,
			       const struct shunt_tuple *asked, struct shunt_rendezvous **ours)
{
	struct shunt_user_dir where = directory_of(engine, asker, asked);
	struct shunt_name names[SHUNT_NAMES];
	int count = shunt_rendezvous_names(asked->local, asked->local_port, names),
	    fd = -ECONNREFUSED;

	for (int i = 0; i < count && fd == -ECONNREFUSED; i++) {
		*ours = find_ours(engine, &names[i]);
		fd = *ours ? -EALREADY :
			     owner_knock(engine, &names[i], where.network ? &where : NULL);
	}
	/* An abstract name may be anybody's: it comes after those of the listener's user. */
	for (int i = 0; where.network && i < count && fd == -ECONNREFUSED; i++)
		fd = owner_knock(engine, &names[i], NULL);
	return fd;
}
