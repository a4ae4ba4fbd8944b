/* SPDX-License-Identifier: MIT */
/*
 * Why the way to a target is not the link, and what to do: rules, of which the first that holds is the cause. A rule looks
 * at what was measured, at what both ends have, and at the reason that an engine gave (core/base/reason_table.h). The
 * other end's word about itself is not checked.
 */
#include "tools/ping/ping.h"

#include <errno.h>
#include <string.h>

#include "core/base/reason.h"
#include "shunt/wire.h"
#include "tools/common/output.h"

#define LOCK_LEAST (8u << 20) /* bytes: a link's first memory regions, and the queues of its lanes */

struct rule {
	const char *key;
	bool (*holds)(const struct ping_way *way, char says[PING_SAYS_MAX]);
	const char *help;
};

static bool say(char says[PING_SAYS_MAX], const char *format, ...)
	__attribute__((format(printf, 2, 3)));

static bool say(char says[PING_SAYS_MAX], const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(says, PING_SAYS_MAX, format, args);
	va_end(args);
	return true;
}

/* A word of the other end, escaped. */
static const char *word(const json_t *object, const char *key, char text[64])
{
	return shunt_escape(ping_json_text(object, key), text, 64);
}

static bool has_reason(const struct ping_way *way, enum shunt_reason reason)
{
	const char *text = shunt_reason_text(reason);
	const json_t *far = json_object_get(json_object_get(way->end, "status"), "reasons");

	return !strcmp(ping_json_text(way->end, "reason"), text) || json_object_get(far, text);
}

/* This end's connection, and no other of the peer's. */
static bool is_because(const struct ping_way *way, enum shunt_cause cause)
{
	return !strcmp(ping_json_text(way->end, "reason"),
		       shunt_reason_text(shunt_reason_of(cause))) &&
	       !strcmp(ping_json_text(way->end, "detail"), shunt_cause_detail(cause));
}

static bool is_true(const json_t *object, const char *key)
{
	return json_is_true(json_object_get(object, key));
}

static bool is_remote(const struct ping_way *way)
{
	return !way->rendezvous.host;
}

/* --- TCP does not get there --- */

static bool unresolved(const struct ping_way *way, char *says)
{
	return way->target.why && say(says, "the name has no address: %s", way->target.why);
}

/* The interface to the target, and the RDMA device over it, at one end. */
static bool port_is_down(const json_t *machine, const char *interface, const char *where,
			 char *says)
{
	const json_t *device = ping_device_on(machine, interface);
	char name[64], state[64];

	if (!device || !strcmp(ping_json_text(device, "state"), "ACTIVE"))
		return false;
	return say(says, "the port of RDMA device %s on interface %s %s is %s",
		   word(device, "device", name), interface, where, word(device, "state", state));
}

static bool down_here(const struct ping_way *way, char *says)
{
	return (way->tcp.error || is_remote(way)) &&
	       port_is_down(way->here, way->interface, "here", says);
}

static bool refused(const struct ping_way *way, char *says)
{
	return way->tcp.error == ECONNREFUSED &&
	       say(says, "nobody listens at port %u", way->target.port);
}

static bool silent(const struct ping_way *way, char *says)
{
	return way->tcp.error == ETIMEDOUT && say(says, "no answer to TCP in time");
}

static bool no_tcp(const struct ping_way *way, char *says)
{
	return way->tcp.error && say(says, "TCP: %s", strerror(way->tcp.error));
}

/* --- the shunted end --- */

static bool no_end(const struct ping_way *way, char *says)
{
	if (way->end)
		return false;
	if (!says[0])
		say(says, "the shunted end said nothing");
	return true;
}

static bool end_failed(const struct ping_way *way, char *says)
{
	return *ping_json_text(way->end, "error") &&
	       say(says, "%s", ping_json_text(way->end, "error"));
}

static bool without_here(const struct ping_way *way, char *says)
{
	if (!is_true(way->here, "enabled"))
		return say(says, "Shunt is off here: SHUNT_ENABLE=0");
	return !strcmp(ping_json_text(way->here, "choice"), "none") &&
	       say(says, "no device is allowed here: SHUNT_DEVICE=none");
}

static bool without_there(const struct ping_way *way, char *says)
{
	if (way->far && !is_true(way->far, "enabled"))
		return say(says, "Shunt is off there: SHUNT_ENABLE=0");
	return way->far && !strcmp(ping_json_text(way->far, "choice"), "none") &&
	       say(says, "no device is allowed there: SHUNT_DEVICE=none");
}

/* --- a link that does not carry --- */

static bool large_lost(const struct ping_way *way, char *says)
{
	const json_t *here = ping_device_on(way->here, way->interface);
	const json_t *there = way->far ? ping_device_on(way->far,
							ping_json_text(way->far, "interface")) :
					 NULL;
	long long ours = json_integer_value(json_object_get(here, "mtu"));
	long long theirs = json_integer_value(json_object_get(there, "mtu"));

	if (!is_true(way->end, "on_link") || is_true(way->end, "large_on_link"))
		return false;
	if (here && there && ours != theirs)
		return say(says,
			   "small packets pass and large ones are lost: MTU %lld here, %lld there",
			   ours, theirs);
	return say(says, "small packets pass and large ones are lost%s",
		   here && there ? ": the path takes less than the MTU of both ends" : "");
}

static bool no_ack(const struct ping_way *way, char *says)
{
	return ping_time(way->end, "setup_ns") != PING_NEVER &&
	       ping_time(way->end, "write_ns") == PING_NEVER &&
	       say(says, "the link came up, and the peer's device does not acknowledge a WRITE");
}

/* --- no link --- */

static bool other_version(const struct ping_way *way, char *says)
{
	if (way->rendezvous.answer == PING_OTHER_VERSION)
		return say(says, "the peer speaks wire version %u, this end %u",
			   way->rendezvous.version, SHUNT_WIRE_VERSION);
	return has_reason(way, SHUNT_REASON_VERSION) &&
	       say(says, "%s", shunt_reason_text(SHUNT_REASON_VERSION));
}

/* Does the other end see the connection with the addresses that it has here? */
static bool differs(const struct ping_way *way, const char *there, const char *here)
{
	const char *ours = ping_json_text(way->end, here);

	return way->far && *ours && strcmp(ping_json_text(way->far, there), ours);
}

static bool translated(const struct ping_way *way, char *says)
{
	char text[64];

	if (differs(way, "local", "peer"))
		return say(
			says,
			"addresses are translated in between: this end asks for %s, and reaches %s",
			ping_json_text(way->end, "peer"), word(way->far, "local", text));
	if (differs(way, "peer", "local"))
		return say(says,
			   "addresses are translated in between: the peer sees %s, this end has %s",
			   word(way->far, "peer", text), ping_json_text(way->end, "local"));
	return has_reason(way, SHUNT_REASON_TRANSLATED) &&
	       say(says, "addresses are translated in between");
}

static bool other_namespace(const struct ping_way *way, char *says)
{
	if (!way->far ||
	    strcmp(ping_json_text(way->far, "boot"), ping_json_text(way->here, "boot")) ||
	    json_equal(json_object_get(way->far, "network"), json_object_get(way->here, "network")))
		return false;
	return say(says, "the peer is on this host, in another network namespace");
}

static bool lacks_device(const json_t *machine, const char *interface, const char *where,
			 char *says)
{
	char name[64];

	if (!json_array_size(json_object_get(machine, "devices")))
		return say(says, "there is no RDMA device %s", where);
	return interface[0] && !ping_device_on(machine, interface) &&
	       say(says, "there is no RDMA device on interface %s %s, by which the route leads",
		   shunt_escape(interface, name, sizeof(name)), where);
}

static bool no_device_here(const struct ping_way *way, char *says)
{
	return is_remote(way) && lacks_device(way->here, way->interface, "here", says);
}

static bool no_device_there(const struct ping_way *way, char *says)
{
	return is_remote(way) && way->far &&
	       lacks_device(way->far, ping_json_text(way->far, "interface"), "there", says);
}

static bool down_there(const struct ping_way *way, char *says)
{
	char name[64];

	return is_remote(way) && way->far &&
	       port_is_down(way->far, word(way->far, "interface", name), "there", says);
}

static bool no_key(const struct ping_way *way, char *says)
{
	if (way->rendezvous.answer == PING_NO_KEY)
		return say(says, "there is no usable key here%s%s",
			   way->rendezvous.why[0] ? ": " : "", way->rendezvous.why);
	if (way->far && is_true(way->far, "wants_key") && !is_true(way->far, "key"))
		return say(says, "there is no key there, where SHUNT_TRUST=key wants one");
	return is_because(way, SHUNT_CAUSE_NO_KEY) && say(says, "there is no usable key here");
}

static bool other_key(const struct ping_way *way, char *says)
{
	const char *ours = is_true(way->here, "key") ? "one" : "none";

	if (way->rendezvous.answer != PING_OTHER_KEY && !has_reason(way, SHUNT_REASON_KEY))
		return false;
	if (way->far && is_true(way->far, "key") != is_true(way->here, "key"))
		return say(says, "this end has %s key, the other %s",
			   is_true(way->here, "key") ? "a" : "no",
			   is_true(way->far, "key") ? "has one" : "has none");
	return say(says, "the peer's host has another key, or none; this end has %s", ours);
}

static bool firewall(const struct ping_way *way, char *says)
{
	return way->rendezvous.answer == PING_SILENT && is_remote(way) && way->far &&
	       say(says, "TCP works and RDMA gets no answer: UDP port 4791 (RoCE) does not pass");
}

static bool host_silent(const struct ping_way *way, char *says)
{
	return way->rendezvous.answer == PING_SILENT && is_remote(way) &&
	       say(says,
		   "TCP works and RDMA gets no answer: there is no RDMA device there, or UDP port 4791 "
		   "(RoCE) does not pass");
}

static bool lacks_memory(const json_t *machine, const char *where, bool said, char *says)
{
	const json_t *limit = json_object_get(machine, "memlock");
	uint64_t bytes = (uint64_t)json_integer_value(limit);

	if (!json_is_integer(limit) || (bytes >= LOCK_LEAST && !said))
		return false;
	return say(says, "too little memory may be locked %s: %llu KiB (ulimit -l)", where,
		   (unsigned long long)bytes >> 10);
}

static bool memory_here(const struct ping_way *way, char *says)
{
	bool said = !strcmp(ping_json_text(way->end, "reason"),
			    shunt_reason_text(SHUNT_REASON_NOT_LOCKED));

	return is_remote(way) && lacks_memory(way->here, "here", said, says);
}

static bool memory_there(const struct ping_way *way, char *says)
{
	return is_remote(way) && way->far &&
	       lacks_memory(way->far, "there", has_reason(way, SHUNT_REASON_NOT_LOCKED), says);
}

static bool shut(const struct ping_way *way, char *says)
{
	char text[SHUNT_CAUSE_ROOM];

	if (way->rendezvous.answer == PING_SHUT)
		return say(says, "the peer's process does not let this user's in");
	if (!has_reason(way, SHUNT_REASON_TRUST))
		return false;
	if (strcmp(ping_json_text(way->end, "reason"), shunt_reason_text(SHUNT_REASON_TRUST)) != 0)
		return say(says, "%s", shunt_reason_text(SHUNT_REASON_TRUST));
	return say(says, "%s", shunt_reason_said(way->end, text, sizeof(text)));
}

static bool nobody(const struct ping_way *way, char *says)
{
	return (way->rendezvous.answer == PING_NOBODY || has_reason(way, SHUNT_REASON_NO_SHUNT)) &&
	       say(says, "no shunted process listens at port %u", way->target.port);
}

static bool unasked(const struct ping_way *way, char *says)
{
	if (way->rendezvous.answer == PING_NO_DEVICE)
		return say(says, "no RDMA device leads to the peer");
	return way->rendezvous.answer == PING_UNASKED && way->rendezvous.why[0] &&
	       say(says, "the peer's host cannot be asked: %s", way->rendezvous.why);
}

static bool unused(const struct ping_way *way, char *says)
{
	return is_because(way, SHUNT_CAUSE_PEER_UNUSED) &&
	       say(says, "the program there has not used the connection in time");
}

static bool engine_says(const struct ping_way *way, char *says)
{
	static const char *const keys[] = { "left", "engine_reason", "waits_for" };
	char said[PING_SAYS_MAX];

	if (*shunt_reason_said(way->end, said, sizeof(said)))
		return say(says, "%s", said);
	for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++)
		if (*ping_json_text(way->end, keys[i]))
			return say(says, "%s%s", i == 2 ? "it waits for " : "",
				   ping_json_text(way->end, keys[i]));
	return say(says, "the engine does not say why");
}

/* --- the rules --- */

static const struct rule tcp_rules[] = {
	{ "unresolved", unresolved, "check the name" },
	{ "port-down", down_here, "bring the interface up: ip link set INTERFACE up" },
	{ "refused", refused, "start the service there, or `shunt ping --serve`" },
	{ "silent", silent, "check the host, the route and firewalls" },
	{ "unreachable", no_tcp, "check the address and the route" },
};

static const struct rule link_rules[] = {
	{ "end", no_end, "" },
	{ "end", end_failed, "" },
	{ "device-none", without_here, "unset the variable" },
	{ "mtu", large_lost,
	  "give both ends and all switches between one MTU: ip link set INTERFACE mtu N" },
	{ "no-ack", no_ack,
	  "let UDP port 4791 pass in both directions, and check the MTU of the path" },
	{ "other-version", other_version,
	  "install one version of Shunt at both ends, and start the programs anew" },
	{ "translated", translated, "use the address that the host itself has" },
	{ "namespace", other_namespace, "mount one directory in both, and name it in SHUNT_DIR" },
	{ "no-device", no_device_here,
	  "add one: rdma link add rxe0 type rxe netdev INTERFACE, or the driver of the card" },
	{ "port-down", down_here, "bring the interface up: ip link set INTERFACE up" },
	{ "device-none", without_there, "unset the variable there" },
	{ "no-device", no_device_there,
	  "add one there: rdma link add rxe0 type rxe netdev INTERFACE, or the driver of the card" },
	{ "port-down", down_there, "bring the interface up there: ip link set INTERFACE up" },
	{ "no-key", no_key,
	  "name a file with mode 600 in SHUNT_KEY, with the same bytes at both ends" },
	{ "other-key", other_key, "give both ends the same file in SHUNT_KEY, or neither" },
	{ "firewall", firewall,
	  "let UDP port 4791 pass in both directions at both hosts and in between" },
	{ "host-silent", host_silent,
	  "run `shunt ping --serve` there: the answering end can tell" },
	{ "memlock", memory_here,
	  "raise the limit: ulimit -l unlimited, or LimitMEMLOCK= of the unit" },
	{ "memlock", memory_there,
	  "raise the limit there: ulimit -l unlimited, or LimitMEMLOCK= of the unit" },
	{ "other-user", shut, "run both as one user, or with SHUNT_TRUST=host" },
	{ "no-shunt", nobody, "start the program there with `shunt run`" },
	{ "unasked", unasked, "load rdma_ucm and install librdmacm" },
	{ "unused", unused, "let the program accept and use its connections, or raise claim_ms" },
	{ "reason", engine_says, "docs/CARRIED.md lists the reasons" },
};

static bool apply(struct ping_way *way, const struct rule *rules, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (rules[i].holds(way, way->cause.says)) {
			way->cause.key = rules[i].key;
			way->cause.help = rules[i].help;
			return true;
		}
	return false;
}

static bool is_carried(const struct ping_way *way)
{
	if (strcmp(ping_json_text(way->end, "state"), "linked"))
		return false;
	if (is_true(way->end, "ours"))
		return is_true(way->end, "on_link") && is_true(way->end, "large_on_link");
	return ping_time(way->end, "write_ns") != PING_NEVER;
}

void ping_cause(struct ping_way *way)
{
	way->cause.key = "link";
	way->cause.help = "";
	if (way->target.why || way->tcp.error) {
		way->verdict = PING_UNREACHABLE;
		apply(way, tcp_rules, sizeof(tcp_rules) / sizeof(tcp_rules[0]));
	} else if (is_carried(way)) {
		way->verdict = PING_LINK;
		way->cause.says[0] = '\0';
	} else {
		way->verdict = PING_TCP;
		apply(way, link_rules, sizeof(link_rules) / sizeof(link_rules[0]));
	}
}
