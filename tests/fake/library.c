/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "tests/fake/fake.h"
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#undef ibv_query_port
#undef ibv_reg_mr

const struct fake_profile *fake_profile;

static struct fake_context *contexts;
static struct ibv_device device;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;	/* contexts */
static bool unplugged, old_fork, late_fork, moved;
static int fork_inits, largest_cq, most_sges;
static uint64_t vectors_used;
static _Atomic uint64_t locked, lockable;

/* --- what was asked for --- */

static bool has_word(const char *words, const char *word)
{
	size_t length = strlen(word);

	for (const char *at = words; at; at = strchr(at, ',')) {
		at += *at == ',';
		if (!strncmp(at, word, length) && (!at[length] || at[length] == ','))
			return true;
	}
	return false;
}

static void lose_rings(void)
{
	for (struct fake_context *context = contexts; context && old_fork && !fork_inits;
	     context = context->next)
		context->lost = !fake_profile->kernel_rings;
}

/* The child has no threads of them, and opens the device anew. */
static void forget(void)
{
	contexts = NULL;
	atomic_store(&locked, 0);
}

static void choose(const char *words)
{
	struct rlimit limit;

	unplugged = moved = false;
	fork_inits = largest_cq = most_sges = 0;
	vectors_used = 0;
	fake_profile = fake_profile_find(words, strcspn(words, ","));
	atomic_store(&lockable, has_word(words, "locked") && !getrlimit(RLIMIT_MEMLOCK, &limit) ?
					limit.rlim_cur :
					UINT64_MAX);
	old_fork = has_word(words, "old_fork");
	late_fork = has_word(words, "late_fork");
	if (!fake_profile)
		abort();	/* a test that has named none */
}

static __attribute__((constructor)) void begin(void)
{
	if (getenv("FAKE_VERBS"))
		choose(getenv("FAKE_VERBS"));
	strcpy(device.name, "fake0");
	strcpy(device.dev_name, "uverbs0");
	device.node_type = IBV_NODE_CA;
	device.transport_type = IBV_TRANSPORT_IB;
	pthread_atfork(NULL, lose_rings, forget);
}

int fake_keep(void *arg, int fd)
{
	int high = fd < 0 ? -errno : fcntl(fd, F_DUPFD_CLOEXEC, 512);

	(void)arg;
	if (fd >= 0)
		close(fd);
	return high;
}

static void drop(void *arg, int fd)
{
	(void)arg;
	close(fd);
}

struct fake_context *fake_of(const struct ibv_context *context)
{
	return container_of(context, struct soft_context, ibv)->attr.keep_arg;
}

int fake_lock(uint64_t bytes)
{
	if (atomic_fetch_add(&locked, bytes) + bytes <= atomic_load(&lockable))
		return 0;
	atomic_fetch_sub(&locked, bytes);
	return ENOMEM;
}

void fake_unlock(uint64_t bytes)
{
	atomic_fetch_sub(&locked, bytes);
}

static uint64_t ring_bytes(uint64_t bytes)
{
	return fake_profile->kernel_rings ? 0 : bytes;
}

/* --- the device --- */

struct ibv_device **ibv_get_device_list(int *count)
{
	struct ibv_device **list = calloc(2, sizeof(*list));
	int found = fake_profile && !unplugged;

	if (list && found)
		list[0] = &device;
	if (count)
		*count = found;
	return list;
}

void ibv_free_device_list(struct ibv_device **list)
{
	free(list);
}

int ibv_fork_init(void)
{
	if (late_fork)
		return EINVAL;
	fork_inits++;
	return 0;
}

enum ibv_fork_status ibv_is_fork_initialized(void)
{
	if (!old_fork)
		return IBV_FORK_UNNEEDED;
	return fork_inits ? IBV_FORK_ENABLED : IBV_FORK_DISABLED;
}

/* A provider that does not look at IBV_SEND_INLINE. The caller's requests are as they were afterwards. */
static int post_without_inline(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad)
{
	struct ibv_send_wr *each;
	uint64_t flagged = 0;
	int i, err;

	for (each = wr, i = 0; each && i < 64; each = each->next, i++) {
		flagged |= (uint64_t)!!(each->send_flags & IBV_SEND_INLINE) << i;
		each->send_flags &= ~(unsigned int)IBV_SEND_INLINE;
	}
	err = soft_post_send(qp, wr, bad);
	for (each = wr, i = 0; each && i < 64; each = each->next, i++)
		each->send_flags |= flagged >> i & 1 ? IBV_SEND_INLINE : 0;
	return err;
}

static int post_send(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad)
{
	const struct ibv_qp_cap *cap = &container_of(qp, struct soft_qp, ibv)->init.cap;

	for (struct ibv_send_wr *each = wr; each; each = each->next) {
		if (each->num_sge > (int)cap->max_send_sge) {
			*bad = wr;
			return EINVAL;
		}
	}
	return fake_profile->in_line.more == FAKE_LIE ? post_without_inline(qp, wr, bad) :
							 soft_post_send(qp, wr, bad);
}

/* A queue pair that is not connected has all its slots. */
static int post_recv(struct ibv_qp *qp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
	static _Atomic uint32_t calls;
	struct ibv_recv_wr *each, *half = wr, *rest;
	int count = 0, err;

	if (!fake_profile->receive_again || qp->state != IBV_QPS_RTS ||
	    atomic_fetch_add(&calls, 1) % fake_profile->receive_again)
		return soft_post_recv(qp, wr, bad);
	for (each = wr; each; each = each->next, count++)
		if (count % 2)
			half = half->next;
	rest = half->next;
	half->next = NULL;
	err = soft_post_recv(qp, wr, bad);
	half->next = rest;
	if (err || !rest)
		return err;
	*bad = rest;
	return -EAGAIN;
}

static int poll_cq(struct ibv_cq *cq, int room, struct ibv_wc *wc)
{
	return fake_of(cq->context)->lost ? 0 : soft_poll_cq(cq, room, wc);
}

static void dress(struct fake_context *context)
{
	struct ibv_context *soft = context->soft;

	context->device = device;
	soft->device = &context->device;
	soft->ops.post_send = post_send;
	soft->ops.poll_cq = poll_cq;
	soft->ops.post_recv = post_recv;
	soft->num_comp_vectors = fake_profile->told.vectors;
	soft->cmd_fd = fake_keep(NULL, open("/dev/null", O_RDWR | O_CLOEXEC));
}

struct ibv_context *ibv_open_device(struct ibv_device *which)
{
	struct fake_context *context = calloc(1, sizeof(*context));
	struct soft_attr attr = { .max_qp_wr = 32768, .max_cqe = 1 << 22, .max_qp = 16, .arena_bytes = 2ull << 30,
				  .keep = fake_keep, .drop = drop, .keep_arg = context };

	(void)which;
	context->soft = soft_open(&attr, &context->verbs);
	if (!context->soft)
		goto free_context;
	dress(context);
	errno = fake_meeting_begin(context);
	if (errno)
		goto close_soft;
	pthread_mutex_lock(&lock);
	context->next = contexts;
	contexts = context;
	pthread_mutex_unlock(&lock);
	return context->soft;

close_soft:
	soft_close(context->soft);
free_context:
	free(context);
	return NULL;
}

int ibv_close_device(struct ibv_context *ibcontext)
{
	struct fake_context *context = fake_of(ibcontext), **at;

	pthread_mutex_lock(&lock);
	for (at = &contexts; *at && *at != context; at = &(*at)->next)
		;
	if (*at)
		*at = context->next;
	pthread_mutex_unlock(&lock);
	fake_meeting_end(context);
	close(ibcontext->cmd_fd);
	soft_close(ibcontext);
	free(context);
	return 0;
}

int ibv_query_device(struct ibv_context *context, struct ibv_device_attr *attr)
{
	int err = fake_of(context)->verbs->query_device(context, attr);

	strcpy(attr->fw_ver, "fake");
	attr->max_qp = fake_profile->told.max_qp;
	attr->max_qp_wr = fake_profile->told.max_qp_wr;
	attr->max_sge = fake_profile->told.max_sge;
	attr->max_cqe = fake_profile->told.max_cqe;
	attr->max_qp_rd_atom = attr->max_qp_init_rd_atom = fake_profile->told.max_qp_rd_atom;
	attr->atomic_cap = fake_profile->told.atomic_cap;
	attr->phys_port_cnt = (uint8_t)fake_profile->told.ports;
	return fake_of(context)->gone ? EIO : err;
}

int ibv_query_port(struct ibv_context *context, uint8_t port, struct _compat_ibv_port_attr *compat)
{
	struct ibv_port_attr *attr = (struct ibv_port_attr *)compat;

	if (fake_of(context)->gone)
		return EIO;
	attr->state = port == 1 ? IBV_PORT_ACTIVE : IBV_PORT_DOWN;
	attr->max_mtu = attr->active_mtu = IBV_MTU_4096;
	attr->gid_tbl_len = 8;
	attr->pkey_tbl_len = 1;
	attr->link_layer = IBV_LINK_LAYER_ETHERNET;
	return 0;
}

int ibv_query_pkey(struct ibv_context *context, uint8_t port, int index, __be16 *pkey)
{
	(void)context, (void)port;
	*pkey = 0xffff;
	return index ? EINVAL : 0;
}

uint32_t fake_gid_index(void)
{
	return moved ? 3 : 1;
}

void fake_gid(union ibv_gid *gid)
{
	static const uint8_t mapped[16] = { [10] = 0xff, 0xff, 192, 0, 2, 1 };

	memcpy(gid->raw, mapped, sizeof(mapped));
}

int _ibv_query_gid_ex(struct ibv_context *context, uint32_t port, uint32_t index,
		      struct ibv_gid_entry *entry, uint32_t flags, size_t size)
{
	(void)flags, (void)size;
	if (fake_of(context)->gone)
		return EIO;
	if (port != 1 || index != fake_gid_index())
		return ENODATA;
	*entry = (struct ibv_gid_entry) { .gid_index = index, .port_num = port, .gid_type = IBV_GID_TYPE_ROCE_V2 };
	fake_gid(&entry->gid);
	return 0;
}

/* --- its objects --- */

static bool is_gone(const struct ibv_context *context)
{
	if (fake_of(context)->gone)
		errno = EIO;
	return fake_of(context)->gone;
}

/* rdma-core keeps an object that the kernel has taken already, unless it was told to free it. */
static int after_removal(const struct ibv_context *context, int result)
{
	return result || !fake_of(context)->gone || getenv("RDMAV_ALLOW_DISASSOC_DESTROY") ?
		       result :
		       EIO;
}

struct ibv_pd *ibv_alloc_pd(struct ibv_context *context)
{
	return is_gone(context) ? NULL : soft_alloc_pd(context);
}

int ibv_dealloc_pd(struct ibv_pd *pd)
{
	const struct ibv_context *context = pd->context;

	return after_removal(context, soft_dealloc_pd(pd));
}

struct ibv_mr *ibv_reg_mr(struct ibv_pd *pd, void *addr, size_t length, int access)
{
	return is_gone(pd->context) ? NULL : fake_register(pd, addr, length, access);
}

int ibv_dereg_mr(struct ibv_mr *mr)
{
	const struct ibv_context *context = mr->context;

	return after_removal(context, fake_deregister(mr));
}

/* Its descriptor is the program's, which may move it; the soft device keeps its own of the same counter. */
struct fake_channel {
	struct ibv_comp_channel ibv;
	struct ibv_comp_channel *soft;
};

struct ibv_comp_channel *ibv_create_comp_channel(struct ibv_context *context)
{
	struct fake_channel *channel = is_gone(context) ? NULL : calloc(1, sizeof(*channel));

	if (!channel)
		return NULL;
	channel->soft = soft_create_comp_channel(context);
	if (!channel->soft) {
		free(channel);
		return NULL;
	}
	channel->ibv.context = context;
	channel->ibv.fd = fcntl(channel->soft->fd, F_DUPFD_CLOEXEC, 0);
	fake_of(context)->channel = &channel->ibv;
	return &channel->ibv;
}

int ibv_destroy_comp_channel(struct ibv_comp_channel *ibchannel)
{
	struct fake_channel *channel = container_of(ibchannel, struct fake_channel, ibv);
	const struct ibv_context *context = ibchannel->context;
	int err = soft_destroy_comp_channel(channel->soft);

	if (err)
		return err;
	if (fake_of(context)->channel == ibchannel)
		fake_of(context)->channel = NULL;
	close(ibchannel->fd);
	free(channel);
	return 0;
}

struct ibv_cq *ibv_create_cq(struct ibv_context *context, int entries, void *cq_context,
			     struct ibv_comp_channel *channel, int vector)
{
	uint64_t bytes = is_gone(context) ? 0 : fake_profile_cq(fake_profile, entries);
	struct ibv_cq *cq;

	if (!bytes)
		return NULL;
	if (vector < 0 || vector >= context->num_comp_vectors) {
		errno = EINVAL;
		return NULL;
	}
	errno = fake_lock(ring_bytes(bytes));
	if (errno)
		return NULL;
	if (entries > largest_cq)
		largest_cq = entries;
	vectors_used |= 1ull << (vector % 64);
	cq = soft_create_cq(context, entries, cq_context,
			    channel ? container_of(channel, struct fake_channel, ibv)->soft : NULL,
			    0);
	if (!cq)
		fake_unlock(ring_bytes(bytes));
	return cq;
}

int ibv_destroy_cq(struct ibv_cq *cq)
{
	const struct ibv_context *context = cq->context;
	uint64_t bytes = fake_profile_cq(fake_profile, cq->cqe);
	int err = soft_destroy_cq(cq);

	if (err)
		return err;
	fake_unlock(ring_bytes(bytes));
	return after_removal(context, 0);
}

int ibv_get_cq_event(struct ibv_comp_channel *channel, struct ibv_cq **cq, void **cq_context)
{
	if (is_gone(channel->context))
		return -1;
	return soft_get_cq_event(container_of(channel, struct fake_channel, ibv)->soft, cq,
				 cq_context);
}

void ibv_ack_cq_events(struct ibv_cq *cq, unsigned int events)
{
	soft_ack_cq_events(cq, events);
}

struct ibv_qp *ibv_create_qp(struct ibv_pd *pd, struct ibv_qp_init_attr *init)
{
	struct ibv_qp_init_attr asked = *init;
	struct ibv_qp *made;
	struct soft_qp *qp;
	uint64_t bytes = 0;
	int err = is_gone(pd->context) ? EIO : fake_profile_qp(fake_profile, &init->cap, &bytes);

	if (!err)
		err = fake_lock(ring_bytes(bytes));
	if (err) {
		*init = asked;
		errno = err;
		return NULL;
	}
	if ((int)asked.cap.max_send_sge > most_sges)
		most_sges = (int)asked.cap.max_send_sge;
	asked.cap.max_send_sge = asked.cap.max_send_sge < SOFT_MAX_SGE ? asked.cap.max_send_sge : SOFT_MAX_SGE;
	pthread_mutex_lock(&fake_lock_qps);
	made = soft_create_qp(pd, &asked);
	qp = container_of(made, struct soft_qp, ibv);
	if (made)
		qp->max_inline = init->cap.max_inline_data;
	pthread_mutex_unlock(&fake_lock_qps);
	if (!made) {
		fake_unlock(ring_bytes(bytes));
		return NULL;
	}
	init->cap.max_send_wr = asked.cap.max_send_wr;
	init->cap.max_recv_wr = asked.cap.max_recv_wr;
	qp->init.cap = init->cap;
	qp->init.srq = (struct ibv_srq *)bytes;	/* there is never one: what is locked for the rings */
	return made;
}

int ibv_destroy_qp(struct ibv_qp *qp)
{
	const struct ibv_context *context = qp->context;
	uint64_t bytes = (uintptr_t)container_of(qp, struct soft_qp, ibv)->init.srq;

	pthread_mutex_lock(&fake_lock_qps);
	soft_destroy_qp(qp);
	pthread_mutex_unlock(&fake_lock_qps);
	fake_unlock(ring_bytes(bytes));
	return after_removal(context, 0);
}

/* To the address of a port that there is no more nothing can be sent. */
static bool leads(const struct ibv_ah_attr *way)
{
	union ibv_gid gid;

	fake_gid(&gid);
	return way->grh.sgid_index == fake_gid_index() &&
	       !memcmp(&way->grh.dgid, &gid, sizeof(gid));
}

int ibv_modify_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask)
{
	int err;

	if (is_gone(qp->context))
		return EIO;
	if (mask & IBV_QP_STATE && attr->qp_state == IBV_QPS_RTR) {
		err = leads(&attr->ah_attr) ? fake_meet(qp, attr->dest_qp_num) : EINVAL;
		if (err)
			return err;
	}
	return soft_modify_qp(qp, attr, mask);
}

int ibv_query_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask,
		 struct ibv_qp_init_attr *init)
{
	int err = soft_query_qp(qp, attr, mask, init);

	init->srq = NULL;
	return err;
}

/* --- what happens to it --- */

int ibv_get_async_event(struct ibv_context *context, struct ibv_async_event *event)
{
	return fake_of(context)->verbs->get_async_event(context, event);
}

void ibv_ack_async_event(struct ibv_async_event *event)
{
	(void)event;
}

static void tell_all(enum ibv_event_type type, void *element)
{
	for (struct fake_context *context = contexts; context; context = context->next)
		soft_async_push(container_of(context->soft, struct soft_context, ibv), type,
				element);
}

static void port_event(enum ibv_event_type type, int port)
{
	tell_all(type, (void *)(intptr_t)port);
}

static void move_gid(void)
{
	moved = !moved;
	port_event(IBV_EVENT_GID_CHANGE, 1);
}

/* A descriptor that says EPOLLERR for ever, as that of a completion channel whose device was taken away. */
static void break_descriptor(int fd)
{
	int ends[2];

	if (pipe2(ends, O_CLOEXEC | O_NONBLOCK))
		abort();
	close(ends[0]);
	if (dup3(ends[1], fd, O_CLOEXEC) < 0)
		abort();
	close(ends[1]);
}

static void unplug_one(struct fake_context *context)
{
	struct soft_context *soft = container_of(context->soft, struct soft_context, ibv);

	pthread_mutex_lock(&fake_lock_qps);
	context->gone = true;
	for (struct soft_qp *qp = soft->qps; qp; qp = qp->next)
		soft_qp_fault(&qp->ibv, SOFT_FAULT_KILL);
	pthread_mutex_unlock(&fake_lock_qps);
	if (context->channel)
		break_descriptor(context->channel->fd);
}

static void unplug(void)
{
	unplugged = true;
	for (struct fake_context *context = contexts; context; context = context->next)
		unplug_one(context);
	tell_all(IBV_EVENT_DEVICE_FATAL, NULL);
}

static void plug(void)
{
	unplugged = false;
}

static void swallow(bool on)
{
	for (struct fake_context *context = contexts; context; context = context->next) {
		struct soft_context *soft = container_of(context->soft, struct soft_context, ibv);

		for (struct soft_qp *qp = soft->qps; qp; qp = qp->next)
			soft_qp_fault(&qp->ibv, on ? SOFT_FAULT_STALL : SOFT_FAULT_NONE);
	}
}

static uint64_t locked_bytes(void)
{
	return atomic_load(&locked);
}

static void limit_to(uint64_t bytes)
{
	atomic_store(&lockable, bytes);
}

static int vectors(void)
{
	return __builtin_popcountll(vectors_used);
}

static int entries(void)
{
	return largest_cq;
}

static int send_sges(void)
{
	return most_sges;
}

static int inits(void)
{
	return fork_inits;
}

const struct fake_control fake_control = { .choose = choose, .profile_at = fake_profile_at, .swallow = swallow,
					   .unplug = unplug, .plug = plug, .port_event = port_event, .move_gid = move_gid,
					   .locked = locked_bytes, .limit = limit_to, .vectors = vectors,
					   .entries = entries, .send_sges = send_sges, .fork_inits = inits };
