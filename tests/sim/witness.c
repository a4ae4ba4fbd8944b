/* SPDX-License-Identifier: MIT */
#include "tests/sim/witness.h"
#include <arpa/inet.h>
#include <errno.h>
#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/sock_diag.h>
#include <linux/tcp.h>
#include <stddef.h>
#include <string.h>
#include <unistd.h>
#include "tests/sim/sys.h"

#define ANSWERS 64	/* that wait to be received: one batch of questions has fewer */

struct answer {
	struct nlmsghdr header;
	union {
		struct nlmsgerr error;
		struct {
			struct inet_diag_msg socket;
			struct nlattr attribute;
			struct inet_diag_sockopt options;
			uint16_t padding;
		};
	};
};

_Static_assert(offsetof(struct answer, attribute) == NLMSG_SPACE(sizeof(struct inet_diag_msg)),
	       "as the kernel writes it");

static struct answer answers[ANSWERS];
static unsigned int first, count;	/* of those that wait */
static int asked_on;			/* the descriptor that they are for */

int sim_witness_bit(int level, int name)
{
	static const int names[SIM_OPTIONS] = { IP_FREEBIND, IP_BIND_ADDRESS_NO_PORT,
						IP_MULTICAST_ALL, IP_MULTICAST_LOOP };

	for (int i = 0; level == IPPROTO_IP && i < SIM_OPTIONS; i++)
		if (names[i] == name)
			return i;
	return -1;
}

/* By its connection: no draw, and no number that depends on who asks first. */
uint64_t sim_witness_cookie(struct sim_sock *sock)
{
	return 1 + ((uint64_t)ntohs(sock->local.sin_port) << 20 |
		    (uint64_t)ntohs(sock->remote.sin_port) << 4 | sock->connector);
}

bool sim_witness_is_asked(const struct msghdr *message)
{
	return message->msg_name && message->msg_namelen == sizeof(struct sockaddr_nl);
}

/* A socket that nobody has open any more is found at its peer. */
static struct sim_sock *find(const struct inet_diag_sockid *id)
{
	for (int fd = 0; fd < SIM_FDS; fd++)
		for (int other = 0; sim_sock_of[fd] && other < 2; other++) {
			struct sim_sock *sock = other ? sim_sock_of[fd]->peer : sim_sock_of[fd];

			if (sock && sock->state != SIM_TCP_CLOSED &&
			    sock->local.sin_port == id->idiag_sport &&
			    sock->remote.sin_port == id->idiag_dport &&
			    sock->local.sin_addr.s_addr == id->idiag_src[0] &&
			    sock->remote.sin_addr.s_addr == id->idiag_dst[0])
				return sock;
		}
	return NULL;
}

static void describe(struct sim_sock *sock, const struct inet_diag_sockid *id,
		     struct answer *answer)
{
	uint64_t cookie = sim_witness_cookie(sock);
	struct tcp_info info;

	sim_tcp_info(sock, &info);
	answer->header.nlmsg_type = SOCK_DIAG_BY_FAMILY;
	answer->header.nlmsg_len = offsetof(struct answer, padding) + sizeof(answer->padding);
	answer->socket = (struct inet_diag_msg) { .idiag_family = AF_INET, .idiag_state = info.tcpi_state, .id = *id,
						  .idiag_uid = getuid() };
	answer->socket.id.idiag_cookie[0] = (uint32_t)cookie;
	answer->socket.id.idiag_cookie[1] = (uint32_t)(cookie >> 32);
	answer->attribute = (struct nlattr) { .nla_len = NLA_HDRLEN + sizeof(answer->options), .nla_type = INET_DIAG_SOCKOPT };
	answer->options = (struct inet_diag_sockopt) {
		.freebind = sock->options & 1, .bind_address_no_port = sock->options >> 1 & 1,
		.mc_all = sock->options >> 2 & 1, .mc_loop = sock->options >> 3 & 1,
	};
}

static void answer_to(const struct nlmsghdr *header, const struct inet_diag_req_v2 *question,
		      struct answer *answer)
{
	struct sim_sock *sock = question->sdiag_family == AF_INET &&
						question->sdiag_protocol == IPPROTO_TCP ?
					find(&question->id) :
					NULL;

	memset(answer, 0, sizeof(*answer));
	answer->header.nlmsg_seq = header->nlmsg_seq;
	if (sock) {
		describe(sock, &question->id, answer);
		return;
	}
	answer->header.nlmsg_type = NLMSG_ERROR;
	answer->header.nlmsg_len = NLMSG_LENGTH(sizeof(answer->error));
	answer->error = (struct nlmsgerr) { .error = -ENOENT, .msg = *header };
}

ssize_t sim_witness_send(int fd, const struct msghdr *message, int flags)
{
	const uint8_t *at = message->msg_iov->iov_base;
	size_t bytes = message->msg_iov->iov_len;
	struct nlmsghdr header;

	first = count = 0;
	asked_on = fd;
	for (size_t from = 0; from + sizeof(header) <= bytes;
	     from += NLMSG_ALIGN(header.nlmsg_len)) {
		struct inet_diag_req_v2 question;

		memcpy(&header, at + from, sizeof(header));
		if (header.nlmsg_len < sizeof(header) || header.nlmsg_len > bytes - from)
			break;
		if (at[from + sizeof(header)] == AF_UNIX)
			return sendmsg(fd, message, flags);
		if (header.nlmsg_len < NLMSG_LENGTH(sizeof(question)) || count == ANSWERS)
			break;
		memcpy(&question, at + from + NLMSG_HDRLEN, sizeof(question));
		answer_to(&header, &question, &answers[count++]);
	}
	return (ssize_t)bytes;
}

ssize_t sim_witness_receive(int fd, struct msghdr *message, int flags)
{
	struct answer *answer = &answers[first];
	size_t bytes = answer->header.nlmsg_len;

	if (fd != asked_on || first == count)
		return recvmsg(fd, message, flags);
	first++;
	message->msg_flags = bytes > message->msg_iov->iov_len ? MSG_TRUNC : 0;
	if (bytes > message->msg_iov->iov_len)
		bytes = message->msg_iov->iov_len;
	memcpy(message->msg_iov->iov_base, answer, bytes);
	memset(message->msg_name, 0, sizeof(struct sockaddr_nl));
	return (ssize_t)bytes;
}
