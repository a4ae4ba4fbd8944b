/* SPDX-License-Identifier: MIT */
#include "core/device/by_cm.h"
#include <errno.h>
#include <ifaddrs.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/random.h>
#include "core/base/address.h"
#include "core/device/cm/pair.h"
#include "core/device/device.h"
#include "core/device/device_verbs.h"
#include "core/device/iwarp.h"
#include "core/fd/loading.h"
#include "core/fd/own_fds.h"
#include "core/base/log.h"
#include "core/base/config.h"
#include "core/trace/slow_step.h"

#define MAGIC 0x69777031u /* "iwp1" */
#define READS 16 /* of a queue pair that may be under way in each direction */

struct address { /* what the peer must know of a queue pair */
	uint32_t magic;
	uint16_t port; /* network order; 0: the sender connects */
	uint8_t word[CM_WORD];
};
_Static_assert(sizeof(struct address) <= SHUNT_ADDRESS_BYTES, "an address must fit");

/* An address of ours at which queue pairs are expected. */
struct door {
	struct cm_listener *listener;
	union cm_address at;
	uint16_t port;
	struct door *next;
};

/* A queue pair that is connected, or to be. */
struct bond {
	struct shunt_by_cm *by_cm;
	struct ibv_qp *qp;
	struct cm_pair *pair;
	struct address told; /* to the peer */
	struct bond *next;
};

struct shunt_by_cm {
	struct cm cm;
	struct shunt_source source;
	struct shunt_device *device;
	union ibv_gid gid; /* the device's */
	struct door *doors;
	struct bond *bonds;
};

/* Around calls of the library: its descriptors are ours, and no fork is under way. */
static void by_cm_enter(struct shunt_by_cm *by_cm)
{
	shunt_loading_begin(by_cm->device->loop->fds);
	shunt_own_fds_begin(by_cm->device->loop->fds);
}

static void by_cm_leave(struct shunt_by_cm *by_cm)
{
	shunt_own_fds_end(by_cm->device->loop->fds);
	shunt_loading_end(by_cm->device->loop->fds);
}

/* --- what the connection manager says --- */

static void by_cm_say_why(const struct shunt_by_cm *by_cm, int status)
{
	shunt_log(SHUNT_LOG_WARN, "a queue pair of device %s cannot be connected: %s",
		  by_cm->device->context->device->name, strerror(-status));
}

static void on_joined(void *pair_arg, int status)
{
	struct bond *bond = pair_arg;
	struct shunt_device *device = bond->by_cm->device;

	if (!status) {
		device->hooks->joined(device, bond->qp);
		return;
	}
	by_cm_say_why(bond->by_cm, status);
	device->hooks->failed(device, bond->qp, "its queue pairs cannot be connected");
}

static void on_parted(void *pair_arg)
{
	struct bond *bond = pair_arg;

	bond->by_cm->device->hooks->failed(bond->by_cm->device, bond->qp,
					   "its queue pair has lost the peer's");
}

static const struct cm_callbacks callbacks = {
	.joined = on_joined,
	.parted = on_parted,
	.keep = shunt_own_fds_keep,
	.drop = shunt_own_fds_drop,
};

static void by_cm_ready(struct shunt_source *source, uint32_t events)
{
	struct shunt_by_cm *by_cm = shunt_loop_owner(source, struct shunt_by_cm, source);

	(void)events;
	by_cm_enter(by_cm);
	cm_step(&by_cm->cm, by_cm->device->loop->fds->sys->now() / 1000000);
	by_cm_leave(by_cm);
}

/* --- life --- */

int shunt_by_cm_open(struct shunt_device *device, const union ibv_gid *gid,
		     struct shunt_by_cm **made)
{
	struct shunt_loop *loop = device->loop;
	struct shunt_by_cm *by_cm = calloc(1, sizeof(*by_cm));
	int result;

	if (!by_cm)
		return -ENOMEM;
	by_cm->device = device;
	by_cm->gid = *gid;
	by_cm->source.ready = by_cm_ready;
	by_cm_enter(by_cm);
	result = cm_open(&by_cm->cm, &callbacks, loop->fds);
	if (result) {
		shunt_log(SHUNT_LOG_WARN, "queue pairs of %s cannot be connected: %s",
			  device->context->device->name, by_cm->cm.error);
	} else {
		shunt_device_note_helpers(loop->fds->files);
		result = shunt_loop_add(loop, cm_fd(&by_cm->cm), &by_cm->source, EPOLLIN);
		if (result)
			cm_close(&by_cm->cm);
	}
	by_cm_leave(by_cm);
	if (result)
		free(by_cm);
	else
		*made = by_cm;
	return result;
}

static void free_all(struct shunt_by_cm *by_cm)
{
	struct door *door;
	struct bond *bond;

	while ((door = by_cm->doors) != NULL) {
		by_cm->doors = door->next;
		free(door);
	}
	while ((bond = by_cm->bonds) != NULL) {
		by_cm->bonds = bond->next;
		free(bond);
	}
	free(by_cm);
}

void shunt_by_cm_close(struct shunt_by_cm *by_cm)
{
	by_cm_enter(by_cm);
	shunt_loop_remove(by_cm->device->loop, cm_fd(&by_cm->cm));
	cm_close(&by_cm->cm);
	by_cm_leave(by_cm);
	free_all(by_cm);
}

void shunt_by_cm_forget(struct shunt_by_cm *by_cm)
{
	cm_forget(&by_cm->cm);
	free_all(by_cm);
}

/* --- addresses --- */

static union cm_address address_of(const uint8_t ip[16])
{
	union cm_address address = { 0 };

	if (shunt_address_is_v4(ip)) {
		address.v4.sin_family = AF_INET;
		memcpy(&address.v4.sin_addr, ip + 12, 4);
	} else {
		address.v6.sin6_family = AF_INET6;
		memcpy(&address.v6.sin6_addr, ip, 16);
	}
	return address;
}

/* The device's own GID begins with the MAC address of its network device (iwarp.h). */
static bool is_own(const struct shunt_by_cm *by_cm, const uint8_t ip[16])
{
	uint8_t mac[SHUNT_IWARP_MAC];

	return !shunt_iwarp_mac(ip, mac) && !memcmp(by_cm->gid.raw, mac, sizeof(mac));
}

/* An address by which the device is reached within this host. */
static bool find_own(const struct shunt_by_cm *by_cm, union cm_address *own)
{
	struct ifaddrs *all, *each;
	bool found = false;
	uint8_t ip[16];

	if (getifaddrs(&all))
		return false;
	for (each = all; each && !found; each = each->ifa_next) {
		struct sockaddr_storage address = { 0 };
		uint16_t port;

		if (!each->ifa_addr || cm_address(own, each->ifa_addr))
			continue;
		memcpy(&address, own, sizeof(*own));
		found = !shunt_address_of(&address, ip, &port) && is_own(by_cm, ip);
	}
	freeifaddrs(all);
	return found;
}

/* Both ends of a path. Within one host nobody has looked for one, and both are the device's own. */
static bool ends_of(struct shunt_by_cm *by_cm, const struct shunt_path *path,
		    union cm_address *here, union cm_address *there)
{
	static const uint8_t nowhere[16];
	bool known = memcmp(path->here, nowhere, sizeof(nowhere)) != 0;

	if (!known && !find_own(by_cm, here))
		return false;
	if (known)
		*here = address_of(path->here);
	*there = known ? address_of(path->there) : *here;
	return true;
}

/* --- the accepting end --- */

static bool is_at(const struct door *door, const union cm_address *at)
{
	return !memcmp(&door->at, at, sizeof(*at));
}

static struct door *door_at(struct shunt_by_cm *by_cm, const union cm_address *at)
{
	struct door *door = by_cm->doors;
	uint16_t first, last;

	while (door && !is_at(door, at))
		door = door->next;
	if (door)
		return door;
	door = calloc(1, sizeof(*door));
	if (!door)
		return NULL;
	shunt_config_ports(by_cm->device->loop->steps->config->ports, &first, &last);
	if (cm_pair_listen(&by_cm->cm, at, first, last, &door->listener, &door->port)) {
		shunt_log(SHUNT_LOG_WARN, "no links from other hosts by %s: %s",
			  by_cm->device->context->device->name, by_cm->cm.error);
		free(door);
		return NULL;
	}
	door->at = *at;
	door->next = by_cm->doors;
	by_cm->doors = door;
	return door;
}

static int expect(struct shunt_by_cm *by_cm, struct bond *bond, const union cm_address *here,
		  const union cm_address *there)
{
	const struct shunt_sys *sys = by_cm->device->loop->fds->sys;
	struct door *door = door_at(by_cm, here);

	if (!door)
		return -EADDRINUSE;
	if (sys->getrandom(bond->told.word, CM_WORD, GRND_NONBLOCK) != CM_WORD)
		return -EAGAIN;
	bond->told.port = door->port;
	return cm_pair_expect(&by_cm->cm, there, bond->qp->qp_num, bond->told.word, bond,
			      &bond->pair);
}

/* --- the other --- */

static int connect_to(struct shunt_by_cm *by_cm, struct bond *bond, const union cm_address *here,
		      const union cm_address *there, const struct address *told)
{
	union cm_address to = *there;

	to.v4.sin_port = told->port; /* both families have it in the same place */
	return cm_pair_connect(&by_cm->cm, here, &to, bond->qp->qp_num, told->word, bond,
			       &bond->pair);
}

/* --- a queue pair --- */

static struct bond **bond_find(struct shunt_by_cm *by_cm, const struct ibv_qp *qp)
{
	struct bond **p = &by_cm->bonds;

	while (*p && (*p)->qp != qp)
		p = &(*p)->next;
	return p;
}

void shunt_by_cm_tell(struct shunt_by_cm *by_cm, const struct ibv_qp *qp, void *address)
{
	const struct bond *bond = *bond_find(by_cm, qp);
	struct address told = bond ? bond->told : (struct address) { .port = 0 };

	told.magic = MAGIC;
	memcpy(address, &told, sizeof(told));
}

/* Each acknowledgment is a READ (imm.h): with few, a lane would wait for one before it sends the next. */
static uint8_t reads_of(const struct ibv_device_attr *limits)
{
	int most = limits->max_qp_rd_atom < limits->max_qp_init_rd_atom ?
			   limits->max_qp_rd_atom :
			   limits->max_qp_init_rd_atom;

	return (uint8_t)(most < READS ? most : READS);
}

int shunt_by_cm_join(struct shunt_by_cm *by_cm, struct ibv_qp *qp, const struct shunt_path *path,
		     const void *address)
{
	union cm_address here, there;
	struct bond *bond;
	struct address told;
	int result = -EADDRNOTAVAIL;

	memcpy(&told, address, sizeof(told));
	if (told.magic != MAGIC || *bond_find(by_cm, qp))
		return -EPROTO;
	bond = calloc(1, sizeof(*bond));
	if (!bond)
		return -ENOMEM;
	bond->by_cm = by_cm;
	bond->qp = qp;
	by_cm->cm.reads = reads_of(&by_cm->device->limits);
	by_cm_enter(by_cm);
	if (ends_of(by_cm, path, &here, &there))
		result = told.port ? connect_to(by_cm, bond, &here, &there, &told) :
				     expect(by_cm, bond, &here, &there);
	by_cm_leave(by_cm);
	if (result) {
		by_cm_say_why(by_cm, result);
		free(bond);
		return result;
	}
	bond->next = by_cm->bonds;
	by_cm->bonds = bond;
	return SHUNT_JOINS_LATER;
}

void shunt_by_cm_part(struct shunt_by_cm *by_cm, const struct ibv_qp *qp)
{
	struct bond **p = bond_find(by_cm, qp), *bond = *p;

	if (!bond)
		return;
	*p = bond->next;
	by_cm_enter(by_cm);
	cm_pair_drop(&by_cm->cm, bond->pair);
	by_cm_leave(by_cm);
	free(bond);
}
