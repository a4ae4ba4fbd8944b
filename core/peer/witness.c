/* SPDX-License-Identifier: MIT */
#include "core/peer/witness.h"
#include <errno.h>
#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/sock_diag.h>
#include <linux/unix_diag.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>
#include "core/base/address.h"
#include "core/base/narrow.h"
#include "core/fd/own_fds.h"
#include "core/service.h"
#include "core/stream/tuple.h"

#ifndef SO_PEERPIDFD
#define SO_PEERPIDFD 77
#endif

#define ANSWER_BYTES 4096	/* an answer has some 500 */

struct question {
	struct nlmsghdr header;
	union {
		struct inet_diag_req_v2 tcp;
		struct unix_diag_req unix_;
	};
};

/* --- talking to the kernel --- */

static int call(struct shunt_service *service)
{
	struct shunt_witness *witness = &service->witness;
	struct shunt_engine *engine = service->engine;

	if (witness->fd >= 0)
		return 0;
	witness->fd = shunt_own_fds_make(
		&engine->fds,
		engine->sys->socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK,
				    NETLINK_SOCK_DIAG));
	if (witness->fd >= 0)
		return 0;
	return witness->fd;
}

void shunt_witness_dismiss(struct shunt_service *service)
{
	shunt_own_fds_close(&service->engine->fds, service->witness.fd);
	service->witness.fd = -1;
}

static int witness_ask(struct shunt_service *service, struct question questions[], uint32_t count)
{
	struct iovec iov = { questions, count * sizeof(*questions) };
	struct sockaddr_nl kernel = { .nl_family = AF_NETLINK };
	struct msghdr message = { .msg_name = &kernel, .msg_namelen = sizeof(kernel), .msg_iov = &iov, .msg_iovlen = 1 };

	for (uint32_t i = 0; i < count; i++)
		questions[i].header.nlmsg_seq = ++service->witness.sequence;
	return service->engine->sys->sendmsg(service->witness.fd, &message, MSG_DONTWAIT) < 0 ? -errno : 0;
}

/* The kernel answers before sendmsg() returns. The length of the next answer; 0: none that counts; or -errno. */
static ssize_t witness_hear(struct shunt_service *service, void *answer)
{
	struct iovec iov = { answer, ANSWER_BYTES };
	struct sockaddr_nl sender = { 0 };
	struct msghdr message = { .msg_name = &sender, .msg_namelen = sizeof(sender), .msg_iov = &iov, .msg_iovlen = 1 };
	const struct nlmsghdr *header = answer;
	ssize_t got = service->engine->sys->recvmsg(service->witness.fd, &message, MSG_DONTWAIT);

	if (got < 0)
		return -errno;
	if (sender.nl_pid || message.msg_flags & MSG_TRUNC || got < (ssize_t)sizeof(*header) ||
	    header->nlmsg_len > (size_t)got)
		return 0;
	return header->nlmsg_len;
}

/* --- TCP --- */

static void ask_about(struct question *question, const struct shunt_tuple *tuple)
{
	struct inet_diag_req_v2 *tcp = &question->tcp;
	bool v4 = shunt_address_is_v4(tuple->local);
	size_t from = v4 ? 12 : 0;

	*question = (struct question) {
		.header = { .nlmsg_len = NLMSG_LENGTH(sizeof(*tcp)), .nlmsg_type = SOCK_DIAG_BY_FAMILY,
			    .nlmsg_flags = NLM_F_REQUEST },
		.tcp = { .sdiag_family = v4 ? AF_INET : AF_INET6, .sdiag_protocol = IPPROTO_TCP, .idiag_states = ~0u,
			 .id = { .idiag_sport = tuple->local_port, .idiag_dport = tuple->peer_port,
				 .idiag_cookie = { INET_DIAG_NOCOOKIE, INET_DIAG_NOCOOKIE } } },
	};
	memcpy(tcp->id.idiag_src, tuple->local + from, 16 - from);
	memcpy(tcp->id.idiag_dst, tuple->peer + from, 16 - from);
}

/* An IPv6 socket that speaks IPv4 is shown with mapped addresses. */
static bool is_address(const uint8_t address[16], uint8_t family, const void *shown)
{
	return family == AF_INET ? shunt_address_is_v4(address) && !memcmp(address + 12, shown, 4) :
				   !memcmp(address, shown, 16);
}

/* An exact question may be answered by a listener, a connection in the making, or the remains of one. */
static bool is_connection(const struct inet_diag_msg *shown, const struct shunt_tuple *tuple)
{
	return (shown->idiag_state == TCP_ESTABLISHED || shown->idiag_state == TCP_FIN_WAIT1 ||
		shown->idiag_state == TCP_FIN_WAIT2 || shown->idiag_state == TCP_CLOSE_WAIT) &&
	       shown->id.idiag_sport == tuple->local_port &&
	       shown->id.idiag_dport == tuple->peer_port &&
	       is_address(tuple->local, shown->idiag_family, shown->id.idiag_src) &&
	       is_address(tuple->peer, shown->idiag_family, shown->id.idiag_dst);
}

static uint8_t bits_of(const struct inet_diag_sockopt *options)
{
	return (uint8_t)((options->freebind ? SHUNT_WITNESS_FREEBIND : 0) |
			 (options->bind_address_no_port ? SHUNT_WITNESS_NO_PORT : 0) |
			 (options->mc_all ? SHUNT_WITNESS_MC_ALL : 0) |
			 (options->mc_loop ? SHUNT_WITNESS_MC_LOOP : 0));
}

/* The attribute of that type and size at least, or NULL. */
static const void *attribute(const uint8_t *at, size_t bytes, uint16_t type, size_t least)
{
	struct nlattr header;

	while (bytes >= sizeof(header)) {
		memcpy(&header, at, sizeof(header));
		if (header.nla_len < sizeof(header) || header.nla_len > bytes)
			return NULL;
		if ((header.nla_type & NLA_TYPE_MASK) == type)
			return header.nla_len >= NLA_HDRLEN + least ? at + NLA_HDRLEN : NULL;
		if (NLA_ALIGN((size_t)header.nla_len) >= bytes)
			return NULL;
		bytes -= NLA_ALIGN((size_t)header.nla_len);
		at += NLA_ALIGN((size_t)header.nla_len);
	}
	return NULL;
}

bool shunt_witness_read(const void *message, size_t bytes, const struct shunt_tuple *tuple,
			struct shunt_sighting *seen)
{
	const struct nlmsghdr *header = message;
	struct inet_diag_sockopt options;
	struct inet_diag_msg shown;
	const void *found;

	if (bytes < NLMSG_LENGTH(sizeof(shown)) || header->nlmsg_type != SOCK_DIAG_BY_FAMILY)
		return false;
	memcpy(&shown, (const uint8_t *)message + NLMSG_HDRLEN, sizeof(shown));
	if (!is_connection(&shown, tuple))
		return false;
	found = attribute((const uint8_t *)message + NLMSG_SPACE(sizeof(shown)),
			  bytes - NLMSG_LENGTH(sizeof(shown)), INET_DIAG_SOCKOPT, sizeof(options));
	if (!found)
		return false;
	memcpy(&options, found, sizeof(options));
	*seen = (struct shunt_sighting) {
		.seen = true, .established = shown.idiag_state == TCP_ESTABLISHED, .user = shown.idiag_uid, .bits = bits_of(&options),
		.cookie = (uint64_t)shown.id.idiag_cookie[1] << 32 | shown.id.idiag_cookie[0],
	};
	return true;
}

static int look_at_some(struct shunt_service *service, const struct shunt_tuple tuples[],
			struct shunt_sighting seen[], uint32_t count)
{
	struct question questions[SHUNT_WITNESS_BATCH];
	_Alignas(struct nlmsghdr) uint8_t answer[ANSWER_BYTES];
	const struct nlmsghdr *header = (const void *)answer;
	uint32_t first = service->witness.sequence + 1;
	ssize_t got = 0;
	int result;

	for (uint32_t i = 0; i < count; i++)
		ask_about(&questions[i], &tuples[i]);
	result = witness_ask(service, questions, count);
	if (result)
		return result;
	for (uint32_t heard = 0; heard < count && (got = witness_hear(service, answer)) >= 0;) {
		uint32_t which = got ? header->nlmsg_seq - first : count;

		if (which >= count)
			continue;
		heard++;	/* an error is an answer, too: there is no such socket */
		shunt_witness_read(answer, (size_t)got, &tuples[which], &seen[which]);
	}
	return got >= 0 || got == -EAGAIN || got == -ENOBUFS ? 0 : (int)got;
}

int shunt_witness_look(struct shunt_service *service, const struct shunt_tuple tuples[],
		       struct shunt_sighting seen[], uint32_t count)
{
	int result = call(service);

	memset(seen, 0, count * sizeof(*seen));
	for (uint32_t at = 0; at < count && !result; at += SHUNT_WITNESS_BATCH)
		result = look_at_some(service, tuples + at, seen + at,
				      count - at < SHUNT_WITNESS_BATCH ? count - at :
									 SHUNT_WITNESS_BATCH);
	return result;
}

/* The kernel's socket of these addresses: also a listener, or a connection in the making. False: there is none. */
static bool witness_find(struct shunt_service *service, const struct shunt_tuple *tuple,
			 struct inet_diag_msg *shown)
{
	_Alignas(struct nlmsghdr) uint8_t answer[ANSWER_BYTES];
	const struct nlmsghdr *header = (const void *)answer;
	struct question question;
	ssize_t got = 0;

	if (call(service))
		return false;
	ask_about(&question, tuple);
	if (witness_ask(service, &question, 1))
		return false;
	while (!got || header->nlmsg_seq != service->witness.sequence)
		if ((got = witness_hear(service, answer)) < 0)
			return false;
	if ((size_t)got < NLMSG_LENGTH(sizeof(*shown)) || header->nlmsg_type != SOCK_DIAG_BY_FAMILY)
		return false;
	memcpy(shown, answer + NLMSG_HDRLEN, sizeof(*shown));
	return true;
}

/* No connection has port 0 at its far end, so the kernel finds the listener. */
bool shunt_witness_listener(struct shunt_service *service, const struct shunt_tuple *own,
			    uid_t *user)
{
	struct shunt_tuple tuple = shunt_tuple_reverse(own);
	struct inet_diag_msg shown;

	tuple.peer_port = 0;
	if (!witness_find(service, &tuple, &shown))
		return false;
	*user = shown.idiag_uid;
	return shown.idiag_state == TCP_LISTEN;
}

/* With TCP_DEFER_ACCEPT it has a socket when the first byte has come; until then the kernel has only noted it. */
static bool is_deferred(struct shunt_service *service, const struct shunt_tuple *tuple)
{
	struct inet_diag_msg shown;

	return witness_find(service, tuple, &shown) && shown.idiag_state == TCP_SYN_RECV &&
	       shown.id.idiag_sport == tuple->local_port &&
	       shown.id.idiag_dport == tuple->peer_port;
}

bool shunt_witness_misses(struct shunt_service *service, const struct shunt_tuple *own)
{
	struct shunt_tuple tuples[2] = { *own, shunt_tuple_reverse(own) };
	struct shunt_sighting seen[2];

	return !shunt_witness_look(service, tuples, seen, 2) && seen[0].established &&
	       !seen[1].seen && !is_deferred(service, &tuples[1]);
}

/* --- the channel --- */

/* An attribute of the Unix socket with that inode: 32 bits, from byte `from` on. */
static int ask_unix(struct shunt_service *service, uint32_t inode, uint32_t show, uint16_t type,
		    size_t from, uint32_t *value)
{
	struct question question = {
		.header = { .nlmsg_len = NLMSG_LENGTH(sizeof(question.unix_)), .nlmsg_type = SOCK_DIAG_BY_FAMILY,
			    .nlmsg_flags = NLM_F_REQUEST },
		.unix_ = { .sdiag_family = AF_UNIX, .udiag_states = ~0u, .udiag_ino = inode, .udiag_show = show,
			   .udiag_cookie = { INET_DIAG_NOCOOKIE, INET_DIAG_NOCOOKIE } },
	};
	_Alignas(struct nlmsghdr) uint8_t answer[ANSWER_BYTES];
	const struct nlmsghdr *header = (const void *)answer;
	struct unix_diag_msg shown;
	const uint8_t *found = NULL;
	int result = witness_ask(service, &question, 1);
	ssize_t got;

	if (result)
		return result;
	while ((got = witness_hear(service, answer)) >= 0) {
		if ((size_t)got < NLMSG_LENGTH(sizeof(shown)) ||
		    header->nlmsg_type != SOCK_DIAG_BY_FAMILY ||
		    header->nlmsg_seq != service->witness.sequence)
			continue;
		memcpy(&shown, answer + NLMSG_HDRLEN, sizeof(shown));
		if (shown.udiag_ino != inode)
			continue;
		found = attribute(answer + NLMSG_SPACE(sizeof(shown)),
				  (size_t)got - NLMSG_LENGTH(sizeof(shown)), type,
				  from + sizeof(*value));
		if (found)
			memcpy(value, found + from, sizeof(*value));
	}
	return found ? 0 : -ENOENT;
}

static int other_end(struct shunt_service *service, uint32_t inode, uint32_t *peer)
{
	int result = ask_unix(service, inode, UDIAG_SHOW_PEER, UNIX_DIAG_PEER, 0, peer);

	return result ? result : *peer ? 0 : -ENOENT;
}

bool shunt_witness_sent_nothing(struct shunt_links *links, int fd)
{
	struct shunt_service *service = shunt_engine_of(links, links)->service;
	uint32_t ends[2], bytes;

	return !shunt_witness_channel(service, fd, ends) &&
	       !ask_unix(service, ends[1], UDIAG_SHOW_MEMINFO, UNIX_DIAG_MEMINFO,
			 SK_MEMINFO_WMEM_ALLOC * sizeof(bytes), &bytes) &&
	       !bytes;
}

/* The inode of the process at the far end. Inside shunt_own_fds_begin(). */
static int peers_inode(const struct shunt_sys *sys, int fd, uint64_t *inode)
{
	socklen_t length = sizeof(int);
	int process = -1, result = 0;
	struct stat about;

	*inode = 0;
	if (sys->getsockopt(fd, SOL_SOCKET, SO_PEERPIDFD, &process, &length))
		return errno == ENOPROTOOPT ? 0 : -errno;
	if (fstat(process, &about))
		result = -errno;
	else
		*inode = about.st_ino;
	sys->close(process);
	return result;
}

/* A child of a fork is another process. */
static int own_inode(struct shunt_service *service)
{
	struct shunt_witness *witness = &service->witness;
	const struct shunt_sys *sys = service->engine->sys;
	int ends[2], result;

	if (witness->process == service->engine->forks.pid)
		return 0;
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends))
		return -errno;
	result = peers_inode(sys, ends[0], &witness->inode);
	sys->close(ends[0]);
	sys->close(ends[1]);
	if (!result)
		witness->process = service->engine->forks.pid;
	return result;
}

int shunt_witness_processes(struct shunt_service *service, int fd, uint64_t processes[2])
{
	int result;

	shunt_own_fds_begin(&service->engine->fds);
	result = own_inode(service);
	processes[0] = service->witness.inode;
	if (!result)
		result = peers_inode(service->engine->sys, fd, &processes[1]);
	shunt_own_fds_end(&service->engine->fds);
	return result;
}

int shunt_witness_channel(struct shunt_service *service, int fd, uint32_t ends[2])
{
	struct stat own;
	int result = call(service);

	if (result || fstat(fd, &own))
		return result ? result : -errno;
	ends[0] = shunt_narrow_u32(own.st_ino);
	ends[1] = 0;
	return other_end(service, ends[0], &ends[1]);
}
