/* SPDX-License-Identifier: MIT */
#include "tools/dump/dump.h"

#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "tools/ask/guard.h"
#include "tools/common/proc.h"
#include "tools/shunt.h"

#define MIB (1ull << 20)
#define MIB_USUAL 16
#define BATCH 256 /* records between two looks at the processes */
#define PAUSE_MS 1 /* where nothing has come: no process wakes us */
#define NICENESS 10

static const char help[] =
	"Usage: shunt dump [OPTION...] [FILTER] PROCESS...\n\n"
	"Writes the bytes of streams as packets (pcapng), with made-up headers of Ethernet, IP and TCP.\n"
	"Comments of packets say which track has carried them, and where it was switched. A process is a\n"
	"process id or an identity, as `shunt stat` shows it. FILTER is one argument in the language of\n"
	"tcpdump, such as 'port 6379', and needs libpcap. Ends with the processes, or by ^C.\n\n"
	"  -w FILE  write to FILE; without it to standard output, which is no terminal:\n"
	"           shunt dump PID | tcpdump -r - -A     shunt dump -i PID | tshark -r -\n"
	"  -i       write each packet at once\n"
	"  -B MIB   memory for what has not been written yet, of each process (1 to 1024, a power of 2;\n"
	"           default 16). Packets without room are dropped, and counted. A process never waits.\n\n"
	"Streams that are the kernel's alone (`shunt stat` says plain) are not seen: tcpdump shows those.\n"
	"If both ends of a connection are dumped, the one that is seen first is written.\n\n"
	"Exit status: 0, 1 if a process cannot be dumped or FILE not be written, 2 for wrong usage.\n";

struct options {
	const char *path; /* NULL: standard output */
	const char *filter; /* NULL: none */
	bool immediately;
	uint64_t bytes;
	int count;
	char **words; /* processes */
};

static volatile sig_atomic_t interrupted;

static void on_signal(int number)
{
	(void)number;
	interrupted = 1;
}

/* --- the work --- */

/* Of all records that are complete the oldest. NULL: there is none. */
static struct listener *oldest(struct dump *dump)
{
	struct listener *first = NULL;

	for (uint32_t i = 0; i < dump->listeners; i++) {
		struct listener *listener = &dump->listener[i];

		if (listener_look(listener) && (!first || listener->next.time < first->next.time))
			first = listener;
	}
	return first;
}

/* Returns how many records there were, at most BATCH. */
static int read_records(struct dump *dump)
{
	struct listener *listener;
	int count = 0;

	while (count < BATCH && !dump->file.error && (listener = oldest(dump)) != NULL) {
		flow_record(dump, listener);
		listener_pass(listener);
		count++;
	}
	return count;
}

static void hang_up(struct dump *dump, struct listener *listener)
{
	shunt_guard_close(listener->fd);
	listener->fd = -1;
	flow_over(dump, listener);
}

/* Waits for so many ms at most. How many processes are left: one that says anything now has ended the dump. */
static uint32_t look_at_processes(struct dump *dump, int timeout)
{
	struct pollfd *polled = calloc(dump->listeners, sizeof(*polled));
	uint32_t left = 0;

	if (!polled)
		abort();
	for (uint32_t i = 0; i < dump->listeners; i++)
		polled[i] = (struct pollfd){ .fd = dump->listener[i].fd, .events = POLLIN };
	poll(polled, dump->listeners, timeout);
	for (uint32_t i = 0; i < dump->listeners; i++) {
		struct listener *listener = &dump->listener[i];

		if (listener->fd >= 0 && (polled[i].revents || listener->broken))
			hang_up(dump, listener);
		left += listener->fd >= 0;
	}
	free(polled);
	return left;
}

/* Records that a process has written before its end are read, too. */
static void listen_to_all(struct dump *dump)
{
	uint32_t left = dump->listeners;
	int count = 0;

	while (!interrupted && !dump->file.error && (left || count)) {
		count = read_records(dump);
		if (count < BATCH)
			pcapng_flush(&dump->file);
		left = look_at_processes(dump, count ? 0 : PAUSE_MS);
	}
	while (read_records(dump) == BATCH)
		;
}

static uint64_t clock_ns(clockid_t clock)
{
	struct timespec time;

	clock_gettime(clock, &time);
	return (uint64_t)time.tv_sec * 1000000000 + (uint64_t)time.tv_nsec;
}

static void say_totals(struct dump *dump)
{
	uint64_t packets = 0, dropped = 0;

	for (uint32_t i = 0; i < dump->listeners; i++) {
		struct listener *listener = &dump->listener[i];

		pcapng_statistics(&dump->file, listener->interface, clock_ns(CLOCK_REALTIME),
				  listener->packets, listener_dropped(listener));
		packets += listener->packets;
		dropped += listener_dropped(listener);
	}
	fprintf(stderr, "shunt dump: %" PRIu64 " packets written, %" PRIu64 " dropped\n", packets,
		dropped);
}

static void name_interfaces(struct dump *dump)
{
	char program[64], name[128];

	for (uint32_t i = 0; i < dump->listeners; i++) {
		struct listener *listener = &dump->listener[i];

		snprintf(name, sizeof(name), "%s (pid %d)",
			 shunt_proc_name(listener->door.pid, program, sizeof(program)),
			 (int)listener->door.pid);
		listener->interface = pcapng_interface(&dump->file, name);
	}
}

/* --- beginning and end --- */

/* The programs have the processors first: a dump that is late drops packets, and does not slow them down. */
static void make_way(void)
{
	struct sigaction action = { .sa_handler = on_signal };

	sigaction(SIGINT, &action, NULL);
	sigaction(SIGTERM, &action, NULL);
	signal(SIGPIPE, SIG_IGN);
	if (getpriority(PRIO_PROCESS, 0) < NICENESS)
		setpriority(PRIO_PROCESS, 0, NICENESS);
}

static bool begin_all(struct dump *dump, const struct options *options,
		      const struct shunt_door *wanted)
{
	dump->listener = calloc((size_t)options->count, sizeof(*dump->listener));
	if (!dump->listener)
		abort();
	for (int i = 0; i < options->count; i++, dump->listeners++)
		if (!listener_begin(&dump->listener[i], &wanted[i], options->bytes)) {
			listener_end(&dump->listener[i]);
			return false;
		}
	return true;
}

/* 0 or an exit status. A reader that has gone wants no more, which is no error. */
static int write_file(struct dump *dump, const struct options *options, int fd)
{
	pcapng_begin(&dump->file, fd, "shunt " PACKAGE_VERSION);
	name_interfaces(dump);
	pcapng_flush(&dump->file);
	fprintf(stderr, "shunt dump: listening to %u process%s\n", dump->listeners,
		dump->listeners == 1 ? "" : "es");
	listen_to_all(dump);
	say_totals(dump);
	pcapng_flush(&dump->file);
	pcapng_end(&dump->file);
	if (!dump->file.error || dump->file.error == EPIPE)
		return 0;
	fprintf(stderr, "shunt dump: %s: %s\n", options->path ? options->path : "standard output",
		strerror(dump->file.error));
	return EXIT_FAILED;
}

static int open_file(const struct options *options)
{
	int fd = STDOUT_FILENO;

	if (options->path)
		fd = open(options->path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	if (fd < 0)
		fprintf(stderr, "shunt dump: %s: %s\n", options->path, strerror(errno));
	return fd;
}

static int dump_all(const struct options *options, const struct shunt_door *wanted)
{
	struct dump *dump = calloc(1, sizeof(*dump));
	int fd = -1, rc = EXIT_FAILED;

	if (!dump)
		abort();
	dump->immediately = options->immediately;
	dump->wall = (int64_t)(clock_ns(CLOCK_REALTIME) - clock_ns(CLOCK_MONOTONIC));
	if (options->filter)
		dump->filter = filter_make(options->filter);
	if (options->filter && !dump->filter)
		rc = EXIT_USAGE;
	else if (begin_all(dump, options, wanted))
		fd = open_file(options);
	if (fd >= 0)
		rc = write_file(dump, options, fd);
	for (uint32_t i = 0; i < dump->listeners; i++)
		listener_end(&dump->listener[i]);
	shunt_guard_settle();
	flow_free(dump);
	filter_free(dump->filter);
	free(dump->listener);
	free(dump);
	return rc;
}

/* --- the command line --- */

static int usage_error(const char *what, const char *text)
{
	fprintf(stderr, "shunt dump: %s%s%s; `shunt dump --help` says how\n", what,
		*text ? " " : "", text);
	return EXIT_USAGE;
}

/* 0, or an exit status. */
static int parse_memory(const char *text, struct options *options)
{
	char *end;
	unsigned long mib = strtoul(text, &end, 10);

	if (*text < '0' || *text > '9' || *end || !mib || mib > SHUNT_TAP_BYTES_MAX / MIB ||
	    mib & (mib - 1))
		return usage_error("-B wants a power of 2 from 1 to 1024, not", text);
	options->bytes = mib * MIB;
	return 0;
}

static int parse_options(struct options *options, int argc, char **argv)
{
	static const struct option longs[] = { { "help", no_argument, NULL, 'h' },
					       { NULL, 0, NULL, 0 } };
	int option, rc = 0;

	opterr = 0;
	while (!rc && (option = getopt_long(argc, argv, "+hiw:B:", longs, NULL)) != -1) {
		if (option == 'h') {
			fputs(help, stdout);
			exit(0);
		}
		if (option == 'w')
			options->path = optarg;
		else if (option == 'i')
			options->immediately = true;
		else if (option == 'B')
			rc = parse_memory(optarg, options);
		else
			rc = usage_error("unknown option, or one without its value:",
					 argv[optind - 1]);
	}
	options->count = argc - optind;
	options->words = argv + optind;
	return rc;
}

/* The doors that are wanted, to be freed. NULL: wrong usage, and it has been said how. */
static struct shunt_door *parse_wanted(struct options *options)
{
	struct shunt_door *wanted = calloc((size_t)options->count + 1, sizeof(*wanted));
	int wrong = 0;

	if (!wanted)
		abort();
	if (options->count && !shunt_door_parse(options->words[0], &wanted[0])) {
		options->filter = *options->words++;
		options->count--;
	}
	if (!options->count)
		wrong = usage_error("no process is named", "");
	for (int i = 0; !wrong && i < options->count; i++)
		if (!shunt_door_parse(options->words[i], &wanted[i]))
			wrong = usage_error("neither a process id nor an identity:",
					    options->words[i]);
	if (!wrong && !options->path && isatty(STDOUT_FILENO))
		wrong = usage_error("standard output is a terminal: -w FILE, or a pipe", "");
	if (!wrong)
		return wanted;
	free(wanted);
	return NULL;
}

int shunt_dump(int argc, char **argv)
{
	struct options options = { .bytes = MIB_USUAL * MIB };
	int rc = parse_options(&options, argc, argv);
	struct shunt_door *wanted = rc ? NULL : parse_wanted(&options);

	if (!wanted)
		return EXIT_USAGE;
	make_way();
	rc = dump_all(&options, wanted);
	free(wanted);
	return rc;
}
