/*
 * upgrade PORT COUNT: opens so many connections to an echo server of this host, one after the other, and prints for
 * each how many microseconds after the call of connect() the first answer came that no TCP segment has carried
 * (TCP_INFO is the kernel's). A plain program: bare, and where nothing is upgraded within two seconds, it prints 0.
 */
#include <stdint.h>
#include <unistd.h>
#include <linux/tcp.h>
#include "tests/plain.h"

#define PATIENCE 2.0

/* Both ways, by TCP. */
static uint64_t tcp_bytes(int fd)
{
	struct tcp_info info = {0};
	socklen_t len = sizeof(info);

	if (getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &len))
		die("TCP_INFO");
	return info.tcpi_bytes_sent + info.tcpi_bytes_received;
}

static void ask(int fd)
{
	char c = 'x';

	if (send(fd, &c, 1, MSG_NOSIGNAL) != 1 || recv(fd, &c, 1, 0) != 1)
		die("ask");
}

static double upgraded_after(int port)
{
	double start = now();
	int fd = dial(loopback(port)); /* stays open */
	uint64_t before, after = tcp_bytes(fd);

	do {
		before = after;
		ask(fd);
		after = tcp_bytes(fd);
		if (after == before)
			return now() - start;
	} while (now() - start < PATIENCE);
	return 0;
}

int main(int argc, char **argv)
{
	if (argc != 3) {
		fprintf(stderr, "usage: upgrade PORT COUNT\n");
		return 2;
	}
	for (int i = 0; i < atoi(argv[2]); i++)
		printf("%.0f\n", upgraded_after(atoi(argv[1])) * 1e6);
	return 0;
}
