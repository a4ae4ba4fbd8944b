/* SPDX-License-Identifier: MIT */
#include "core/device/device_verbs.h"
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include "core/base/guard.h"
#include "core/device/by_cm.h"
#include "core/device/device.h"
#include "core/device/imm.h"
#include "core/device/page_verbs.h"
#include "core/device/psn.h"
#include "core/device/verbs/verbs.h"
#include "core/fd/own_fds.h"
#include "core/base/log.h"
#include "core/base/config.h"
#include "core/trace/slow_step.h"

#define MAGIC 0x76657231u	/* "ver1" */
#define RETRIES 6		/* 7 is for ever on some devices (docs/dev/DEVICES.md) */
#define TIMEOUT_UNIT 4096	/* ns: an ACK timeout is 4.096 us * 2^n (IBTA 9.7.6.1.3) */

struct own {
	struct verbs_device device;
	uint8_t psn_key[SHUNT_PSN_KEY_BYTES];
	struct shunt_way way;	/* that it was opened for; all zero: none */
	struct shunt_by_cm *by_cm; /* NULL: its queue pairs are connected by hand */
};

struct address {	/* what the peer must know of a QP */
	uint32_t magic;
	uint32_t qp_num;
	uint32_t psn;
	uint16_t lid;
	uint16_t mtu;		/* enum ibv_mtu */
	union ibv_gid gid;
};
_Static_assert(sizeof(struct address) <= SHUNT_ADDRESS_BYTES, "an address must fit");

static struct own *own_of(struct shunt_device *device)
{
	return device->own;
}

/* --- opening --- */

static bool is_helper(const struct shunt_files *files, const char *from)
{
	for (unsigned int i = 0; i < atomic_load(&files->helper_count); i++)
		if (files->helpers[i].from == from)
			return true;
	return false;
}

static int add_helper(struct dl_phdr_info *info, size_t bytes, void *arg)
{
	static const char *const names[] = { "/libibverbs.so", "/librdmacm.so", "-rdmav", "/libmlx", "/libefa.so" };
	struct shunt_files *files = arg;
	unsigned int count = atomic_load(&files->helper_count);
	bool ours = false;

	(void)bytes;
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		ours |= strstr(info->dlpi_name, names[i]) != NULL;
	for (int i = 0; ours && i < info->dlpi_phnum && count < SHUNT_HELPERS; i++) {
		const char *from = (const char *)info->dlpi_addr + info->dlpi_phdr[i].p_vaddr;

		if (info->dlpi_phdr[i].p_type != PT_LOAD || !(info->dlpi_phdr[i].p_flags & PF_X) || is_helper(files, from))
			continue;
		files->helpers[count].from = from;
		files->helpers[count].to = from + info->dlpi_phdr[i].p_memsz;
		atomic_store(&files->helper_count, ++count);
	}
	return 0;
}

void shunt_device_note_helpers(struct shunt_files *files)
{
	dl_iterate_phdr(add_helper, files);
}

/* Where that fails the descriptor stays as it is: the library will close it by its number. */
static int adopt(struct shunt_fds *fds, int *fd)
{
	int high = shunt_own_fds_copy(fds, *fd);

	if (high < 0)
		return high;
	fds->sys->close(*fd);
	*fd = high;
	return 0;
}

static int unblock(struct shunt_fds *fds, int fd)
{
	return fds->sys->fcntl(fd, F_SETFL, fds->sys->fcntl(fd, F_GETFL, 0) | O_NONBLOCK) ? -errno :
											    0;
}

/* libibverbs closes the descriptors. */
static void close_device(struct shunt_fds *fds, struct verbs_device *verbs)
{
	shunt_own_fds_forget(fds, verbs->context->cmd_fd);
	shunt_own_fds_forget(fds, verbs->context->async_fd);
	verbs_close(verbs);
}

/* The kernel has taken its objects, by a driver's reload or a reset; its descriptors are ready for ever. */
static void device_lost(struct shunt_device *device)
{
	if (device->gone)
		return;
	device->gone = true;
	shunt_loop_remove(device->loop, device->context->async_fd);
	device->hooks->lost(device);
}

/* Another index, another LID: what is connected keeps what it had, what comes next needs the new one. */
static void port_changed(struct shunt_device *device, int port)
{
	struct own *own = own_of(device);

	if (port == device->port && !own->by_cm && !verbs_port_again(&own->device, &own->way))
		shunt_log(SHUNT_LOG_INFO, "%s, port %u, has no address now",
			  device->context->device->name, device->port);
}

/* Something may have happened to the device or one of its QPs. */
static void async_ready(struct shunt_source *source, uint32_t events)
{
	struct shunt_device *device = shunt_loop_owner(source, struct shunt_device, source);
	struct ibv_async_event event;

	while (!device->gone && !device->verbs->get_async_event(device->context, &event)) {
		switch (event.event_type) {
		case IBV_EVENT_QP_FATAL:
		case IBV_EVENT_QP_REQ_ERR:
		case IBV_EVENT_QP_ACCESS_ERR:
			device->hooks->failed(device, event.element.qp, "its queue pair failed");
			break;
		case IBV_EVENT_CQ_ERR:
			device->hooks->overflowed(device, event.element.cq);
			break;
		case IBV_EVENT_PORT_ERR:	/* it may be the other port's */
			if (event.element.port_num == device->port)
				device->hooks->failed(device, NULL, "the device's port is down");
			break;
		case IBV_EVENT_DEVICE_FATAL:
			device_lost(device);
			break;
		case IBV_EVENT_GID_CHANGE:
		case IBV_EVENT_LID_CHANGE:
		case IBV_EVENT_PKEY_CHANGE:
		case IBV_EVENT_PORT_ACTIVE:
		case IBV_EVENT_CLIENT_REREGISTER:
		case IBV_EVENT_SM_CHANGE:
			port_changed(device, event.element.port_num);
			break;
		default:
			break;
		}
		device->verbs->ack_async_event(&event);
	}
	if (events & (EPOLLERR | EPOLLHUP))
		device_lost(device);
}

/* An iWARP device has no WRITE_WITH_IMM, and the connection manager alone connects its queue pairs. */
static int open_iwarp(struct shunt_device *device, struct own *own)
{
	int result = shunt_imm_attach(device, &own->device.verbs);

	return result ? result : shunt_by_cm_open(device, &own->device.port.gid, &own->by_cm);
}

static int verbs_kind_open(struct shunt_device *device, const char *name,
			   const struct shunt_way *way, char *error, size_t bytes)
{
	struct own *own = calloc(1, sizeof(*own));
	struct verbs_device *verbs = own ? &own->device : NULL;
	struct shunt_fds *fds = device->loop->fds;
	int result = own ? verbs_open(verbs, name, way) : -ENOMEM;

	if (result) {
		snprintf(error, bytes, "%s", own ? verbs->error : "out of memory");
		goto free_own;
	}
	shunt_device_note_helpers(fds->files);
	result = adopt(fds, &verbs->context->cmd_fd);
	if (!result)
		result = adopt(fds, &verbs->context->async_fd);
	if (!result)
		result = unblock(fds, verbs->context->async_fd);
	device->source.ready = async_ready;
	if (!result)	/* a QP's death, or the port's, would go unheard */
		result = shunt_loop_add(device->loop, verbs->context->async_fd, &device->source,
					EPOLLIN);
	if (result) {
		snprintf(error, bytes, "%s cannot be opened: out of descriptors or memory", verbs->context->device->name);
		goto close_device;
	}
	device->context = verbs->context;
	device->by_cm = verbs->context->device->transport_type == IBV_TRANSPORT_IWARP;
	result = device->by_cm ? open_iwarp(device, own) : 0;
	if (result) {
		snprintf(
			error, bytes,
			"the iWARP device %s cannot be used: its queue pairs could not be connected",
			verbs->context->device->name);
		goto forget_device;
	}
	shunt_psn_key(fds->sys, own->psn_key);
	if (way)
		own->way = *way;
	device->own = own;
	device->verbs = &verbs->verbs;
	device->port = verbs->port.number;
	device->gone = false;
	device->marks_pages = verbs->marks_pages;
	shunt_log(SHUNT_LOG_INFO, "device %s, port %u", verbs->context->device->name, device->port);
	return 0;

forget_device:
	shunt_loop_remove(device->loop, verbs->context->async_fd);
close_device:
	close_device(fds, verbs);
free_own:
	free(own);
	return result;
}

static bool verbs_kind_leads(const struct shunt_device *device, const struct shunt_way *way)
{
	const struct own *own = device->own;

	if (device->gone || strcmp(device->context->device->name, way->device) ||
	    device->port != way->port)
		return false;
	/* Addresses of iWARP are not a port's. A port that lacks the way's address was opened with another one. */
	return device->by_cm || !memcmp(&own->device.port.gid, &way->gid, sizeof(way->gid)) ||
	       !memcmp(&own->way.gid, &way->gid, sizeof(way->gid));
}

static void verbs_kind_close(struct shunt_device *device)
{
	struct own *own = own_of(device);

	if (own->by_cm)
		shunt_by_cm_close(own->by_cm);
	close_device(device->loop->fds, &own->device);
	free(own);
}

static int verbs_kind_make_channel(struct shunt_device *device)
{
	struct shunt_fds *fds = device->loop->fds;

	errno = EMFILE;
	device->channel = device->verbs->create_comp_channel(device->context);
	if (!device->channel)
		return -errno;
	if (!adopt(fds, &device->channel->fd) && !unblock(fds, device->channel->fd))
		return 0;
	shunt_own_fds_forget(fds, device->channel->fd);
	device->verbs->destroy_comp_channel(device->channel);
	return -EMFILE;
}

static void verbs_kind_free_channel(struct shunt_device *device)
{
	shunt_own_fds_forget(device->loop->fds, device->channel->fd);
	device->verbs->destroy_comp_channel(device->channel);
}

/* As long as a child had them the kernel would keep the parent's QPs after its death. */
static void verbs_kind_abandon(struct shunt_device *device)
{
	struct own *own = own_of(device);

	if (own->by_cm)
		shunt_by_cm_forget(own->by_cm);
	shunt_own_fds_close(device->loop->fds, device->channel->fd);
	shunt_own_fds_close(device->loop->fds, device->context->cmd_fd);
	shunt_own_fds_close(device->loop->fds, device->context->async_fd);
}

/* --- what happens to it --- */

/* --- memory --- */

static void *verbs_kind_arena(struct shunt_device *device, struct ibv_pd *pd, size_t *bytes)
{
	(void)pd;
	if (device->loop->steps->config->pages != SHUNT_PAGES_ORDINARY)
		return shunt_guard_map_large(*bytes, -1);
	return shunt_guard_map(*bytes, -1);
}

static void verbs_kind_free_arena(struct shunt_device *device, void *arena, size_t bytes)
{
	(void)device;
	shunt_guard_unmap(arena, bytes);
}

/* Queues and regions are locked memory. The kernel's rdma controller says EAGAIN (rdma.max). */
static enum shunt_cause verbs_kind_shortage(enum shunt_short_of what, int error)
{
	struct rlimit limit;

	if (error == -EAGAIN)
		return SHUNT_CAUSE_RDMA_CGROUP;
	if (error == -EOPNOTSUPP)
		return SHUNT_CAUSE_NO_RC;
	if (error == -ENOENT)
		return SHUNT_CAUSE_NO_PARTITION;
	if (error == -ENOMEM && !getrlimit(RLIMIT_MEMLOCK, &limit) &&
	    limit.rlim_cur != RLIM_INFINITY)
		return SHUNT_CAUSE_NOT_LOCKED;
	return what == SHUNT_SHORT_OF_RINGS ? SHUNT_CAUSE_NO_REGIONS : SHUNT_CAUSE_NO_QUEUES;
}

static int verbs_kind_discard(struct ibv_pd *pd, void *addr, size_t bytes)
{
	(void)pd;
	return madvise(addr, bytes, MADV_DONTNEED) ? -errno : 0;
}

/* --- queue pairs --- */

static uint32_t psn_of(const struct own *own, const struct ibv_qp *qp)
{
	return shunt_psn_of(own->psn_key, qp->qp_num);
}

static int verbs_kind_tell(struct shunt_device *device, struct ibv_qp *qp, void *address, int fds[2])
{
	const struct own *own = own_of(device);
	struct address told = { .magic = MAGIC, .qp_num = qp->qp_num, .psn = psn_of(own, qp),
				.lid = own->device.port.lid, .mtu = (uint16_t)own->device.port.mtu,
				.gid = own->device.port.gid };

	(void)fds;
	if (own->by_cm)
		shunt_by_cm_tell(own->by_cm, qp, address);
	else
		memcpy(address, &told, sizeof(told));
	return 0;
}

/* The timer that, with all retries, is over after `ms`. */
static uint8_t ack_timeout(uint64_t ms)
{
	uint64_t each = ms * 1000000 / (RETRIES + 1) / TIMEOUT_UNIT;
	uint8_t n = 1;

	while (n < 31 && 2ull << n <= each)
		n++;
	return n;
}

static int verbs_kind_partition(const struct shunt_device *device, const struct shunt_path *path)
{
	const struct own *own = device->own;
	int index = verbs_path_partition(&own->device, path);

	if (index < 0)
		shunt_log(
			SHUNT_LOG_WARN,
			"%s, port %u, is not in partition 0x%04x, by which the route to the peer leads",
			device->context->device->name, device->port, path->pkey);
	return index;
}

/* Our own address is not where it was, so it is not the peer's fault that a queue pair cannot be connected. */
static bool has_moved(struct shunt_device *device)
{
	struct own *own = own_of(device);
	struct verbs_port before = own->device.port;

	return !verbs_port_again(&own->device, &own->way) || before.lid != own->device.port.lid ||
	       before.gid_index != own->device.port.gid_index ||
	       memcmp(&before.gid, &own->device.port.gid, sizeof(before.gid));
}

static int verbs_kind_join(struct shunt_device *device, struct ibv_qp *qp,
			   const struct shunt_path *path, const void *address, const int *fds,
			   int count)
{
	const struct own *own = own_of(device);
	const struct verbs_port *port = &own->device.port;
	struct address told;
	struct ibv_qp_attr attr;

	(void)fds;
	if (own->by_cm)
		return count ? -EPROTO : shunt_by_cm_join(own->by_cm, qp, path, address);
	memcpy(&told, address, sizeof(told));
	if (count || told.magic != MAGIC || told.psn > 0xffffff || told.qp_num > 0xffffff ||
	    told.mtu < IBV_MTU_256 || told.mtu > IBV_MTU_4096)
		return -EPROTO;
	attr = (struct ibv_qp_attr) {
		.qp_state = IBV_QPS_RTR,
		.min_rnr_timer = 12,
		.dest_qp_num = told.qp_num,
		.rq_psn = told.psn,
		.path_mtu = verbs_path_mtu(port, path, told.mtu),
		.max_dest_rd_atomic = 1,
		.ah_attr = verbs_path_address(port, path, &told.gid, told.lid),
	};
	if (device->verbs->modify_qp(qp, &attr, SHUNT_TO_RTR))
		return has_moved(device) ? -ENETDOWN : -EIO;
	attr = (struct ibv_qp_attr) { .qp_state = IBV_QPS_RTS, .timeout = ack_timeout(device->loop->steps->config->dead_ms),
				      .retry_cnt = RETRIES, .rnr_retry = 7, .sq_psn = psn_of(own, qp),
				      .max_rd_atomic = 1 };
	return device->verbs->modify_qp(qp, &attr, SHUNT_TO_RTS) ? -EIO : 0;
}

static void verbs_kind_part(struct shunt_device *device, const struct ibv_qp *qp)
{
	const struct own *own = own_of(device);

	if (own->by_cm)
		shunt_by_cm_part(own->by_cm, qp);
}

const struct shunt_device_kind shunt_device_verbs = {
	.name = "verbs",
	.number = 2,
	.streams = SHUNT_VERBS_STREAMS,
	.lanes = SHUNT_VERBS_LANES,
	.cq_lanes = SHUNT_VERBS_CQ_LANES,
	.max_inline = SHUNT_VERBS_INLINE,
	.doubted = true,
	.anonymous = true,
	.open = verbs_kind_open,
	.leads = verbs_kind_leads,
	.close = verbs_kind_close,
	.make_channel = verbs_kind_make_channel,
	.free_channel = verbs_kind_free_channel,
	.abandon = verbs_kind_abandon,
	.make_arena = verbs_kind_arena,
	.free_arena = verbs_kind_free_arena,
	.discard = verbs_kind_discard,
	.shortage = verbs_kind_shortage,
	.tell = verbs_kind_tell,
	.partition = verbs_kind_partition,
	.join = verbs_kind_join,
	.part = verbs_kind_part,
	.make_page = shunt_page_verbs_make,
	.free_page = shunt_page_verbs_free,
	.lend_page = shunt_page_verbs_lend,
	.reach_page = shunt_page_verbs_reach,
};
