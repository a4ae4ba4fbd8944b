/* SPDX-License-Identifier: MIT */
#include "core/link/patience.h"
#include "core/base/sys.h"
#include "core/loop/loop.h"
#include "core/link/link.h"
#include "core/poll/group.h"

#define RETURNS 16	/* times slower than it is spent */
#define OURS 2000000000ull	/* ns that our own service thread may take to end a link */
#define LEAST 50000000ull	/* ns that a peer which is no stranger has in any case */

bool shunt_patience_strange(const struct shunt_link *link)
{
	return link->channel.kind == SHUNT_CHANNEL_UNIX &&
	       (link->channel.proves || link->channel.other_netns);
}

/* group.lock held. */
static void settle(struct shunt_patience *patience, uint64_t now)
{
	uint64_t gone = now > patience->since ? now - patience->since : 0;

	if (atomic_load(&patience->asked))
		patience->spent += gone;
	else
		patience->spent -= patience->spent < gone / RETURNS ? patience->spent :
								      gone / RETURNS;
	patience->since = now;
}

/* The service thread has to look when it is over. */
void shunt_patience_begin(struct shunt_link *link)
{
	struct shunt_patience *patience = &link->patience;
	struct shunt_group *group = link->device->group;
	bool first;

	shunt_lock_take(&group->lock);
	first = !atomic_load(&patience->asked);
	if (first)
		settle(patience, group->sys->now());
	atomic_fetch_add(&patience->asked, 1);
	shunt_lock_leave(&group->lock);
	if (first && shunt_patience_strange(link))
		shunt_loop_wake(group->loop);
}

void shunt_patience_end(struct shunt_link *link)
{
	struct shunt_patience *patience = &link->patience;
	struct shunt_group *group = link->device->group;

	shunt_lock_take(&group->lock);
	settle(patience, group->sys->now());
	if (atomic_load(&patience->asked))
		atomic_fetch_sub(&patience->asked, 1);
	shunt_lock_leave(&group->lock);
}

uint64_t shunt_patience_due(struct shunt_link *link)
{
	struct shunt_patience *patience = &link->patience;
	struct shunt_group *group = link->device->group;
	uint64_t due = SHUNT_NEVER;

	if (!atomic_load(&patience->asked) || !shunt_patience_strange(link))
		return due;
	shunt_lock_take(&group->lock);
	if (atomic_load(&patience->asked))
		due = patience->since + SHUNT_PATIENCE_STRANGE -
		      (patience->spent < SHUNT_PATIENCE_STRANGE ? patience->spent :
								  SHUNT_PATIENCE_STRANGE);
	shunt_lock_leave(&group->lock);
	return due;
}

/* The service thread ends a stranger's link long before. */
uint64_t shunt_patience_until(struct shunt_link *link)
{
	struct shunt_group *group = link->device->group;
	uint64_t now = group->sys->now(), spent;

	if (shunt_patience_strange(link))
		return now + SHUNT_PATIENCE_STRANGE + OURS;
	settle(&link->patience, now);
	spent = link->patience.spent;
	return now + (spent + LEAST < SHUNT_PATIENCE ? SHUNT_PATIENCE - spent : LEAST);
}
