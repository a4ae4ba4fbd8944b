/* SPDX-License-Identifier: MIT */
#include "core/stream/spare_option.h"
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include "core/base/config.h"
#include "core/base/sys.h"
#include "core/fd/own_fds.h"
#include "core/loop/loop.h"
#include "core/poll/group.h"
#include "core/stream/births.h"
#include "core/stream/spare.h"
#include "core/stream/stream.h"

#define LINGER (1u << 14) /* SO_LINGER, which a connector may have set */
#define OTHER (1u << 15) /* an option that is not one of these */
#define LAZY 0x1fu /* the first five: a stale value changes nothing on a link, so it stays until somebody asks for it */

/* Values are integers. They are put back when the program closes the connection. */
static const struct {
	int level, name;
} options[SHUNT_SPARE_OPTIONS] = {
	{ IPPROTO_TCP, TCP_NODELAY },	   { SOL_SOCKET, SO_KEEPALIVE },
	{ IPPROTO_TCP, TCP_KEEPIDLE },	   { IPPROTO_TCP, TCP_KEEPINTVL },
	{ IPPROTO_TCP, TCP_KEEPCNT },	   { SOL_SOCKET, SO_REUSEADDR },
	{ SOL_SOCKET, SO_PRIORITY },	   { IPPROTO_IP, IP_TOS },
	{ IPPROTO_TCP, TCP_USER_TIMEOUT }, { SOL_SOCKET, SO_OOBINLINE },
};

static int number_of(int level, int name)
{
	for (int i = 0; i < SHUNT_SPARE_OPTIONS; i++)
		if (options[i].level == level && options[i].name == name)
			return i;
	return -1;
}

static bool ask(const struct shunt_sys *sys, int fd, int i, int *value)
{
	socklen_t length = sizeof(*value);

	return !sys->getsockopt(fd, options[i].level, options[i].name, value, &length);
}

static bool put(const struct shunt_sys *sys, int fd, int i, int value)
{
	return !sys->setsockopt(fd, options[i].level, options[i].name, &value, sizeof(value));
}

static void note_first(const struct shunt_sys *sys, struct shunt_spare *spare, int fd, int i)
{
	if (!(spare->known & 1u << i) && ask(sys, fd, i, &spare->first[i]))
		spare->known |= (uint16_t)(1u << i);
}

uint16_t shunt_spare_option_bit(int level, int name)
{
	int i = number_of(level, name);

	if (level == SOL_SOCKET && name == SO_LINGER)
		return LINGER;
	return (uint16_t)(i < 0 ? OTHER : 1u << i);
}

void shunt_spare_option_changes(struct shunt_stream *stream, int level, int name)
{
	int i, saved = errno;

	if (stream->group->config->born == SHUNT_BORN_OFF)
		return;
	i = number_of(level, name);
	if (i >= 0 && stream->spare)
		note_first(stream->group->sys, stream->spare, stream->fd, i);
	atomic_fetch_or(&stream->options.changed, shunt_spare_option_bit(level, name));
	errno = saved;
}

/* Of those that were changed before it was a spare: as a new socket has them, or the listener. */
static bool learn_first(struct shunt_stream *stream)
{
	const struct shunt_sys *sys = stream->group->sys;
	struct shunt_fds *fds = stream->group->loop->fds;
	uint16_t changed = atomic_load(&stream->options.changed);
	struct shunt_spare *spare = stream->spare;
	int from = -1, kept = -1;

	changed &= (uint16_t)~LINGER;
	if (!(changed & ~spare->known))
		return true;
	if (stream->role == SHUNT_ACCEPTOR) {
		shunt_lock_take(&stream->group->lock);
		if (spare->births->listener)
			from = atomic_load(&spare->births->listener->fd);
		shunt_lock_leave(&stream->group->lock);
	} else {
		from = kept = shunt_own_fds_make(
			fds, sys->socket(spare->peer.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0));
	}
	for (int i = 0; from >= 0 && i < SHUNT_SPARE_OPTIONS; i++)
		if (changed & 1u << i)
			note_first(sys, spare, from, i);
	shunt_own_fds_close(fds, kept);
	return !(changed & ~spare->known);
}

bool shunt_spare_option_put_back(struct shunt_stream *stream)
{
	const struct shunt_sys *sys = stream->group->sys;
	const struct linger none = { 0, 0 };
	uint16_t changed = atomic_load(&stream->options.changed);
	struct shunt_spare *spare = stream->spare;

	if (!learn_first(stream))
		return false;
	if (changed & LINGER &&
	    sys->setsockopt(spare->fd, SOL_SOCKET, SO_LINGER, &none, sizeof(none)))
		return false;
	spare->stale |= changed & spare->noted & LAZY;
	changed &= (uint16_t)~spare->stale;
	for (int i = 0; i < SHUNT_SPARE_OPTIONS; i++)
		if (changed & 1u << i && !put(sys, spare->fd, i, spare->first[i]))
			return false;
	return true;
}

/* The socket is given the first values of these. tx.lock held. */
static void freshen(struct shunt_stream *stream, uint16_t which)
{
	struct shunt_spare *spare = stream->spare;

	shunt_assert_held(&stream->tx.lock);
	which &= spare->stale;
	for (int i = 0; which && i < SHUNT_SPARE_OPTIONS; i++)
		if (which & 1u << i)
			put(stream->group->sys, stream->fd, i, spare->first[i]);
	spare->stale &= (uint16_t)~which;
	spare->noted &= (uint16_t)~which;
}

bool shunt_spare_option_any(const struct shunt_stream *stream)
{
	return stream->spare;
}

bool shunt_spare_option_has(struct shunt_stream *stream, int level, int name, int value)
{
	int i = stream->spare ? number_of(level, name) : -1;
	struct shunt_spare *spare;
	bool has = false;

	if (i < 0)
		return false;
	shunt_lock_take(&stream->tx.lock);
	spare = stream->spare;
	if (spare && spare->stale & 1u << i && spare->last[i] == value) {
		spare->stale &= (uint16_t)~(1u << i);
		has = true;
	}
	shunt_lock_leave(&stream->tx.lock);
	return has;
}

void shunt_spare_option_note(struct shunt_stream *stream, int level, int name, int value)
{
	int i = stream->spare ? number_of(level, name) : -1;

	if (i < 0)
		return;
	shunt_lock_take(&stream->tx.lock);
	if (stream->spare) {
		stream->spare->last[i] = value;
		stream->spare->noted |= (uint16_t)(1u << i);
		stream->spare->stale &= (uint16_t)~(1u << i);
	}
	shunt_lock_leave(&stream->tx.lock);
}

void shunt_spare_option_freshen(struct shunt_stream *stream, uint16_t which)
{
	int saved = errno;

	if (!stream->spare)
		return;
	shunt_lock_take(&stream->tx.lock);
	if (stream->spare && stream->fd >= 0)
		freshen(stream, which);
	shunt_lock_leave(&stream->tx.lock);
	errno = saved;
}

void shunt_spare_option_shows(struct shunt_stream *stream, int level, int name)
{
	if (stream->spare)
		shunt_spare_option_freshen(stream, shunt_spare_option_bit(level, name));
}

bool shunt_spare_option_may_keep(const struct shunt_stream *stream)
{
	uint16_t unknown = stream->role == SHUNT_CONNECTOR ? OTHER : OTHER | LINGER;

	return !(atomic_load(&stream->options.changed) & unknown);
}

bool shunt_spare_option_lingers_not(const struct shunt_stream *stream)
{
	return stream->spare && stream->spare->again && !shunt_stream_is_shared(stream) &&
	       !(atomic_load(&stream->options.changed) & LINGER);
}

bool shunt_spare_option_may_carry(const struct shunt_stream *fresh)
{
	return !(atomic_load(&fresh->options.changed) & (OTHER | LINGER));
}

bool shunt_spare_option_carry(struct shunt_stream *fresh, int fd, struct shunt_stream *stream)
{
	const struct shunt_sys *sys = stream->group->sys;
	uint16_t changed = atomic_load(&fresh->options.changed);
	struct shunt_spare *spare = stream->spare;
	int value;

	for (int i = 0; i < SHUNT_SPARE_OPTIONS; i++) {
		if (!(changed & 1u << i))
			continue;
		if (!(spare->stale & 1u << i))
			note_first(sys, spare, spare->fd, i);
		if (!ask(sys, fd, i, &value))
			return false;
		if (!(spare->stale & 1u << i && spare->last[i] == value) &&
		    !put(sys, spare->fd, i, value))
			return false;
		spare->last[i] = value;
		spare->noted |= (uint16_t)(1u << i);
		spare->stale &= (uint16_t)~(1u << i);
	}
	atomic_store(&stream->options.changed, changed);
	return true;
}
