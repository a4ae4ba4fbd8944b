/* SPDX-License-Identifier: MIT */
/*
 * The shunted end that measures: one connection, made and used as any program's. Its own engine says through its doors
 * whether the connection is on a link, and why not. To a program that is not the answering end of `shunt ping` it sends
 * nothing. Everything that comes from the other end is hostile.
 */
#include "tools/ping/ping.h"

#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/base/address.h"
#include "tools/ask/ask.h"
#include "tools/perf/end/perf_end.h"
#include "tools/shunt.h"
#include "tools/stat/stat.h"

#define LOOK_MS 2 /* between two looks at our own engine, which cannot be waited for */
#define BANNER_MS 500 /* in which the answering end has spoken, where anything may listen */
#define ENGINE_MS 1000		/* in which our own engine has let us in, if there is one */
#define SMALL 64 /* bytes of the echo that is timed */
#define LARGE (64u << 10) /* bytes of one that needs the largest packets of the path */

static struct {
	int fd;
	unsigned int count, interval_ms, wait_ms;
	bool given; /* the port was: anything may listen */
	struct shunt_door self;
	json_t *result; /* what is said at the end */
	json_t *stream, *process; /* at the last look at our engine; NULL */
	char banner[PING_BANNER_MAX];
	size_t heard;
	bool ours; /* the answering end is there */
	bool foreign; /* another program is, and has spoken */
} end;

static void put(const char *key, json_t *value)
{
	json_object_set_new(end.result, key, value);
}

static void put_time(const char *key, uint64_t ns)
{
	if (ns != PING_NEVER)
		put(key, json_integer((json_int_t)ns));
}

static void __attribute__((noreturn)) finish(void)
{
	json_dumpf(end.result, stdout, JSON_COMPACT | JSON_ENSURE_ASCII);
	putchar('\n');
	exit(fflush(stdout) ? EXIT_FAILED : 0);
}

static void __attribute__((noreturn)) fail(const char *what, int error)
{
	char text[256];

	snprintf(text, sizeof(text), "%s: %s", what, strerror(error));
	put("error", json_string(text));
	finish();
}

/* --- our own engine --- */

static void forget(void)
{
	json_decref(end.process);
	end.process = end.stream = NULL;
}

static void look(void)
{
	struct shunt_look look;
	json_t *stream;
	size_t i;

	forget();
	if (shunt_look_ask(&look, &end.self, 1))
		return;
	for (size_t n = 0; n < look.count && !end.process; n++) {
		if (!look.processes[n].process)
			continue;
		end.process = json_incref(look.processes[n].process);
		end.self = look.processes[n].door;
	}
	shunt_look_free(&look);
	json_array_foreach(json_object_get(end.process, "streams"), i,
			   stream) if (json_integer_value(json_object_get(stream, "fd")) == end.fd)
		end.stream = stream;
}

static bool is_state(const char *state)
{
	return end.stream && !strcmp(ping_json_text(end.stream, "state"), state);
}

static bool is_on_link(const char *direction)
{
	return !strcmp(ping_json_text(json_object_get(end.stream, direction), "track"), "link");
}

static uint64_t counter(const char *name)
{
	return (uint64_t)json_integer_value(
		json_object_get(json_object_get(end.process, "counters"), name));
}

static void tell_stream(void)
{
	static const char *const texts[] = { "state", "reason", "detail", "waits_for",
					     "left",  "local",	"peer" };

	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
		put(texts[i], json_string(ping_json_text(end.stream, texts[i])));
	put("engine_reason", json_string(ping_json_text(end.process, "reason")));
	put("engine_device", json_string(ping_json_text(end.process, "device")));
	put("failovers", json_integer((json_int_t)counter("failovers")));
}

/* --- the banner --- */

static void take_banner(char *newline)
{
	json_t *far;

	*newline = '\0';
	far = json_loads(end.banner + strlen(PING_BANNER), JSON_REJECT_DUPLICATES, NULL);
	end.ours = json_is_object(far);
	end.foreign = !end.ours;
	if (end.ours)
		json_object_set(end.result, "far", far);
	json_decref(far);
}

/* Some of what the other end says of itself. A program that says something else is left alone. */
static void hear_banner(void)
{
	static const char begin[] = PING_BANNER;
	size_t room = sizeof(end.banner) - 1 - end.heard, length = strlen(begin);
	ssize_t got = recv(end.fd, end.banner + end.heard, room, MSG_DONTWAIT);
	char *newline;

	if (got < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (got <= 0) {
		end.foreign = true;
		put("ended", json_true());
		return;
	}
	end.heard += (size_t)got;
	end.banner[end.heard] = '\0';
	newline = memchr(end.banner, '\n', end.heard);
	if (strncmp(end.banner, begin, end.heard < length ? end.heard : length) ||
	    (!newline && end.heard == sizeof(end.banner) - 1))
		end.foreign = true;
	else if (newline && (size_t)(newline - end.banner) >= length)
		take_banner(newline);
}

static bool knows_who(uint64_t waited_ms)
{
	return end.ours || end.foreign || (end.given && waited_ms >= BANNER_MS);
}

static bool is_settled(void)
{
	return is_state("linked") || is_state("plain");
}

/* Nothing says anything of this process: its variables have left the engine out. */
static bool has_no_engine(uint64_t waited_ms)
{
	return !end.process && waited_ms >= ENGINE_MS;
}

/* Until the listener is known, and whether the connection is on a link or stays on TCP. */
static void await_link(void)
{
	uint64_t begun = perf_now();
	bool seen = false;

	for (;;) {
		uint64_t waited = (perf_now() - begun) / 1000000;
		bool listens = !end.ours && !end.foreign;
		struct pollfd wait = { .fd = listens ? end.fd : -1, .events = POLLIN };

		look();
		if (!seen && is_state("linked")) {
			put_time("upgrade_ns", perf_now() - begun);
			seen = true;
		}
		if ((is_settled() || has_no_engine(waited)) && knows_who(waited))
			return;
		if (waited >= end.wait_ms ||
		    (end.foreign && !listens && json_object_get(end.result, "ended")))
			return;
		if (poll(&wait, 1, LOOK_MS) > 0)
			hear_banner();
	}
}

static void pause_between(void)
{
	if (end.interval_ms)
		poll(NULL, 0, (int)end.interval_ms);
}

/* --- an empty WRITE --- */

/* The answer to one `probe`: the link that we made. */
static json_t *ask_probe(void)
{
	struct shunt_replies replies;
	json_t *answer = NULL, *found = NULL, *link;
	size_t i;

	if (shunt_ask(&end.self, 1, "probe", &replies))
		return NULL;
	for (size_t n = 0; n < replies.count && !answer; n++)
		if (replies.of[n].text && !replies.of[n].refused)
			answer = json_loads(replies.of[n].text, JSON_REJECT_DUPLICATES, NULL);
	shunt_ask_free(&replies);
	json_array_foreach(json_object_get(answer, "links"), i,
			   link) if (!found && json_is_true(json_object_get(link, "initiator")))
		found = json_incref(link);
	json_decref(answer);
	return found;
}

static void measure_writes(void)
{
	uint64_t times[PING_COUNT_MAX], begun = perf_now();
	size_t have = 0;
	json_t *link;

	while (have < end.count && (perf_now() - begun) / 1000000 < end.wait_ms &&
	       (link = ask_probe())) {
		uint64_t ns = ping_time(link, "write_ns");

		put("device", json_string(ping_json_text(link, "device")));
		json_object_set(end.result, "lanes", json_object_get(link, "lanes"));
		json_object_set(end.result, "setup_ns", json_object_get(link, "setup_ns"));
		json_decref(link);
		if (ns == PING_NEVER)
			continue;
		times[have++] = ns;
		begun = perf_now();
		pause_between();
	}
	put_time("write_ns", ping_median(times, have));
	put("writes", json_integer((json_int_t)have));
}

/* --- echoes --- */

/* All of it, or false: the time is over, or the other end is gone. */
static bool move(bool sends, void *bytes, size_t count, uint64_t until)
{
	for (size_t done = 0; done < count;) {
		struct pollfd wait = { .fd = end.fd, .events = sends ? POLLOUT : POLLIN };
		uint64_t now = perf_now();
		ssize_t got = sends ? send(end.fd, (char *)bytes + done, count - done,
					   MSG_NOSIGNAL | MSG_DONTWAIT) :
				      recv(end.fd, (char *)bytes + done, count - done,
					   MSG_DONTWAIT);

		if (got > 0)
			done += (size_t)got;
		else if (!got || (errno != EAGAIN && errno != EINTR) || now >= until)
			return false;
		else
			poll(&wait, 1, (int)((until - now) / 1000000) + 1);
	}
	return true;
}

struct letter {
	struct ping_request head;
	uint8_t bytes[LARGE];
};

/* One round trip in ns, or PING_NEVER. */
static uint64_t echo(uint32_t bytes)
{
	static struct letter out, in;
	uint64_t begun = perf_now(), until = begun + end.wait_ms * UINT64_C(1000000);
	size_t all = sizeof(out.head) + bytes;

	out.head = (struct ping_request) { .magic = PING_MAGIC,
					   .kind = 'e',
					   .bytes = htonl(bytes) };
	for (uint32_t i = 0; i < bytes; i++)
		out.bytes[i] = (uint8_t)(begun + i * 7);
	if (!move(true, &out, all, until) || !move(false, &in, all, until) ||
	    memcmp(&in, &out, all))
		return PING_NEVER;
	return perf_now() - begun;
}

/* Each direction goes to the link at a byte of its own. */
static bool reach_link(void)
{
	uint64_t begun = perf_now();

	do {
		if (echo(SMALL - sizeof(struct ping_request)) == PING_NEVER)
			return false;
		look();
		if (is_on_link("tx") && is_on_link("rx"))
			return true;
	} while ((perf_now() - begun) / 1000000 < end.wait_ms);
	return false;
}

static void measure_echoes(const char *key)
{
	uint64_t times[PING_COUNT_MAX];
	size_t have = 0;

	for (unsigned int i = 0; i < end.count; i++) {
		uint64_t ns = echo(SMALL - sizeof(struct ping_request));

		if (ns == PING_NEVER)
			break;
		times[have++] = ns;
		pause_between();
	}
	put_time(key, ping_median(times, have));
}

/* Small packets pass everywhere; large ones need what the ends believe of the path. */
static void try_large(void)
{
	uint64_t before = counter("failovers"), ns;

	ns = echo(LARGE);
	put_time("large_ns", ns);
	look();
	put("large_on_link", json_boolean(ns != PING_NEVER && is_on_link("tx") &&
					  is_on_link("rx") && counter("failovers") == before));
}

/* Asks the answering end's engine about this connection. */
static void ask_status(void)
{
	struct ping_request head = { .magic = PING_MAGIC, .kind = 's' };
	uint64_t until = perf_now() + end.wait_ms * UINT64_C(1000000);
	json_t *status = NULL;
	uint32_t bytes;
	char *text;

	if (!move(true, &head, sizeof(head), until) || !move(false, &head, sizeof(head), until))
		return;
	bytes = ntohl(head.bytes);
	if (memcmp(head.magic, PING_MAGIC, sizeof(head.magic)) || bytes > PING_BYTES_MAX)
		return;
	text = malloc(bytes + 1);
	if (text && move(false, text, bytes, until))
		status = json_loadb(text, bytes, JSON_REJECT_DUPLICATES, NULL);
	free(text);
	if (json_is_object(status))
		json_object_set(end.result, "status", status);
	json_decref(status);
}

/* --- one run --- */

static void measure(void)
{
	await_link();
	put("ours", json_boolean(end.ours));
	if (is_state("linked")) {
		measure_writes();
		if (end.ours && reach_link()) {
			put("on_link", json_true());
			measure_echoes("echo_ns");
			try_large();
		}
	} else if (end.ours) {
		measure_echoes("tcp_echo_ns");
	}
	look();
	tell_stream();
	if (end.ours)
		ask_status();
	forget();
}

/* client ADDRESS PORT FROM|- COUNT INTERVAL WAIT GIVEN: times in ms, GIVEN is 0 or 1. */
int ping_client(int argc, char **argv)
{
	union ping_address to;
	char pid[24];
	uint64_t begun;

	if (argc != 8 || ping_address_parse(argv[1], &to))
		return EXIT_USAGE;
	to.v4.sin_port = htons((uint16_t)atoi(argv[2]));
	end.count = (unsigned int)atoi(argv[4]);
	end.interval_ms = (unsigned int)atoi(argv[5]);
	end.wait_ms = (unsigned int)atoi(argv[6]);
	end.given = argv[7][0] == '1';
	if (end.count < 1 || end.count > PING_COUNT_MAX)
		return EXIT_USAGE;
	signal(SIGPIPE, SIG_IGN);
	end.result = json_object();
	snprintf(pid, sizeof(pid), "%d", (int)getpid());
	shunt_door_parse(pid, &end.self);
	begun = perf_now();
	end.fd = ping_connect(&to, strcmp(argv[3], "-") ? argv[3] : NULL, end.wait_ms);
	if (end.fd < 0)
		fail("connect", -end.fd);
	put_time("connect_ns", perf_now() - begun);
	measure();
	close(end.fd);
	finish();
}
