/* Statistics for people: a line for the process, its streams as netstat would, what is not zero. */
#include "tools/stat.h"

#include <stdio.h>
#include <string.h>

/* Missing or mistyped members show as nothing: the other side may be of another version. */
static const char *text_of(const json_t *object, const char *key)
{
	const char *text = json_string_value(json_object_get(object, key));

	return text ? text : "";
}

static json_int_t number_of(const json_t *object, const char *key)
{
	return json_integer_value(json_object_get(object, key));
}

/* "17", "12.3K", "4.0G": at most six columns. */
static const char *human(json_int_t bytes, char buf[16])
{
	static const char units[] = "KMGTPE";
	double n = (double)bytes;
	int unit = -1;

	for (; n >= 1024 && unit < 5; unit++)
		n /= 1024;
	if (unit < 0)
		snprintf(buf, 16, "%lld", (long long)bytes);
	else
		snprintf(buf, 16, "%.1f%c", n, units[unit]);
	return buf;
}

static void show_header(const json_t *process)
{
	const json_t *totals = json_object_get(process, "totals");
	const char *reason = text_of(process, "reason");

	printf("%s (pid %lld): device %s, up %.1f s, %lld streams, %lld on the link\n",
	       text_of(process, "program"), (long long)number_of(process, "pid"),
	       text_of(process, "device"), (double)number_of(process, "uptime_ms") / 1000,
	       (long long)number_of(totals, "streams"), (long long)number_of(totals, "linked"));
	if (*reason)
		printf("  not accelerated: %s\n", reason);
}

static void show_direction(const json_t *direction)
{
	char tcp[16], link[16];
	const char *track = text_of(direction, "track");

	printf("  %-4s %8s %8s", *track ? track : "-", human(number_of(direction, "tcp"), tcp),
	       human(number_of(direction, "link"), link));
}

static void show_stream(const json_t *stream)
{
	const char *reason = text_of(stream, "reason"), *held = text_of(stream, "held"), *waits = text_of(stream, "waits_for");

	printf("  %5lld  %-21s  %-21s", (long long)number_of(stream, "fd"),
	       text_of(stream, "local"), text_of(stream, "peer"));
	show_direction(json_object_get(stream, "tx"));
	show_direction(json_object_get(stream, "rx"));
	printf("  %s%s%s%s%s%s%s\n", text_of(stream, "state"), *waits ? ", waits for " : "", waits, *reason ? ": " : "", reason,
	       *held ? "; on TCP because of: " : "", held);
}

static void show_streams(const json_t *streams)
{
	const json_t *stream;
	size_t i;

	if (!json_array_size(streams))
		return;
	printf("  %5s  %-21s  %-21s  %-4s %8s %8s  %-4s %8s %8s  %s\n", "FD", "LOCAL", "PEER",
	       "TX", "TCP", "LINK", "RX", "TCP", "LINK", "STATE");
	json_array_foreach(streams, i, stream)
		show_stream(stream);
}

static void show_total(const json_t *totals, const char *direction)
{
	const json_t *sums = json_object_get(totals, direction);
	json_int_t uncounted = number_of(totals, "uncounted");
	json_int_t late = number_of(sums, "late"), late_tcp = number_of(sums, "late_tcp");
	char tcp[16], link[16];

	printf("  all %s: %s by TCP, %s by link", direction, human(number_of(sums, "tcp"), tcp),
	       human(number_of(sums, "link"), link));
	/* Cut, so that it says 100 only where that is so. */
	if (late > 0)
		printf("; %.2f %% by link after a stream's first 256 KiB",
		       (double)(long)(10000 * (1 - (double)late_tcp / (double)late)) / 100);
	if (uncounted > 0)
		printf("; plain streams that have ended uncounted: %lld", (long long)uncounted);
	putchar('\n');
}

static void show_numbers(const char *title, json_t *numbers)
{
	const char *name;
	json_t *number;
	int shown = 0;

	json_object_foreach(numbers, name, number) {
		if (!json_integer_value(number))
			continue;
		if (!shown++)
			printf("  %s:\n", title);
		printf("    %12lld  %s\n", (long long)json_integer_value(number), name);
	}
}

/* One alone has nothing that the counters do not say. */
static void show_lanes(const json_t *lanes)
{
	const json_t *lane;
	char bytes[16];
	size_t i;

	if (json_array_size(lanes) < 2)
		return;
	printf("  %10s  %4s  %7s  %12s  %12s  %8s  %s\n", "LINK TO", "LANE", "STREAMS", "REQUESTS", "DOORBELLS", "BYTES",
	       "BOUND BY");
	json_array_foreach(lanes, i, lane)
		printf("  %10lld  %4lld  %7lld  %12lld  %12lld  %8s  %s\n", (long long)number_of(lane, "peer"),
		       (long long)number_of(lane, "lane"), (long long)number_of(lane, "streams"),
		       (long long)number_of(lane, "wr"), (long long)number_of(lane, "doorbells"),
		       human(number_of(lane, "wr_bytes"), bytes), text_of(lane, "bound_by"));
}

void shunt_stat_show(const json_t *process)
{
	const json_t *totals = json_object_get(process, "totals");

	show_header(process);
	show_streams(json_object_get(process, "streams"));
	show_lanes(json_object_get(process, "lanes"));
	show_total(totals, "tx");
	show_total(totals, "rx");
	show_numbers("streams that stay on TCP, by reason", json_object_get(process, "reasons"));
	show_numbers("counters", json_object_get(process, "counters"));
}
