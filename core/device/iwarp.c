/* SPDX-License-Identifier: MIT */
#include "core/device/iwarp.h"
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
#include "core/engine.h"
#include "core/fd/loading.h"
#include "core/fd/own_fds.h"

#define MAGIC 0x69777031u /* "iwp1" */

struct address { /* what the peer must know of a queue pair */
	uint32_t magic;
	uint16_t port; /* network order; 0: the teller connects */
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
	struct shunt_iwarp *iwarp;
	struct ibv_qp *qp;
	struct cm_pair *pair;
	struct address told; /* to the peer */
	struct bond *next;
};

struct shunt_iwarp {
	struct cm cm;
	struct shunt_source source;
	struct shunt_device *device;
	struct door *doors;
	struct bond *bonds;
};

/* Around calls of the library: its descriptors are ours, and no fork is under way. */
static void enter(struct shunt_iwarp *iwarp)
{
	shunt_loading_begin(iwarp->device->engine);
	shunt_own_fds_begin(iwarp->device->engine);
}

static void leave(struct shunt_iwarp *iwarp)
{
	shunt_own_fds_end(iwarp->device->engine);
	shunt_loading_end(iwarp->device->engine);
}

/* --- what the connection manager says --- */

static void on_joined(void *pair_arg, int status)
{
	struct bond *bond = pair_arg;
	struct shunt_device *device = bond->iwarp->device;

	if (!status) {
		shunt_device_qp_joined(device, bond->qp);
		return;
	}
	shunt_log(SHUNT_LOG_WARN, "a queue pair of device %s is not connected: %s",
		  device->context->device->name, strerror(-status));
	shunt_device_qp_failed(device, bond->qp, "its queue pairs cannot be connected");
}

static void on_parted(void *pair_arg)
{
	struct bond *bond = pair_arg;

	shunt_device_qp_failed(bond->iwarp->device, bond->qp, "its queue pair has lost the peer's");
}

static int keep_descriptor(void *arg, int fd)
{
	return shunt_own_fds_copy(arg, fd);
}

static void drop_descriptor(void *arg, int fd)
{
	shunt_own_fds_close(arg, fd);
}

static const struct cm_callbacks callbacks = {
	.joined = on_joined,
	.parted = on_parted,
	.keep = keep_descriptor,
	.drop = drop_descriptor,
};

static void ready(struct shunt_source *source, uint32_t events)
{
	struct shunt_iwarp *iwarp = shunt_loop_owner(source, struct shunt_iwarp, source);

	(void)events;
	enter(iwarp);
	cm_step(&iwarp->cm, shunt_now(iwarp->device->engine) / 1000000);
	leave(iwarp);
}

/* --- life --- */

int shunt_iwarp_open(struct shunt_device *device, struct shunt_iwarp **made)
{
	struct shunt_engine *engine = device->engine;
	struct shunt_iwarp *iwarp = calloc(1, sizeof(*iwarp));
	int result;

	if (!iwarp)
		return -ENOMEM;
	iwarp->device = device;
	iwarp->source.ready = ready;
	enter(iwarp);
	result = cm_open(&iwarp->cm, &callbacks, engine);
	if (result) {
		shunt_log(SHUNT_LOG_WARN, "queue pairs of %s cannot be connected: %s",
			  device->context->device->name, iwarp->cm.error);
	} else {
		result = shunt_loop_add(&engine->loop, cm_fd(&iwarp->cm), &iwarp->source, EPOLLIN);
		if (result)
			cm_close(&iwarp->cm);
	}
	leave(iwarp);
	if (result)
		free(iwarp);
	else
		*made = iwarp;
	return result;
}

static void free_all(struct shunt_iwarp *iwarp)
{
	struct door *door;
	struct bond *bond;

	while ((door = iwarp->doors) != NULL) {
		iwarp->doors = door->next;
		free(door);
	}
	while ((bond = iwarp->bonds) != NULL) {
		iwarp->bonds = bond->next;
		free(bond);
	}
	free(iwarp);
}

void shunt_iwarp_close(struct shunt_iwarp *iwarp)
{
	enter(iwarp);
	shunt_loop_remove(&iwarp->device->engine->loop, cm_fd(&iwarp->cm));
	cm_close(&iwarp->cm);
	leave(iwarp);
	free_all(iwarp);
}

void shunt_iwarp_forget(struct shunt_iwarp *iwarp)
{
	cm_forget(&iwarp->cm);
	free_all(iwarp);
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

/* An address by which the device is reached within this host. */
static bool find_own(struct shunt_iwarp *iwarp, union cm_address *own)
{
	struct ifaddrs *all = NULL, *each;
	bool found = false;

	if (getifaddrs(&all))
		return false;
	for (each = all; each && !found; each = each->ifa_next)
		found = each->ifa_addr && !cm_address(own, each->ifa_addr) &&
			cm_leads_to(&iwarp->cm, own, iwarp->device->context->device->name);
	freeifaddrs(all);
	return found;
}

/* Both ends of a path. Within one host nobody has looked for one, and both are the device's own. */
static bool ends_of(struct shunt_iwarp *iwarp, const struct shunt_path *path,
		    union cm_address *here, union cm_address *there)
{
	static const uint8_t nowhere[16];
	bool known = memcmp(path->here, nowhere, sizeof(nowhere)) != 0;

	if (!known && !find_own(iwarp, here))
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

static struct door *door_at(struct shunt_iwarp *iwarp, const union cm_address *at)
{
	struct door *door = iwarp->doors;
	uint16_t first, last;

	while (door && !is_at(door, at))
		door = door->next;
	if (door)
		return door;
	door = calloc(1, sizeof(*door));
	if (!door)
		return NULL;
	shunt_config_ports(iwarp->device->engine->config.ports, &first, &last);
	if (cm_pair_listen(&iwarp->cm, at, first, last, &door->listener, &door->port)) {
		shunt_log(SHUNT_LOG_WARN, "no links from other hosts by %s: %s",
			  iwarp->device->context->device->name, iwarp->cm.error);
		free(door);
		return NULL;
	}
	door->at = *at;
	door->next = iwarp->doors;
	iwarp->doors = door;
	return door;
}

static int expect(struct shunt_iwarp *iwarp, struct bond *bond, const union cm_address *here,
		  const union cm_address *there)
{
	struct shunt_engine *engine = iwarp->device->engine;
	struct door *door = door_at(iwarp, here);

	if (!door)
		return -EADDRINUSE;
	if (engine->sys->getrandom(bond->told.word, CM_WORD, GRND_NONBLOCK) != CM_WORD)
		return -EAGAIN;
	bond->told.port = door->port;
	return cm_pair_expect(&iwarp->cm, there, bond->qp->qp_num, bond->told.word, bond,
			      &bond->pair);
}

/* --- the other --- */

static int connect_to(struct shunt_iwarp *iwarp, struct bond *bond, const union cm_address *here,
		      const union cm_address *there, const struct address *told)
{
	union cm_address to = *there;

	to.v4.sin_port = told->port; /* both families have it in the same place */
	return cm_pair_connect(&iwarp->cm, here, &to, bond->qp->qp_num, told->word, bond,
			       &bond->pair);
}

/* --- a queue pair --- */

static struct bond **find(struct shunt_iwarp *iwarp, const struct ibv_qp *qp)
{
	struct bond **p = &iwarp->bonds;

	while (*p && (*p)->qp != qp)
		p = &(*p)->next;
	return p;
}

void shunt_iwarp_tell(struct shunt_iwarp *iwarp, const struct ibv_qp *qp, void *address)
{
	const struct bond *bond = *find(iwarp, qp);
	struct address told = bond ? bond->told : (struct address){ .port = 0 };

	told.magic = MAGIC;
	memcpy(address, &told, sizeof(told));
}

int shunt_iwarp_join(struct shunt_iwarp *iwarp, struct ibv_qp *qp, const struct shunt_path *path,
		     const void *address)
{
	union cm_address here, there;
	struct bond *bond;
	struct address told;
	int result = -EADDRNOTAVAIL;

	memcpy(&told, address, sizeof(told));
	if (told.magic != MAGIC || *find(iwarp, qp))
		return -EPROTO;
	bond = calloc(1, sizeof(*bond));
	if (!bond)
		return -ENOMEM;
	bond->iwarp = iwarp;
	bond->qp = qp;
	enter(iwarp);
	if (ends_of(iwarp, path, &here, &there))
		result = told.port ? connect_to(iwarp, bond, &here, &there, &told) :
				     expect(iwarp, bond, &here, &there);
	leave(iwarp);
	if (result) {
		free(bond);
		return result;
	}
	bond->next = iwarp->bonds;
	iwarp->bonds = bond;
	return SHUNT_JOINS_LATER;
}

void shunt_iwarp_part(struct shunt_iwarp *iwarp, const struct ibv_qp *qp)
{
	struct bond **p = find(iwarp, qp), *bond = *p;

	if (!bond)
		return;
	*p = bond->next;
	enter(iwarp);
	cm_pair_drop(&iwarp->cm, bond->pair);
	leave(iwarp);
	free(bond);
}
