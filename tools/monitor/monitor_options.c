/* SPDX-License-Identifier: MIT */
/* The options of shunt monitor. A combination that could let others in is refused unless it is complete. */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <netdb.h>
#include <pwd.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tools/monitor/monitor.h"
#include "tools/shunt.h"

static const char help[] =
	"Usage: shunt monitor [OPTION...]\n\n"
	"Answers HTTP with the statistics of all processes that it may see, until it is ended: /metrics for\n"
	"Prometheus, / a page for people, /log the last events of all processes, /healthz. It changes\n"
	"nothing. It sees what `shunt stat` sees: as root all processes, else those of its user. Only its\n"
	"user and root are answered: the kernel says whose a connection is.\n\n"
	"  --listen ADDRESS:PORT  127.0.0.1:9477 unless given; port 0: any that is free. An address that is\n"
	"                         not loopback's needs --token\n"
	"  --token FILE           only requests with this token are answered, whoever sends them\n"
	"                         (Authorization: Bearer TOKEN); 16 to 512 characters, of mode 600\n"
	"  --user NAME            this user may ask, too; again for others\n"
	"  --host NAME            requests may call this host so, beside localhost; again for others\n"
	"  --interval SECONDS     how old an answer may be, from 0.05 to 60; 1 unless given\n"
	"  --hosts FILE           shows the hosts of a file, too, each by `shunt stat` over ssh: a line each,\n"
	"                         [USER@]HOST[:PORT]; # begins a comment\n"
	"  --matrix FILE          shows what `shunt ping --matrix --json` has written there\n"
	"  --streams              metrics of each stream, queue pair and link\n"
	"  --json                 the first line, which says the address, is an object\n\n"
	"Exit status: 0 after SIGTERM or SIGINT, 1 if it cannot serve, 2 for wrong usage.\n";

static int wrong(const char *what, const char *text)
{
	fprintf(stderr, "shunt monitor: %s '%s'; `shunt monitor --help` says how\n", what, text);
	return EXIT_USAGE;
}

/* ---- addresses ---- */

socklen_t monitor_address_length(const union monitor_address *address)
{
	return address->any.sa_family == AF_INET6 ? sizeof(address->v6) : sizeof(address->v4);
}

const char *monitor_address_text(const union monitor_address *address, char *buf, size_t room)
{
	bool v6 = address->any.sa_family == AF_INET6;
	char host[INET6_ADDRSTRLEN] = "";

	inet_ntop(address->any.sa_family,
		  v6 ? (const void *)&address->v6.sin6_addr : &address->v4.sin_addr, host,
		  sizeof(host));
	snprintf(buf, room, v6 ? "[%s]:%u" : "%s:%u", host,
		 ntohs(v6 ? address->v6.sin6_port : address->v4.sin_port));
	return buf;
}

static bool parse_port(const char *text, in_port_t *port)
{
	char *end;
	long number = strtol(text, &end, 10);

	if (*text < '0' || *text > '9' || *end || number > 65535)
		return false;
	*port = htons((in_port_t)number);
	return true;
}

static int parse_listen(struct monitor_options *options, const char *text)
{
	union monitor_address *address = &options->address;
	const char *colon = strrchr(text, ':');
	char host[INET6_ADDRSTRLEN] = "";
	in_port_t port = 0;
	bool v6 = *text == '[';
	size_t length = colon ? (size_t)(colon - text) : 0;

	if (!length || !parse_port(colon + 1, &port) ||
	    (v6 && (length < 3 || text[length - 1] != ']')))
		return wrong("not ADDRESS:PORT, with a numeric address:", text);
	length -= v6 ? 2 : 0;
	if (length < sizeof(host))
		memcpy(host, text + v6, length);
	*address = (union monitor_address) { 0 };
	address->any.sa_family = v6 ? AF_INET6 : AF_INET;
	if (v6)
		address->v6.sin6_port = port;
	else
		address->v4.sin_port = port;
	if (inet_pton(address->any.sa_family, host,
		      v6 ? (void *)&address->v6.sin6_addr : &address->v4.sin_addr) != 1)
		return wrong("not ADDRESS:PORT, with a numeric address:", text);
	options->loopback = v6 ? IN6_IS_ADDR_LOOPBACK(&address->v6.sin6_addr) :
				 ntohl(address->v4.sin_addr.s_addr) >> 24 == 127;
	return 0;
}

/* ---- the token ---- */

static const char *read_token(struct monitor_options *options, int fd)
{
	struct stat file;
	ssize_t got;

	if (fstat(fd, &file))
		return strerror(errno);
	if (!S_ISREG(file.st_mode))
		return "it is no file";
	if (file.st_uid && file.st_uid != geteuid())
		return "it is another user's";
	if (file.st_mode & 077)
		return "others may read it; make its mode 600";
	got = read(fd, options->token, sizeof(options->token));
	if (got < 0)
		return strerror(errno);
	while (got && (options->token[got - 1] == '\n' || options->token[got - 1] == '\r'))
		got--;
	for (ssize_t i = 0; i < got; i++)
		if (options->token[i] <= ' ' || options->token[i] > '~')
			return "a token is of printable characters without spaces";
	if (got < MONITOR_TOKEN_LEAST || got > MONITOR_TOKEN_MOST)
		return "a token has 16 to 512 characters";
	options->token[got] = '\0';
	options->token_length = (size_t)got;
	return NULL;
}

static int parse_token(struct monitor_options *options, const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	const char *why = fd < 0 ? strerror(errno) : read_token(options, fd);

	if (fd >= 0)
		close(fd);
	if (!why)
		return 0;
	fprintf(stderr, "shunt monitor: the token of %s: %s\n", path, why);
	return EXIT_FAILED;
}

/* ---- the rest ---- */

static int parse_user(struct monitor_options *options, const char *name)
{
	struct passwd entry, *user = NULL;
	char texts[4096];

	if (getpwnam_r(name, &entry, texts, sizeof(texts), &user) || !user)
		return wrong("no such user:", name);
	if (options->user_count == MONITOR_NAMES)
		return wrong("too many users, with", name);
	options->users[options->user_count++] = user->pw_uid;
	return 0;
}

static int parse_host(struct monitor_options *options, const char *name)
{
	if (!*name || options->host_count == MONITOR_NAMES)
		return wrong("too many hosts, or no name:", name);
	options->hosts[options->host_count++] = name;
	return 0;
}

static int parse_interval(struct monitor_options *options, const char *text)
{
	char *end;

	options->interval = strtod(text, &end);
	if (*end || end == text || !(options->interval >= 0.05 && options->interval <= 60))
		return wrong("not a number of seconds from 0.05 to 60:", text);
	return 0;
}

static int parse(struct monitor_options *options, int option, const char *text)
{
	switch (option) {
	case 'l':
		return parse_listen(options, text);
	case 't':
		return parse_token(options, text);
	case 'u':
		return parse_user(options, text);
	case 'n':
		return parse_host(options, text);
	case 'i':
		return parse_interval(options, text);
	case 'H':
		free(options->others.of);
		return shunt_hosts_read("shunt monitor", text, &options->others) ? EXIT_USAGE : 0;
	case 'm':
		options->matrix = text;
		return 0;
	case 's':
		options->detail = true;
		return 0;
	case 'j':
		options->json = true;
		return 0;
	default:
		return EXIT_USAGE;
	}
}

int monitor_options(struct monitor_options *options, int argc, char **argv, int *status)
{
	static const struct option names[] = {
		{ "listen", required_argument, NULL, 'l' },
		{ "token", required_argument, NULL, 't' },
		{ "user", required_argument, NULL, 'u' },
		{ "host", required_argument, NULL, 'n' },
		{ "interval", required_argument, NULL, 'i' },
		{ "hosts", required_argument, NULL, 'H' },
		{ "matrix", required_argument, NULL, 'm' },
		{ "streams", no_argument, NULL, 's' },
		{ "json", no_argument, NULL, 'j' },
		{ "help", no_argument, NULL, 'h' },
		{ 0 },
	};
	int c;

	*options = (struct monitor_options) { .interval = 1 };
	*status = parse_listen(options, "127.0.0.1:9477");
	while (!*status && (c = getopt_long(argc, argv, "", names, NULL)) != -1) {
		if (c == 'h') {
			fputs(help, stdout);
			return -1;
		}
		*status = parse(options, c, optarg);
	}
	if (!*status && optind < argc)
		*status = wrong("too many words, with", argv[optind]);
	if (!*status && !options->loopback && !options->token_length) {
		fputs("shunt monitor: other hosts can reach this address, so --token FILE is needed\n",
		      stderr);
		*status = EXIT_USAGE;
	}
	return *status ? -1 : 0;
}
