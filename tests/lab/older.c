/* SPDX-License-Identifier: MIT */
/*
 * older ADDRESS PORT: a host of another wire version, as far as the connection manager shows it. It listens with TCP and at
 * the connection manager, and answers each question with the version after ours. Until it is ended.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include "core/device/cm/cm.h"
#include "core/peer/remote_words.h"

static uint64_t now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

static int on_question(void *arg, const uint8_t *question, unsigned int bytes,
		       const struct cm_route *route, uint8_t *out)
{
	struct remote_answer answer;
	unsigned int length = shunt_remote_answer_refuse(&answer, SHUNT_REMOTE_WHY_VERSION);

	(void)arg;
	(void)question;
	(void)bytes;
	(void)route;
	answer.version = SHUNT_WIRE_VERSION + 1;
	memcpy(out, &answer, length);
	return (int)length;
}

int main(int argc, char **argv)
{
	static const struct cm_callbacks callbacks = { .question = on_question };
	struct sockaddr_in address = { .sin_family = AF_INET };
	static int listener;
	struct cm_listener *asked;
	struct cm cm = { 0 };

	if (argc != 3 || inet_pton(AF_INET, argv[1], &address.sin_addr) != 1)
		return 2;
	listener = socket(AF_INET, SOCK_STREAM, 0);
	address.sin_port = htons((uint16_t)atoi(argv[2]));
	if (cm_open(&cm, &callbacks, NULL) ||
	    cm_listen(&cm, (struct sockaddr *)&address, false, NULL, &asked)) {
		fprintf(stderr, "older: %s\n", cm.error);
		return 1;
	}
	if (bind(listener, (struct sockaddr *)&address, sizeof(address)) || listen(listener, 8)) {
		perror("older");
		return 1;
	}
	for (;;) {
		struct pollfd wait = { .fd = cm_fd(&cm), .events = POLLIN };

		poll(&wait, 1, 1000);
		cm_step(&cm, now());
	}
}
