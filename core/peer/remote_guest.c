/* SPDX-License-Identifier: MIT */
#include "core/peer/remote_guest.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include "core/peer/link_make.h"
#include "core/peer/links.h"
#include "core/peer/rendezvous.h"
#include "core/service.h"
#include "core/stream/tuple.h"

struct guest {
	struct shunt_course course;
	struct shunt_seal seal;
};

static bool have_chance(struct shunt_engine *engine, struct remote_answer *answer)
{
	return engine->sys->getrandom(answer->chance, sizeof(answer->chance), GRND_NONBLOCK) ==
	       sizeof(answer->chance);
}

static struct guest *guest_make(const struct shunt_course *course)
{
	struct guest *guest = calloc(1, sizeof(*guest));

	if (guest)
		guest->course = *course;
	return guest;
}

int shunt_remote_guest_expect(struct shunt_remote_listener *gate, const struct shunt_course *course,
			      const struct remote_question *question, struct remote_answer *answer)
{
	const uint8_t *key = gate->engine->key;
	uint8_t shown[SHUNT_COOKIE_BYTES];
	struct guest *guest = guest_make(course);
	unsigned int bytes;
	int result;

	if (!guest)
		return -ENOMEM;
	answer->port = gate->port;
	result = key && !have_chance(gate->engine, answer) ? -EAGAIN :
		 shunt_remote_listener_expect(gate, guest, answer->cookie);
	if (result) {
		free(guest);
		return result;
	}
	bytes = shunt_remote_answer_make(answer, key, question);
	shunt_remote_words_bind(key, question, answer, false, &guest->seal, shown);
	shunt_remote_listener_show(gate, guest, shown);
	return (int)bytes;	/* at most sizeof(*answer) */
}

int shunt_remote_guest_invited(struct shunt_remote_listener *gate,
			       const struct shunt_course *course,
			       const uint8_t ticket[SHUNT_TICKET_BYTES])
{
	struct shunt_onward onward = { .process = gate->engine->identity, .gate = gate->port };
	uint8_t shown[SHUNT_COOKIE_BYTES];
	struct guest *guest = guest_make(course);
	int result;

	if (!guest)
		return -ENOMEM;
	result = shunt_remote_listener_expect(gate, guest, shown);
	if (result) {
		free(guest);
		return result;
	}
	memcpy(onward.ticket, ticket, sizeof(onward.ticket));
	shunt_remote_words_onward(gate->engine->key, &onward, false, &guest->seal, shown);
	shunt_remote_listener_show(gate, guest, shown);
	return 0;
}

/* A process of this host could only come for connections that are not between hosts. */
static bool is_outside(struct shunt_engine *engine, struct shunt_channel *channel)
{
	struct shunt_tuple ends = { 0 };

	if (shunt_channel_locate(channel))
		return false;
	memcpy(ends.local, channel->here, sizeof(ends.local));
	memcpy(ends.peer, channel->there, sizeof(ends.peer));
	return !shunt_tuple_is_local(&engine->fds, &ends);
}

void shunt_remote_guest_come(void *gate_arg, void *ticket_arg, int fd)
{
	struct shunt_service *service = gate_arg;
	struct guest guest = *(struct guest *)ticket_arg;
	struct shunt_channel channel;
	struct shunt_link *link;

	shunt_remote_guest_over(gate_arg, ticket_arg);
	shunt_channel_init(&channel, &service->engine->links, SHUNT_CHANNEL_TCP, fd);
	channel.course = guest.course;
	channel.seal = guest.seal;
	if (!is_outside(service->engine, &channel)) {
		atomic_fetch_add(&service->engine->turned_away, 1);
		shunt_channel_close(&channel);
		return;
	}
	link = shunt_link_create(service->engine, &channel, false, NULL);
	if (link)
		shunt_links_add(service, link);
}

void shunt_remote_guest_over(void *gate_arg, void *ticket_arg)
{
	(void)gate_arg;
	explicit_bzero(ticket_arg, sizeof(struct guest));
	free(ticket_arg);
}
