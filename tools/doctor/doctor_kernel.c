/* SPDX-License-Identifier: MIT */
/* Questions to sock_diag(7) that have no answer but whether the kernel takes them. */
#include "tools/doctor/doctor.h"

#include <errno.h>
#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/sock_diag.h>
#include <linux/unix_diag.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#define ANSWER_BYTES 4096

/* A dump of sockets in no state at all: it ends at once, or with an error where a module is missing. */
struct question {
	struct nlmsghdr header;
	union {
		struct inet_diag_req_v2 tcp;
		struct unix_diag_req unix_;
	};
};

static void make_question(struct question *question, int family)
{
	size_t bytes = family == AF_UNIX ? sizeof(question->unix_) : sizeof(question->tcp);

	memset(question, 0, sizeof(*question));
	question->header = (struct nlmsghdr) { .nlmsg_len = (uint32_t)NLMSG_LENGTH(bytes),
					       .nlmsg_type = SOCK_DIAG_BY_FAMILY,
					       .nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP };
	if (family == AF_UNIX) {
		question->unix_.sdiag_family = AF_UNIX;
	} else {
		question->tcp.sdiag_family = (uint8_t)family;
		question->tcp.sdiag_protocol = IPPROTO_TCP;
	}
}

/* NLMSG_DONE and NLMSG_ERROR both have a number behind the header. */
static int read_answer(int fd)
{
	_Alignas(struct nlmsghdr) char answer[ANSWER_BYTES];
	const struct nlmsghdr *header = (const void *)answer;
	ssize_t got = recv(fd, answer, sizeof(answer), 0);
	int error = 0;

	if (got < 0)
		return -errno;
	if ((size_t)got < NLMSG_LENGTH(sizeof(error)))
		return -EPROTO;
	if (header->nlmsg_type != NLMSG_DONE && header->nlmsg_type != NLMSG_ERROR)
		return 0;
	memcpy(&error, answer + NLMSG_HDRLEN, sizeof(error));
	return error;
}

int shunt_doctor_sock_diag(int family)
{
	struct timeval patience = { .tv_sec = 1 };
	struct sockaddr_nl kernel = { .nl_family = AF_NETLINK };
	struct question question;
	int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_SOCK_DIAG), result;

	if (fd < 0)
		return -errno;
	make_question(&question, family);
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
	if (sendto(fd, &question, question.header.nlmsg_len, 0, (struct sockaddr *)&kernel,
		   sizeof(kernel)) < 0)
		result = -errno;
	else
		result = read_answer(fd);
	close(fd);
	return result;
}
