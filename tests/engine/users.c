/* SPDX-License-Identifier: MIT */
#include "tests/engine/users.h"
#include <errno.h>
#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/un.h>
#include <unistd.h>
#include "core/api.h"
#include "core/peer/link_end.h"
#include "core/service.h"
#include "tests/sim/names.h"

static const int names[] = { IP_FREEBIND, IP_BIND_ADDRESS_NO_PORT, IP_MULTICAST_ALL,
			     IP_MULTICAST_LOOP };

static struct shunt_sys sys[2];
uint32_t refused_for[2];
static int door = -1;	/* of a middleman: engine 0 comes here; -1: engine 0 goes to the name */
static struct sockaddr_un door_address;
static socklen_t door_length;
bool is_blind;
bool is_elsewhere;
in_port_t replaced;

static int hidden_prctl(int option, ...)
{
	assert_int_equal(option, PR_GET_DUMPABLE);
	return 0;
}

static int blind_socket(int family, int type, int protocol)
{
	if (family != AF_NETLINK || !is_blind)
		return socket(family, type, protocol);
	errno = EAFNOSUPPORT;
	return -1;
}

static int other_cookie(int fd, int level, int name, void *value, socklen_t *length)
{
	int result = getsockopt(fd, level, name, value, length);

	if (is_elsewhere && level == SOL_SOCKET && name == SO_COOKIE)
		++*(uint64_t *)value;
	return result;
}

static ssize_t other_answer(int fd, struct msghdr *message, int flags)
{
	ssize_t got = recvmsg(fd, message, flags);
	uint8_t *at = message->msg_iov->iov_base;
	struct inet_diag_msg shown;

	if (got < (ssize_t)NLMSG_LENGTH(sizeof(shown)) ||
	    message->msg_namelen != sizeof(struct sockaddr_nl))
		return got;
	memcpy(&shown, at + NLMSG_HDRLEN, sizeof(shown));
	if (shown.idiag_family == AF_INET && shown.id.idiag_sport == replaced)
		shown.id.idiag_cookie[0]++;
	memcpy(at + NLMSG_HDRLEN, &shown, sizeof(shown));
	return got;
}

static int connect_to_door(int fd, const struct sockaddr *address, socklen_t length)
{
	return door < 0 || address->sa_family != AF_UNIX ?
		       sim_names_connect(fd, address, length) :
		       connect(fd, (struct sockaddr *)&door_address, door_length);
}

static ssize_t note(int which, int fd, const struct msghdr *header, int flags)
{
	const struct shunt_message *message = header->msg_iov->iov_base;

	if (header->msg_iov->iov_len == sizeof(*message) && message->type == SHUNT_MSG_REFUSE)
		refused_for[which] = message->why + 1;
	return sendmsg(fd, header, flags);
}

static ssize_t send_of_0(int fd, const struct msghdr *header, int flags)
{
	return note(0, fd, header, flags);
}

static ssize_t send_of_1(int fd, const struct msghdr *header, int flags)
{
	return note(1, fd, header, flags);
}

void make_strangers(void)
{
	struct shunt_config config = small_config(HYBRID);

	config.brief = 0;	/* connections without a link are no reason not to ask */
	make_bed(&config, 0);
	for (int i = 0; i < 2; i++) {
		sys[i] = *engines[i]->sys;
		sys[i].sendmsg = i ? send_of_1 : send_of_0;
		sys[i].prctl = hidden_prctl;
		shunt_engine_surround(engines[i], &sys[i]);
		refused_for[i] = 0;
	}
	sys[0].connect = connect_to_door;
	sys[1].socket = blind_socket;
	sys[1].getsockopt = other_cookie;
	sys[1].recvmsg = other_answer;
	is_blind = is_elsewhere = false;
	replaced = 0;
}

void step(int i)
{
	if (engines[i]->service)
		shunt_service_step(engines[i], 0);
	shunt_group_poll_fully(&engines[i]->group);
}

void settle(void)
{
	for (int i = 0; i < 20; i++)
		turn();
}

int links_of(int i)
{
	int count = 0;

	for (struct shunt_link *link = engines[i]->service->links; link; link = link->next)
		count += atomic_load(&link->state) != SHUNT_LINK_DEAD;
	return count;
}

uint64_t proven(int i)
{
	return atomic_load(&engines[i]->proven);
}

uint64_t disproven(int i)
{
	return atomic_load(&engines[i]->disproven);
}

uint32_t wrong(int i)
{
	pair_skew += SHUNT_DOUBT_NS;
	settle();
	return engines[i]->service->users[0].sum[SHUNT_SUM_WRONG];
}

uint8_t options_of(int fd)
{
	uint8_t bits = 0;

	for (int i = 0; i < SHUNT_WITNESS_BITS; i++) {
		socklen_t length = sizeof(int);
		int on = 0;

		assert_int_equal(getsockopt(fd, IPPROTO_IP, names[i], &on, &length), 0);
		bits |= (uint8_t)((on != 0) << i);
	}
	return bits;
}

void set_options(int fd, uint8_t bits)
{
	for (int i = 0; i < SHUNT_WITNESS_BITS; i++) {
		int on = bits >> i & 1;

		assert_int_equal(setsockopt(fd, IPPROTO_IP, names[i], &on, sizeof(on)), 0);
	}
}

struct pair half_known(int unknown)
{
	struct pair pair;
	char byte;

	connect_pair(&pair);
	shunt_file_closing(engines[unknown], pair.side[unknown].fd);
	if (unknown == CLAIMANT)
		receive_some(&pair.side[1], &byte, 1, MSG_DONTWAIT);
	else
		send_some(&pair.side[0], "x", 1, 0);
	return pair;
}

void close_pair(struct pair *pair)
{
	close_side(&pair->side[0]);
	close_side(&pair->side[1]);
	settle();
}

void assert_clean(int i)
{
	assert_null(engines[i]->service->proofs.first);
	for (struct shunt_link *link = engines[i]->service->links; link; link = link->next)
		assert_int_equal(link->proving, 0);
}

/* --- the door of a middleman --- */

void make_door(void)
{
	door_length = sizeof(door_address);
	door = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	assert_int_equal(bind(door,
			      (struct sockaddr *)&(struct sockaddr_un) { .sun_family = AF_UNIX },
			      sizeof(sa_family_t)),
			 0);
	assert_int_equal(listen(door, 8), 0);
	assert_int_equal(getsockname(door, (struct sockaddr *)&door_address, &door_length), 0);
}

void close_door(void)
{
	close(door);
	door = -1;
}

int come(void)
{
	struct sockaddr_storage from;
	socklen_t length = sizeof(from);

	return accept4(door, (struct sockaddr *)&from, &length, SOCK_CLOEXEC | SOCK_NONBLOCK);
}
