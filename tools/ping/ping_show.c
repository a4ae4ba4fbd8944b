/* SPDX-License-Identifier: MIT */
/* One target as text, and as JSON. */
#include "tools/ping/ping.h"

#include <string.h>

#include "core/api.h"
#include "tools/common/output.h"

const char *const ping_verdict_words[] = { "link", "tcp", "unreachable" };

static const char *const answer_words[] = {
	"not asked",
	"answers",
	"no shunted process listens there",
	"no answer",
	"no RDMA device leads there",
	"another wire version",
	"another key",
	"no key here",
	"does not let us in",
};

static const char *const answer_keys[] = {
	"unasked",	 "sound",     "nobody", "silent", "no-device",
	"other-version", "other-key", "no-key", "shut",
};

const char *ping_time_text(uint64_t ns, char text[24])
{
	double us = (double)ns / 1000;

	if (ns == PING_NEVER)
		strcpy(text, "-");
	else if (us < 1000)
		snprintf(text, 24, "%.1f us", us);
	else if (us < 1e6)
		snprintf(text, 24, "%.2f ms", us / 1000);
	else
		snprintf(text, 24, "%.2f s", us / 1e6);
	return text;
}

static void line(const char *what, uint64_t ns, const char *note)
{
	char text[24];

	printf("  %-24s%10s%s%s\n", what, ping_time_text(ns, text), *note ? "  " : "", note);
}

static void show_tcp(const struct ping_way *way)
{
	line("TCP connect", way->tcp.connect_ns, "");
	line("TCP round trip", way->tcp.rtt_ns, "as the kernel measured it");
}

static void show_rendezvous(const struct ping_way *way)
{
	const struct ping_rendezvous *rendezvous = &way->rendezvous;
	char note[256] = "", version[40] = "";

	if (rendezvous->version)
		snprintf(version, sizeof(version), ", wire version %u", rendezvous->version);
	snprintf(note, sizeof(note), "%s%s%s%s", answer_words[rendezvous->answer], version,
		 rendezvous->device[0] ? ", asked by " : "", rendezvous->device);
	line("rendezvous", rendezvous->ns, note);
}

static void show_link(const struct ping_way *way)
{
	long long lanes = json_integer_value(json_object_get(way->end, "lanes"));
	char name[64], note[128];

	snprintf(note, sizeof(note), "device %s, %lld queue pair%s",
		 shunt_escape(ping_json_text(way->end, "device"), name, sizeof(name)), lanes,
		 lanes == 1 ? "" : "s");
	line("link set-up", ping_time(way->end, "setup_ns"), note);
	line("empty WRITE", ping_time(way->end, "write_ns"), "");
	if (ping_time(way->end, "echo_ns") != PING_NEVER)
		line("64 bytes by the link", ping_time(way->end, "echo_ns"),
		     "there and back, through both programs");
}

void ping_show(const struct ping_way *way)
{
	char name[PING_TARGET_MAX], address[PING_ADDRESS_TEXT] = "", says[PING_SAYS_MAX];

	if (!way->target.why)
		ping_address_text(&way->target.address, address);
	printf("%s (%s port %u): %s\n", shunt_escape(way->target.text, name, sizeof(name)),
	       *address ? address : "no address", way->target.port,
	       way->verdict == PING_LINK ? "on the link" :
	       way->verdict == PING_TCP	 ? "on TCP" :
					   "unreachable");
	if (way->verdict != PING_UNREACHABLE) {
		show_tcp(way);
		show_rendezvous(way);
	}
	if (ping_time(way->end, "setup_ns") != PING_NEVER)
		show_link(way);
	if (ping_time(way->end, "tcp_echo_ns") != PING_NEVER)
		line("64 bytes by TCP", ping_time(way->end, "tcp_echo_ns"), "");
	if (way->verdict == PING_LINK)
		return;
	printf("  why: ");
	shunt_print_wrapped(7, 7, shunt_escape(way->cause.says, says, sizeof(says)));
	if (*way->cause.help) {
		printf("  do:  ");
		shunt_print_wrapped(7, 7, way->cause.help);
	}
}

/* --- JSON --- */

static void put_time(json_t *object, const char *key, uint64_t ns)
{
	json_object_set_new(object, key,
			    ns == PING_NEVER ? json_null() : json_integer((json_int_t)ns));
}

/* Times that the shunted end measured, and nothing that it only heard. */
static void copy_times(json_t *object, const json_t *end)
{
	static const char *const times[] = { "setup_ns", "upgrade_ns",	"write_ns",
					     "echo_ns",	 "tcp_echo_ns", "large_ns" };

	for (size_t i = 0; i < sizeof(times) / sizeof(times[0]); i++)
		put_time(object, times[i], ping_time(end, times[i]));
}

static json_t *link_json(const struct ping_way *way)
{
	static const char *const texts[] = { "device", "state", "reason", "detail", "left" };
	json_t *link = json_object();

	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
		json_object_set_new(link, texts[i],
				    json_string(ping_json_text(way->end, texts[i])));
	json_object_set_new(link, "lanes",
			    json_integer(json_integer_value(json_object_get(way->end, "lanes"))));
	copy_times(link, way->end);
	return link;
}

json_t *ping_json(const struct ping_way *way)
{
	char address[PING_ADDRESS_TEXT] = "";
	json_t *object = json_object(), *tcp = json_object(), *rendezvous = json_object();

	if (!way->target.why)
		ping_address_text(&way->target.address, address);
	json_object_set_new(object, "target", json_string(way->target.text));
	json_object_set_new(object, "address", json_string(address));
	json_object_set_new(object, "port", json_integer(way->target.port));
	json_object_set_new(object, "interface", json_string(way->interface));
	json_object_set_new(object, "verdict", json_string(ping_verdict_words[way->verdict]));
	json_object_set_new(object, "cause", json_string(way->cause.key));
	json_object_set_new(object, "says", json_string(way->cause.says));
	json_object_set_new(object, "help", json_string(way->cause.help));
	put_time(tcp, "connect_ns", way->tcp.connect_ns);
	put_time(tcp, "rtt_ns", way->tcp.rtt_ns);
	json_object_set_new(object, "tcp", tcp);
	json_object_set_new(rendezvous, "answer", json_string(answer_keys[way->rendezvous.answer]));
	json_object_set_new(rendezvous, "way",
			    json_string(way->rendezvous.host		  ? "host" :
					way->tcp.error || way->target.why ? "none" :
									    "rdma_cm"));
	json_object_set_new(rendezvous, "version", json_integer(way->rendezvous.version));
	put_time(rendezvous, "ns", way->rendezvous.ns);
	json_object_set_new(object, "rendezvous", rendezvous);
	json_object_set_new(object, "link", link_json(way));
	json_object_set_new(object, "answering_end", json_boolean(way->far != NULL));
	return object;
}
