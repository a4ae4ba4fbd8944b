/* SPDX-License-Identifier: MIT */
/*
 * Statistics for people: a line for the process, its streams as netstat would, what is not zero. They may come from a
 * process that lies: text is escaped and cut, and missing or mistyped members show as nothing.
 */
#include "tools/stat/stat.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "tools/common/output.h"

#define TEXT_MAX 512

struct view {
	const json_t *now, *before;	/* before: NULL where there are no rates */
	double seconds;
};

static const char *text_of(const json_t *object, const char *key, char *buf, size_t room)
{
	const char *text = json_string_value(json_object_get(object, key));

	return shunt_escape(text ? text : "", buf, room);
}

static json_int_t number_of(const json_t *object, const char *key)
{
	return json_integer_value(json_object_get(object, key));
}

/* "17", "12.3K", "1023M": at most six columns. */
static const char *human(double n, char buf[16])
{
	static const char units[] = "KMGTPE";
	int unit = -1;

	for (; n >= 1024 && unit < 5; unit++)
		n /= 1024;
	if (unit < 0)
		snprintf(buf, 16, "%.0f", n);
	else
		snprintf(buf, 16, "%.*f%c", n < 999 ? 1 : 0, n, units[unit]);
	return buf;
}

__attribute__((format(printf, 3, 4)))
static void add_clause(char *line, size_t room, const char *format, ...)
{
	size_t length = strlen(line);
	va_list args;

	va_start(args, format);
	vsnprintf(line + length, room - length, format, args);
	va_end(args);
}

/* The answer to rings of io_uring; nothing where none was asked for. */
static void show_uring(const json_t *process)
{
	char uring[16];

	text_of(process, "uring", uring, sizeof(uring));
	if (!strcmp(uring, "watched"))
		puts("  io_uring: the process has rings, and streams that they use stay on TCP");
	else if (!strcmp(uring, "refused"))
		puts("  io_uring: refused (SHUNT_URING=deny)");
	else if (!strcmp(uring, "allowed"))
		puts("  io_uring: allowed; a ring sees nothing of what is on a link");
	else if (!strcmp(uring, "tcp"))
		puts("  io_uring: the process has a ring that is not watched, so its streams stay on TCP");
}

/* The size from which on a blocking send is fetched from the program's own buffer. */
static void show_registering(const json_t *process)
{
	const json_t *registering = json_object_get(process, "registering");
	bool measured = json_is_true(json_object_get(registering, "measured"));
	json_int_t from = number_of(registering, "from_bytes");
	char size[16];

	if (!registering)
		return;
	if (from > 0)
		printf("  blocking sends: registered in place from %s on (%s)\n",
		       human((double)from, size),
		       measured ? "measured" : "SHUNT_TUNE=mr_threshold");
	else
		printf("  blocking sends: all are copied (%s)\n",
		       measured ? "measured: a copy costs less up to 4 MiB" :
				  "SHUNT_TUNE=mr_threshold=0");
}

/* A process of a PID namespace that is not visible from here has no number. */
static const char *name_of(const json_t *process, char *buf, size_t room)
{
	json_int_t pid = number_of(process, "pid");
	char identity[SHUNT_DOOR_IDENTITY];

	if (pid)
		snprintf(buf, room, "pid %lld", (long long)pid);
	else
		snprintf(buf, room, "identity %s",
			 text_of(process, "identity", identity, sizeof(identity)));
	return buf;
}

static void show_header(const json_t *process)
{
	const json_t *totals = json_object_get(process, "totals");
	char program[32], device[16], reason[TEXT_MAX], name[64], line[320];

	snprintf(line, sizeof(line),
		 "%s (%s): device %s, up %.1f s, %lld streams, %lld on the link",
		 text_of(process, "program", program, sizeof(program)),
		 name_of(process, name, sizeof(name)),
		 text_of(process, "device", device, sizeof(device)),
		 (double)number_of(process, "uptime_ms") / 1000,
		 (long long)number_of(totals, "streams"), (long long)number_of(totals, "linked"));
	shunt_print_wrapped(4, 0, line);
	if (*text_of(process, "reason", reason, sizeof(reason)))
		shunt_print_wrapped(4, printf("  not accelerated: "), reason);
	show_uring(process);
	show_registering(process);
}

/* ---- streams ---- */

/* Bytes, or bytes a second, with a star at the track it is on. */
static void show_direction(const struct view *view, const json_t *stream, const json_t *then, const char *name)
{
	const json_t *direction = json_object_get(stream, name), *before = json_object_get(then, name);
	const char *track = json_string_value(json_object_get(direction, "track"));
	static const char *const tracks[] = { "tcp", "link" };
	char figure[16];

	for (int i = 0; i < 2; i++)
		printf(" %s%6s%c", i ? "" : " ",
		       human(view->before ? shunt_rate(before, direction, tracks[i], view->seconds) :
			     (double)number_of(direction, tracks[i]), figure),
		       track && !strcmp(track, tracks[i]) ? '*' : ' ');
}

/* Long ones, of IPv6, have a line each. */
static void show_addresses(const json_t *stream)
{
	char local[48], peer[48];

	text_of(stream, "local", local, sizeof(local));
	text_of(stream, "peer", peer, sizeof(peer));
	if (strlen(local) <= 21 && strlen(peer) <= 21)
		printf(" %5lld  %-21s %-21s", (long long)number_of(stream, "fd"), local, peer);
	else
		printf(" %5lld  %s\n %5s  %-43s", (long long)number_of(stream, "fd"), local, "", peer);
}

static void show_why(const char *what, const json_t *stream, const char *key)
{
	char why[TEXT_MAX];

	if (*text_of(stream, key, why, sizeof(why)))
		shunt_print_wrapped(12, printf("        %s", what), why);
}

static void show_reason(const json_t *stream)
{
	char said[TEXT_MAX], why[TEXT_MAX];

	shunt_escape(shunt_reason_said(stream, said, sizeof(said)), why, sizeof(why));
	if (*why)
		shunt_print_wrapped(12, printf("        "), why);
}

/* Only where something waits. */
static void show_queues(const json_t *stream)
{
	json_int_t sendq = number_of(stream, "sendq"), recvq = number_of(stream, "recvq");
	json_int_t ring = number_of(stream, "ring_bytes"), idle = number_of(stream, "idle_ms");
	char text[16], line[160] = "";

	if (!sendq && !recvq)
		return;
	add_clause(line, sizeof(line), "Recv-Q %s", human((double)recvq, text));
	add_clause(line, sizeof(line), ", Send-Q %s", human((double)sendq, text));
	if (number_of(stream, "staged"))
		add_clause(line, sizeof(line), " (staged: %s)",
			   human((double)number_of(stream, "staged"), text));
	if (ring > 0)
		add_clause(line, sizeof(line), ", peer's ring %.0f %% full",
			   100 * (double)number_of(stream, "ring_fill") / (double)ring);
	if (idle >= 1000)
		add_clause(line, sizeof(line), ", idle for %.1f s", (double)idle / 1000);
	shunt_print_wrapped(12, printf("        "), line);
}

static void show_stream(const struct view *view, const json_t *stream)
{
	const json_t *then = shunt_rate_stream(view->before, stream);
	char state[10], left[80], rate[16];

	show_addresses(stream);
	show_direction(view, stream, then, "tx");
	show_direction(view, stream, then, "rx");
	printf("  %s\n", text_of(stream, "state", state, sizeof(state)));
	show_queues(stream);
	show_why("waits for ", stream, "waits_for");
	show_reason(stream);
	show_why("on TCP because of: ", stream, "held");
	snprintf(left, sizeof(left), "left the link %lld times, last because of: ", (long long)number_of(stream, "left_times"));
	show_why(left, stream, "left");
	if (number_of(stream, "paced"))
		printf("        paced on TCP by a limit, to %s bytes/s\n",
		       human((double)number_of(stream, "paced"), rate));
}

static void show_streams(const struct view *view)
{
	const json_t *streams = json_object_get(view->now, "streams"), *stream;
	size_t i;

	if (!json_array_size(streams))
		return;
	if (view->before)
		puts("  bytes each second since the last look:");
	printf(" %5s  %-21s %-21s  %6s  %6s   %6s  %6s   %s\n", "FD", "LOCAL", "PEER", "TX TCP",
	       "LINK", "RX TCP", "LINK", "STATE");
	json_array_foreach(streams, i, stream)
		show_stream(view, stream);
}

/* ---- the process ---- */

static void show_total(const struct view *view, const char *direction)
{
	const json_t *totals = json_object_get(view->now, "totals"), *sums = json_object_get(totals, direction);
	const json_t *before = json_object_get(json_object_get(view->before, "totals"), direction);
	json_int_t late = number_of(sums, "late"), late_tcp = number_of(sums, "late_tcp");
	char tcp[16], link[16], line[512] = "";

	add_clause(line, sizeof(line), "%s by TCP, %s by link", human((double)number_of(sums, "tcp"), tcp),
		   human((double)number_of(sums, "link"), link));
	if (view->before)
		add_clause(line, sizeof(line), "; %s/s by TCP, %s/s by link",
			   human(shunt_rate(before, sums, "tcp", view->seconds), tcp),
			   human(shunt_rate(before, sums, "link", view->seconds), link));
	/* Cut, so that it says 100 only where that is so. */
	if (late > 0)
		add_clause(line, sizeof(line), "; %.2f %% by link after a stream's first 256 KiB",
			   (double)(long)(10000 * (1 - (double)late_tcp / (double)late)) / 100);
	if (number_of(totals, "uncounted") > 0)
		add_clause(line, sizeof(line), "; plain streams that have ended uncounted: %lld",
			   (long long)number_of(totals, "uncounted"));
	shunt_print_wrapped(10, printf("  all %s: ", direction), line);
}

/* The rate of a number that has grown. For a largest or a last value that means nothing, but there are few. */
static void show_rate(const struct view *view, const json_t *before, json_t *numbers, const char *name)
{
	double rate = view->before ? shunt_rate(before, numbers, name, view->seconds) : 0;

	if (rate > 0)
		printf(" %12.1f/s", rate);
	else if (view->before)
		printf(" %14s", "");
}

static void show_numbers(const struct view *view, const char *title, const char *key)
{
	json_t *numbers = json_object_get(view->now, key), *number;
	const json_t *before = json_object_get(view->before, key);
	const char *name;
	char text[64];
	int shown = 0;

	json_object_foreach(numbers, name, number) {
		if (!json_integer_value(number))
			continue;
		if (!shown++)
			printf("  %s:\n", title);
		printf("    %12lld", (long long)json_integer_value(number));
		show_rate(view, before, numbers, name);
		printf("  %s\n", shunt_escape(name, text, sizeof(text)));
	}
}

/* The border below which this share of what was counted lies. */
static double border(const json_t *counts, double total, double share)
{
	double sum = 0, power = 1;
	const json_t *count;
	size_t i;

	json_array_foreach(counts, i, count) {
		power *= 2;
		sum += (double)json_integer_value(count);
		if (sum >= share * total)
			break;
	}
	return power;
}

static const char *time_text(double ns, char buf[16])
{
	if (ns < 1e3)
		snprintf(buf, 16, "%.0f ns", ns);
	else if (ns < 1e6)
		snprintf(buf, 16, "%.1f us", ns / 1e3);
	else if (ns < 1e9)
		snprintf(buf, 16, "%.1f ms", ns / 1e6);
	else
		snprintf(buf, 16, "%.1f s", ns / 1e9);
	return buf;
}

static void show_histogram(const json_t *process, const char *name, const char *title,
			   const char *(*figure)(double, char[16]))
{
	const json_t *counts = json_object_get(json_object_get(process, "histograms"), name),
		     *count;
	char half[16], most[16];
	double total = 0;
	size_t i;

	json_array_foreach(counts, i, count)
		total += (double)json_integer_value(count);
	if (total > 0)
		printf("  %s: %.0f; half below %s, 99 %% below %s\n", title, total,
		       figure(border(counts, total, 0.5), half),
		       figure(border(counts, total, 0.99), most));
}

static void show_links(const json_t *links)
{
	const json_t *link;
	char device[17], registered[16], mapped[16];
	size_t i;

	if (!json_array_size(links))
		return;
	printf("  %10s  %-16s  %11s  %7s  %10s  %8s  %8s\n", "LINK TO", "DEVICE", "QUEUE PAIRS",
	       "STREAMS", "REGISTERED", "MAPPED", "IDLE");
	json_array_foreach(links, i, link) printf(
		"  %10lld  %-16s  %11lld  %7lld  %10s  %8s  %6.1f s\n",
		(long long)number_of(link, "peer"), text_of(link, "device", device, sizeof(device)),
		(long long)number_of(link, "lanes"), (long long)number_of(link, "streams"),
		human((double)number_of(link, "memory_registered"), registered),
		human((double)number_of(link, "memory_mapped"), mapped),
		(double)number_of(link, "idle_ms") / 1000);
}

/* Sizes that a card gives a queue pair, and the counters that the kernel keeps of it. */
static void show_devices(const struct view *view)
{
	const json_t *devices = json_object_get(view->now, "devices"), *device;
	char name[40], title[80];
	size_t i;

	json_array_foreach(devices, i, device)
	{
		const struct view of = {
			device,
			view->before ? json_array_get(json_object_get(view->before, "devices"), i) :
				       NULL,
			view->seconds
		};

		text_of(device, "name", name, sizeof(name));
		if (json_object_get(device, "send_queue"))
			printf("  %s gives a queue pair %lld bytes inline, %lld sends, %lld receives\n",
			       name, (long long)number_of(device, "inline_bytes"),
			       (long long)number_of(device, "send_queue"),
			       (long long)number_of(device, "receive_queue"));
		snprintf(title, sizeof(title), "counters of %s port %lld, kept by the kernel",
			 name, (long long)number_of(device, "port"));
		show_numbers(&of, title, "hw_counters");
	}
}

/* One alone has nothing that the counters do not say. */
static void show_lanes(const json_t *lanes)
{
	const json_t *lane;
	char bytes[16], bound[32];
	size_t i;

	if (json_array_size(lanes) < 2)
		return;
	printf("  %10s  %4s  %7s  %12s  %12s  %8s  %s\n", "LINK TO", "LANE", "STREAMS", "REQUESTS", "DOORBELLS", "BYTES",
	       "BOUND BY");
	json_array_foreach(lanes, i, lane)
		printf("  %10lld  %4lld  %7lld  %12lld  %12lld  %8s  %s\n", (long long)number_of(lane, "peer"),
		       (long long)number_of(lane, "lane"), (long long)number_of(lane, "streams"),
		       (long long)number_of(lane, "wr"), (long long)number_of(lane, "doorbells"),
		       human((double)number_of(lane, "wr_bytes"), bytes),
		       text_of(lane, "bound_by", bound, sizeof(bound)));
}

/* ---- limits ---- */

/* Thousandths of a token a second, of up to 4 KiB each. */
static const char *rate_of(const json_t *object, const char *key, char buf[16])
{
	return human((double)number_of(object, key) * 4.096, buf);
}

static void show_class(const json_t *class)
{
	const json_t *in = json_object_get(class, "in"), *out = json_object_get(class, "out");
	char name[40], limit[16], rate_in[16], rate_out[16];

	printf("  %-16s  %8s  %7lld  %8s  %12lld  %8lld   %8s  %12lld  %8lld\n",
	       text_of(class, "name", name, sizeof(name)),
	       number_of(class, "limit") ? rate_of(class, "limit", limit) : "none",
	       (long long)number_of(class, "clients"), rate_of(in, "achieved", rate_in),
	       (long long)number_of(in, "tokens"), (long long)number_of(in, "waits"),
	       rate_of(out, "achieved", rate_out), (long long)number_of(out, "tokens"),
	       (long long)number_of(out, "waits"));
}

static void show_told(const json_t *link)
{
	char name[40], limit[16], rate[16];

	if (!json_is_true(json_object_get(link, "told")))
		return;
	printf("  limited by process %lld: class %s, limit %s bytes/s; sends %s/s, %lld tokens in all, waited %lld times\n",
	       (long long)number_of(link, "peer"), text_of(link, "class", name, sizeof(name)),
	       number_of(link, "limit") ? rate_of(link, "limit", limit) : "none",
	       rate_of(link, "achieved", rate), (long long)number_of(link, "tokens"),
	       (long long)number_of(link, "waits"));
}

static void show_reserved(const json_t *class)
{
	static const char *const counts[] = { "granted", "taken", "pooled", "converted",
					      "returned" };
	char rate[16], name[40];

	printf("  %-16s  %9lld  %8s", text_of(class, "name", name, sizeof(name)),
	       (long long)number_of(class, "reserved"), rate_of(class, "achieved", rate));
	for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++)
		printf("  %12lld", (long long)number_of(class, counts[i]));
	printf("  %7lld  %7lld\n", (long long)number_of(class, "periods"),
	       (long long)number_of(class, "missed"));
}

/* Tokens of the classes of a node with a capacity. */
static void show_reservations(const json_t *qos)
{
	const json_t *capacity = json_object_get(qos, "capacity"), *class;
	char kind[16];
	size_t i;

	if (!capacity)
		return;
	printf("  capacity %s: %lld tokens in period %lld, pool %lld (what classes reserve holds on links):\n",
	       text_of(capacity, "kind", kind, sizeof(kind)),
	       (long long)number_of(capacity, "tokens"), (long long)number_of(qos, "period"),
	       (long long)number_of(qos, "pool"));
	printf("  %-16s  %9s  %8s  %12s  %12s  %12s  %12s  %12s  %7s  %7s\n", "CLASS", "RESERVED",
	       "BYTES/S", "GRANTED", "TAKEN", "POOLED", "CONVERTED", "RETURNED", "PERIODS",
	       "MISSED");
	json_array_foreach(json_object_get(qos, "classes"), i, class) show_reserved(class);
}

/* As a node, and as a client. */
static void show_qos(const json_t *qos)
{
	const json_t *classes = json_object_get(qos, "classes"),
		     *links = json_object_get(qos, "links"), *item;
	size_t i;

	if (json_array_size(classes)) {
		puts("  limits of classes, on links and on TCP (bytes/s):");
		printf("  %-16s  %8s  %7s  %8s  %12s  %8s   %8s  %12s  %8s\n", "CLASS", "LIMIT",
		       "CLIENTS", "THEY SEND", "TOKENS", "WAITS", "ARE SENT", "TOKENS", "WAITS");
	}
	json_array_foreach(classes, i, item) show_class(item);
	show_reservations(qos);
	json_array_foreach(links, i, item) show_told(item);
}

void shunt_stat_show(const json_t *process, const json_t *before, double seconds)
{
	struct view view = { process, before, seconds };

	show_header(process);
	show_streams(&view);
	show_links(json_object_get(process, "links"));
	show_lanes(json_object_get(process, "lanes"));
	show_qos(json_object_get(process, "qos"));
	show_total(&view, "tx");
	show_total(&view, "rx");
	show_histogram(process, "send_bytes", "sends", human);
	show_histogram(process, "link_ns", "timed work requests", time_text);
	show_numbers(&view, "streams that stay on TCP, by reason", "reasons");
	show_numbers(&view, "times that a direction left the link, by cause", "left");
	show_numbers(&view, "counters", "counters");
	show_devices(&view);
}
