/* SPDX-License-Identifier: MIT */
/* Apart from the others: the C library's struct tcp_info is older than the kernel's. */
#include <netinet/in.h>
#include <linux/tcp.h>
#include <sys/socket.h>
#include "tests/calls/carried.h"

uint64_t carried(int fd)
{
	struct tcp_info info = {0};
	socklen_t len = sizeof(info);

	getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &len);
	return info.tcpi_bytes_sent + info.tcpi_bytes_received;
}
