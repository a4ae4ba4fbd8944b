/* SPDX-License-Identifier: MIT */
/*
 * The listener of an address is found as an engine finds it (docs/dev/PROTOCOL.md): within a host by
 * abstract name, between hosts by the connection manager. Here the version of the wire and the
 * reason of a refusal are not lost. A name is a hint: anybody may have it.
 */
#include "tools/ping/ping.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "core/base/address.h"
#include "core/base/keyfile.h"
#include "core/device/cm/cm.h"
#include "core/loop/endpoint.h"
#include "core/peer/remote_words.h"
#include "core/peer/rendezvous.h"
#include "tools/ask/guard.h"
#include "tools/perf/end/perf_end.h"
#include "tools/shunt.h"

static uint64_t now_ms(void)
{
	return perf_now() / 1000000;
}

/* --- within one host --- */

static int dial(const struct shunt_name *name)
{
	int fd = shunt_guard_socket(SOCK_SEQPACKET);
	struct sockaddr_un address;
	socklen_t length = shunt_endpoint_address(name->text + 1, &address);

	if (fd >= 0 && !connect(fd, (struct sockaddr *)&address, length))
		return fd;
	if (fd >= 0)
		shunt_guard_close(fd);
	return -1;
}

/* The first that the owner says is its KNOCK, which has the version in every version. */
static enum ping_answer hear_knock(int fd, unsigned int wait_ms, uint32_t *version)
{
	struct pollfd wait = { .fd = fd, .events = POLLIN };
	struct shunt_message message = { 0 };
	ssize_t got;

	if (poll(&wait, 1, (int)wait_ms) <= 0)
		return PING_SILENT;
	got = shunt_guard_recv(fd, &message, sizeof(message), MSG_TRUNC);
	if (got < (ssize_t)offsetof(struct shunt_message, knock.proves))
		return PING_SHUT;
	if (message.knock.magic != SHUNT_WIRE_MAGIC)
		return PING_SHUT;
	*version = message.knock.version;
	return *version == SHUNT_WIRE_VERSION ? PING_SOUND : PING_OTHER_VERSION;
}

static void ask_host(const struct ping_target *target, unsigned int wait_ms,
		     struct ping_rendezvous *rendezvous)
{
	struct shunt_name names[SHUNT_NAMES];
	struct sockaddr_storage storage = { 0 };
	uint64_t begun = perf_now();
	uint8_t address[16];
	uint16_t port;
	int count, fd = -1;

	memcpy(&storage, &target->address, sizeof(target->address));
	rendezvous->host = true;
	rendezvous->answer = PING_NOBODY;
	if (shunt_address_of(&storage, address, &port))
		return;
	count = shunt_rendezvous_names(address, port, names);
	for (int i = 0; i < count && fd < 0; i++)
		fd = dial(&names[i]);
	if (fd < 0)
		return;
	rendezvous->answer = hear_knock(fd, wait_ms, &rendezvous->version);
	rendezvous->ns = perf_now() - begun;
	shunt_guard_close(fd);
	shunt_guard_settle();
}

/* --- between hosts --- */

struct asking {
	struct ping_rendezvous *rendezvous;
	struct remote_question question;
	const uint8_t *key;
	uint64_t begun;
	bool over;
	bool again;
};

static enum ping_answer answer_of(int status)
{
	switch (status) {
	case -ECONNREFUSED:
	case -EPROTO:
		return PING_NOBODY;
	case -ETIMEDOUT:
		return PING_SILENT;
	case -ENODEV:
		return PING_NO_DEVICE;
	default:
		return PING_UNASKED;
	}
}

static enum ping_answer read_answer(const struct asking *asking, const uint8_t *given,
				    unsigned int bytes)
{
	struct remote_answer answer;

	switch (shunt_remote_answer_read(&answer, asking->key, &asking->question, given, bytes)) {
	case SHUNT_REMOTE_SOUND:
		asking->rendezvous->version = SHUNT_WIRE_VERSION;
		return PING_SOUND;
	case SHUNT_REMOTE_OTHER_VERSION:
		asking->rendezvous->version = answer.version;
		return PING_OTHER_VERSION;
	case SHUNT_REMOTE_OTHER_KEY:
		asking->rendezvous->version = SHUNT_WIRE_VERSION;
		return PING_OTHER_KEY;
	default:
		return PING_NOBODY;
	}
}

static void answered(void *arg, int status, const uint8_t *given, unsigned int bytes,
		     const struct cm_route *route)
{
	struct asking *asking = arg;
	struct ping_rendezvous *rendezvous = asking->rendezvous;

	asking->over = true;
	asking->again = status == -EAGAIN;
	rendezvous->ns = perf_now() - asking->begun;
	rendezvous->answer = status ? answer_of(status) : read_answer(asking, given, bytes);
	if (rendezvous->answer == PING_UNASKED)
		snprintf(rendezvous->why, sizeof(rendezvous->why), "%s", strerror(-status));
	if (route)
		snprintf(rendezvous->device, sizeof(rendezvous->device), "%s", route->device);
}

static void ask_once(struct cm *cm, const struct ping_target *target,
		     const struct ping_options *options, struct asking *asking, unsigned int bytes)
{
	union ping_address from;
	bool bound = options->from && !ping_address_parse(options->from, &from);
	int rc;

	asking->over = asking->again = false;
	asking->begun = perf_now();
	rc = cm_ask(cm, bound ? &from.any : NULL, &target->address.any, &asking->question, bytes,
		    now_ms() + options->wait_ms, asking, NULL);
	if (rc) {
		answered(asking, rc, NULL, 0, NULL);
		return;
	}
	while (!asking->over) {
		struct pollfd wait = { .fd = cm_fd(cm), .events = POLLIN };
		uint64_t due = cm_next_deadline(cm), now = now_ms();

		poll(&wait, 1, due == CM_NEVER ? 1000 : due > now ? (int)(due - now) : 0);
		cm_step(cm, now_ms());
	}
}

static void ask_remote(const struct ping_target *target, const struct ping_options *options,
		       struct ping_rendezvous *rendezvous)
{
	static const struct cm_callbacks callbacks = { .answer = answered };
	struct asking asking = { .rendezvous = rendezvous };
	uint8_t chance[SHUNT_REMOTE_CHANCE];
	const char *why = NULL;
	unsigned int bytes;
	struct cm cm = { 0 };

	if (options->config.key_file[0]) {
		asking.key = shunt_keyfile_read(options->config.key_file, &why);
		if (!asking.key) {
			rendezvous->answer = PING_NO_KEY;
			snprintf(rendezvous->why, sizeof(rendezvous->why), "%s", why);
			return;
		}
	} else if (options->config.trust == SHUNT_TRUST_KEY) {
		rendezvous->answer = PING_NO_KEY;
		return;
	}
	if (getrandom(chance, sizeof(chance), 0) != sizeof(chance) ||
	    cm_open(&cm, &callbacks, NULL)) {
		rendezvous->answer = PING_UNASKED;
		snprintf(rendezvous->why, sizeof(rendezvous->why), "%s", cm.error);
		return;
	}
	bytes = shunt_remote_question_make(&asking.question, asking.key, chance);
	do
		ask_once(&cm, target, options, &asking, bytes);
	while (asking.again);
	cm_close(&cm);
}

void ping_ask(const struct ping_target *target, const struct ping_options *options,
	      struct ping_rendezvous *rendezvous)
{
	*rendezvous = (struct ping_rendezvous) { .ns = PING_NEVER };
	if (ping_address_is_ours(&target->address))
		ask_host(target, options->wait_ms, rendezvous);
	else
		ask_remote(target, options, rendezvous);
	if (rendezvous->answer != PING_SOUND && !rendezvous->version)
		rendezvous->ns = PING_NEVER;
}
