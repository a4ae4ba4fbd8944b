/* SPDX-License-Identifier: MIT */
/*
 * The user of the other end of a connection within this host, by the kernel's word (sock_diag(7)). A socket
 * that no process holds any more, in TIME_WAIT for example, has no inode, and 0 for its user: it is nobody's.
 */
#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/sock_diag.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tools/monitor/monitor.h"

#define ANSWER_BYTES 4096

struct question {
	struct nlmsghdr header;
	struct inet_diag_req_v2 request;
};

static void set_end(uint32_t address[4], __be16 *port, const union monitor_address *end)
{
	if (end->any.sa_family == AF_INET6) {
		memcpy(address, &end->v6.sin6_addr, 16);
		*port = end->v6.sin6_port;
	} else {
		memcpy(address, &end->v4.sin_addr, 4);
		*port = end->v4.sin_port;
	}
}

static bool ask(int fd, const union monitor_address *client, const union monitor_address *own)
{
	struct question question = {
		.header = { .nlmsg_len = sizeof(question),
			    .nlmsg_type = SOCK_DIAG_BY_FAMILY,
			    .nlmsg_flags = NLM_F_REQUEST },
		.request = { .sdiag_protocol = IPPROTO_TCP, .idiag_states = ~0U },
	};
	struct inet_diag_sockid *id = &question.request.id;

	question.request.sdiag_family = (uint8_t)client->any.sa_family;
	set_end(id->idiag_src, &id->idiag_sport, client);
	set_end(id->idiag_dst, &id->idiag_dport, own);
	id->idiag_cookie[0] = id->idiag_cookie[1] = INET_DIAG_NOCOOKIE;
	return send(fd, &question, sizeof(question), 0) == (ssize_t)sizeof(question);
}

/* The kernel has answered before send() returned. */
static bool hear(int fd, struct inet_diag_msg *said)
{
	_Alignas(struct nlmsghdr) char answer[ANSWER_BYTES];
	const struct nlmsghdr *header = (const void *)answer;
	ssize_t got = recv(fd, answer, sizeof(answer), MSG_DONTWAIT);

	if (got < (ssize_t)NLMSG_LENGTH(sizeof(*said)) || header->nlmsg_type != SOCK_DIAG_BY_FAMILY)
		return false;
	memcpy(said, answer + NLMSG_HDRLEN, sizeof(*said));
	return true;
}

/* The kernel may answer with a socket that only listens at the address. */
static bool is_client(const struct inet_diag_msg *said, const union monitor_address *client,
		      const union monitor_address *own)
{
	struct inet_diag_sockid id = { 0 };
	size_t bytes = client->any.sa_family == AF_INET6 ? 16 : 4;

	set_end(id.idiag_src, &id.idiag_sport, client);
	set_end(id.idiag_dst, &id.idiag_dport, own);
	return said->idiag_inode && said->id.idiag_sport == id.idiag_sport &&
	       said->id.idiag_dport == id.idiag_dport &&
	       !memcmp(said->id.idiag_src, id.idiag_src, bytes) &&
	       !memcmp(said->id.idiag_dst, id.idiag_dst, bytes);
}

bool monitor_user(const union monitor_address *client, const union monitor_address *own,
		  uid_t *user)
{
	struct sockaddr_nl kernel = { .nl_family = AF_NETLINK };
	struct inet_diag_msg said;
	int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_SOCK_DIAG);
	bool known;

	if (fd < 0)
		return false;
	known = !connect(fd, (struct sockaddr *)&kernel, sizeof(kernel)) && ask(fd, client, own) &&
		hear(fd, &said) && is_client(&said, client, own);
	close(fd);
	if (known)
		*user = said.idiag_uid;
	return known;
}
