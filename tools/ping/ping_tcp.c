/* SPDX-License-Identifier: MIT */
/* The kernel's own round trip: connections that carry no byte, made without Shunt. */
#include "tools/ping/ping.h"

#include <errno.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <unistd.h>

#include "tools/perf/end/perf_end.h"

static int await(int fd, unsigned int wait_ms)
{
	struct pollfd wait = { .fd = fd, .events = POLLOUT };
	socklen_t length = sizeof(int);
	int error = 0, rc;

	do
		rc = poll(&wait, 1, (int)wait_ms);
	while (rc < 0 && errno == EINTR);
	if (!rc)
		return -ETIMEDOUT;
	if (rc < 0 || getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &length))
		return -errno;
	return -error;
}

int ping_connect(const union ping_address *to, const char *from, unsigned int wait_ms)
{
	int fd = socket(to->any.sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	union ping_address ours;
	int rc = fd < 0 ? -errno : 0;

	if (!rc && from && !ping_address_parse(from, &ours) &&
	    bind(fd, &ours.any, ping_address_length(&ours)))
		rc = -errno;
	if (!rc && connect(fd, &to->any, ping_address_length(to)))
		rc = errno == EINPROGRESS ? await(fd, wait_ms) : -errno;
	if (!rc)
		return fd;
	if (fd >= 0)
		close(fd);
	return rc;
}

static uint64_t kernel_rtt(int fd)
{
	struct tcp_info info = { 0 };
	socklen_t length = sizeof(info);

	if (getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &length))
		return 0;
	return (uint64_t)info.tcpi_rtt * 1000;
}

void ping_tcp(const struct ping_target *target, const struct ping_options *options,
	      struct ping_tcp *tcp)
{
	uint64_t connects[PING_COUNT_MAX], rtts[PING_COUNT_MAX];

	*tcp = (struct ping_tcp) { .connect_ns = PING_NEVER, .rtt_ns = PING_NEVER };
	for (unsigned int i = 0; i < options->count; i++) {
		uint64_t begun = perf_now();
		int fd = ping_connect(&target->address, options->from, options->wait_ms);

		if (fd < 0) {
			tcp->error = -fd;
			return;
		}
		connects[i] = perf_now() - begun;
		rtts[i] = kernel_rtt(fd);
		close(fd);
		if (options->interval_ms)
			poll(NULL, 0, (int)options->interval_ms);
	}
	tcp->connect_ns = ping_median(connects, options->count);
	tcp->rtt_ns = ping_median(rtts, options->count);
}
