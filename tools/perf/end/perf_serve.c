/* SPDX-License-Identifier: MIT */
/*
 * shunt perf --serve: two processes with a port each, one bare and one shunted, so that a client
 * finds both transports. They are perf_server.c's open servers, and end with this one.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tools/perf/end/perf_remote.h"
#include "tools/ping/ping.h"
#include "tools/shunt.h"

#define START_SECONDS 15

struct place {
	char address[PING_ADDRESS_TEXT];
	unsigned int port; /* 0: any, for both */
};

/* Port 0 is for tests. 0, or -1. */
static int parse_place(struct place *place, const char *where)
{
	size_t length = strlen(where);
	bool any = length > 2 && !strcmp(where + length - 2, ":0");
	char text[PING_TARGET_MAX];
	struct ping_target target;
	union ping_address address;

	if (!length) {
		*place = (struct place) { "127.0.0.1", PERF_PORT };
		return 0;
	}
	if (length >= sizeof(text))
		return -1;
	snprintf(text, sizeof(text), "%.*s", (int)(any ? length - 2 : length), where);
	if (ping_target_parse(&target, text) || ping_address_parse(target.host, &address))
		return -1;
	ping_address_text(&address, place->address);
	place->port = any ? 0 : target.given ? target.port : PERF_PORT;
	return place->port < 65535 ? 0 : -1;
}

static int start_server(struct shunt_child *child, const char *program, const char *library,
			const struct perf_pin *pin, const struct place *place, unsigned int port,
			const char *shunt_port, char said[16])
{
	char number[16];
	char *argv[] = { (char *)program, "perf-end",	      "open-server", (char *)place->address,
			 number,	  (char *)shunt_port, NULL };
	struct shunt_child_start start = { .argv = argv, .library = library, .dir = "/" };
	int ends[2], rc;

	snprintf(number, sizeof(number), "%u", port);
	if (pipe2(ends, O_CLOEXEC))
		return -errno;
	start.inherit = ends[1];
	start.cpus = pin->given ? &pin->server : NULL;
	rc = shunt_child_start(child, &start);
	close(ends[1]);
	if (!rc)
		rc = shunt_child_wait_line(child, ends[0], START_SECONDS, said, 16);
	close(ends[0]);
	return rc;
}

/* Until a signal, or until either ends, which it does not without a reason. */
static int wait_for_both(struct shunt_child *plain, struct shunt_child *shunted)
{
	for (;;) {
		int rc = shunt_child_wait(plain, 0.5);

		if (rc == -ETIMEDOUT)
			rc = shunt_child_wait(shunted, 0.5);
		if (rc == -ETIMEDOUT)
			continue;
		return rc;
	}
}

static int serve(const struct place *place, const char *program, const char *library,
		 const struct perf_pin *pin)
{
	struct shunt_child plain = { 0 }, shunted = { 0 };
	char plain_port[16], shunt_port[16];
	int rc = start_server(&shunted, program, library, pin, place,
			      place->port ? place->port + 1 : 0, "0", shunt_port);

	if (!rc)
		rc = start_server(&plain, program, NULL, pin, place, place->port, shunt_port,
				  plain_port);
	if (!rc) {
		printf("shunt perf: serves at %s, plain at port %s and shunted at port %s\n",
		       place->address, plain_port, shunt_port);
		fflush(stdout);
		rc = wait_for_both(&plain, &shunted);
	}
	shunt_child_stop(&plain);
	shunt_child_stop(&shunted);
	if (rc == -EINTR)
		return 0;
	fprintf(stderr, "shunt perf: a server has ended%s%s\n", rc ? ": " : "",
		rc ? strerror(-rc) : "");
	return EXIT_FAILED;
}

int perf_serve(const char *where, const struct perf_pin *pin)
{
	char program[PATH_MAX], library[PATH_MAX];
	struct place place;
	ssize_t length;
	int rc;

	if (parse_place(&place, where)) {
		fprintf(stderr,
			"shunt perf: '%s' is not ADDRESS[:PORT]; an address is numeric, and a "
			"port below 65535, as the next is used, too\n",
			where);
		return EXIT_USAGE;
	}
	length = readlink("/proc/self/exe", program, sizeof(program) - 1);
	rc = shunt_child_init();
	if (length <= 0 || rc) {
		fprintf(stderr, "shunt perf: cannot start: %s\n", strerror(rc ? -rc : errno));
		return EXIT_FAILED;
	}
	program[length] = '\0';
	if (shunt_library_find(library))
		return EXIT_FAILED;
	return serve(&place, program, library, pin);
}
