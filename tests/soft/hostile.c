/* SPDX-License-Identifier: MIT */
/* A hostile peer's segment, address and descriptors may hold anything; it must not matter. */
#define _GNU_SOURCE
#include "tests/soft/rig.h"
#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>
#include "core/device/soft/device.h"

enum { SEALS = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL };

struct hostile {
	struct rig *rig;
	struct soft_address address;
	int fds[2];
};

static struct hostile hostile_make(void)
{
	struct hostile h = { .rig = rig_make(NULL) };

	rig_end_state(&h.rig->a, &h.rig->options, IBV_QPS_RESET);
	rig_end_state(&h.rig->a, &h.rig->options, IBV_QPS_INIT);
	assert_int_equal(soft_qp_export(h.rig->b.qp, &h.address, h.fds), 0);
	return h;
}

static int import(struct hostile *h)
{
	return soft_qp_import(h->rig->a.qp, &h->address, h->fds);
}

static void SD_15_bad_addresses_are_refused(void **state)
{
	struct hostile h = hostile_make();
	const struct soft_address good = h.address;

	(void)state;
	assert_int_equal(import(&h), 0);
	h.address.magic++;
	assert_int_equal(import(&h), -EPROTO);
	h.address = good;
	h.address.segment_bytes += 4096;
	assert_int_equal(import(&h), -EPROTO);
	h.address.segment_bytes = 0;
	assert_int_equal(import(&h), -EPROTO);
	h.address = good;
	for (uint32_t depth = 0; depth < 0x80000000; depth = depth * 2 + 3) {
		h.address.rq_depth = depth;
		assert_int_equal(import(&h), -EPROTO);
	}
	h.address.rq_depth = 0x80000000;
	assert_int_equal(import(&h), -EPROTO);
	h.address = good;
	h.address.queue_offset = 0;
	assert_int_equal(import(&h), -EPROTO);
	h.address.queue_offset = good.queue_offset + 8;
	assert_int_equal(import(&h), -EPROTO);
	h.address.queue_offset = good.segment_bytes - 128;
	assert_int_equal(import(&h), -EPROTO);
	h.address.queue_offset = UINT64_MAX & ~127ull;
	assert_int_equal(import(&h), -EPROTO);
	rig_free(h.rig);
}

/* A segment in all but what the flags and seals make of it. */
static int memfd(uint64_t bytes, unsigned int flags, int seals)
{
	struct segment_header header = { .magic = SEGMENT_MAGIC, .version = SEGMENT_VERSION, .segment_bytes = bytes };
	int fd = memfd_create("hostile", MFD_CLOEXEC | MFD_ALLOW_SEALING | flags);

	if (fd < 0)
		return -1;
	assert_int_equal(ftruncate(fd, (off_t)bytes), 0);
	if (!(flags & MFD_HUGETLB))
		assert_int_equal(pwrite(fd, &header, sizeof(header), 0), sizeof(header));
	assert_int_equal(fcntl(fd, F_ADD_SEALS, seals), 0);
	return fd;
}

static int import_file(struct hostile *h, int fd)
{
	int before = h->fds[0], result;

	if (fd < 0)
		return -EPROTO; /* this kernel cannot make one: nothing to refuse */
	h->fds[0] = fd;
	result = import(h);
	h->fds[0] = before;
	close(fd);
	return result;
}

static void SD_15_bad_files_are_refused(void **state)
{
	struct hostile h = hostile_make();
	uint64_t bytes = h.address.segment_bytes;

	(void)state;
	assert_int_equal(import_file(&h, open("/dev/zero", O_RDWR)), -EPROTO);
	assert_int_equal(import_file(&h, memfd(bytes, 0, F_SEAL_SHRINK)), -EPROTO);
	assert_int_equal(import_file(&h, memfd(bytes, 0, F_SEAL_GROW | F_SEAL_SEAL)), -EPROTO);
	assert_int_equal(import_file(&h, memfd(bytes, 0, SEALS | F_SEAL_WRITE)), -EPROTO);
	assert_int_equal(import_file(&h, memfd(bytes - 4096, 0, SEALS)), -EPROTO);
	assert_int_equal(import_file(&h, memfd(bytes, 0, SEALS)), 0);
	h.address.segment_bytes += 4096;
	assert_int_equal(import_file(&h, memfd(bytes, 0, SEALS)), -EPROTO);
	h.address.segment_bytes = (bytes + (2 << 20) - 1) & ~((2ull << 20) - 1);
	assert_int_equal(import_file(&h, memfd(h.address.segment_bytes, MFD_HUGETLB, SEALS)), -EPROTO);
	rig_free(h.rig);
}

static void SD_15_wake_must_be_a_nonblocking_eventfd(void **state)
{
	struct hostile h = hostile_make();
	int pipes[2], good = h.fds[1];

	(void)state;
	assert_int_equal(pipe2(pipes, O_CLOEXEC | O_NONBLOCK), 0);
	h.fds[1] = pipes[1];
	assert_int_equal(import(&h), -EPROTO);
	h.fds[1] = 100000;
	assert_int_equal(import(&h), -EPROTO);
	h.fds[1] = good;
	fcntl(good, F_SETFL, fcntl(good, F_GETFL) & ~O_NONBLOCK);
	assert_int_equal(import(&h), -EPROTO);
	h.fds[1] = -1;
	assert_int_equal(import(&h), 0);
	close(pipes[0]);
	close(pipes[1]);
	rig_free(h.rig);
}

/* The peer can clear O_NONBLOCK of the channel's fd, which it shares. */
static void SD_15_get_event_never_blocks(void **state)
{
	struct rig *rig = rig_make(NULL);
	struct ibv_cq *cq;
	void *context;
	int fd = rig->a.channel->fd;

	(void)state;
	fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) & ~O_NONBLOCK);
	alarm(300);
	assert_int_equal(rig->a.verbs->get_cq_event(rig->a.channel, &cq, &context), -1);
	assert_int_equal(errno, EAGAIN);
	alarm(0);
	rig_free(rig);
}

static void announce_to_b(struct rig *rig)
{
	struct ibv_sge sge;
	struct ibv_send_wr wr = rig_write(&rig->a, &rig->b, &sge, 1, IBV_WR_RDMA_WRITE_WITH_IMM, 8),
			   *bad;

	wr.send_flags = IBV_SEND_SIGNALED;
	assert_int_equal(rig_post(&rig->a, &wr, &bad), 0);
	rig_expect(rig->a.send_cq, 1, IBV_WC_SUCCESS);
}

static void take_event(struct rig_end *end)
{
	struct ibv_cq *cq;
	void *context;

	assert_true(rig_readable(end->channel->fd));
	assert_int_equal(end->verbs->get_cq_event(end->channel, &cq, &context), 0);
	end->verbs->ack_cq_events(cq, 1);
	assert_int_equal(end->verbs->get_cq_event(end->channel, &cq, &context), -1);
}

static struct rig *apart_make(int receives)
{
	const struct rig_device *before = rig_device;
	struct rig *rig;

	rig_device = &rig_apart;
	rig = rig_make(&(struct rig_options){ .receives = receives });
	rig_device = before;
	return rig;
}

/* More wake-ups than a queue has room for: it is emptied meanwhile. */
static void SD_15_each_arming_is_heard(void **state)
{
	struct rig *rig = apart_make(8);

	(void)state;
	for (int i = 0; i < 2000; i++) {
		assert_int_equal(ibv_req_notify_cq(rig->b.recv_cq, 0), 0);
		announce_to_b(rig);
		take_event(&rig->b);
		rig_expect_count(rig->b.recv_cq, 1);
		rig_receives(&rig->b, 1);
	}
	rig_free(rig);
}

static int wake_fd_of(struct rig_end *end)
{
	return container_of(end->qp, struct soft_qp, ibv)->wake_fd;
}

/* The peer fills what wakes it, and says that whoever writes there is to wait. */
static void SD_15_no_waker_waits(void **state)
{
	struct rig *rig = apart_make(8);
	int fd = wake_fd_of(&rig->a);

	(void)state;
	assert_int_equal(fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) & ~O_NONBLOCK), 0);
	while (send(fd, "x", 1, MSG_DONTWAIT | MSG_NOSIGNAL) == 1)
		;
	assert_int_equal(errno, EAGAIN);
	alarm(300);
	assert_int_equal(ibv_req_notify_cq(rig->b.recv_cq, 0), 0);
	announce_to_b(rig);
	alarm(0);
	take_event(&rig->b);
	assert_int_equal(soft_qp_counters(rig->a.qp)->wakes, 1);
	rig_free(rig);
}

/* Packets that are not of one byte, or have descriptors, stay in the queue; so do those behind them. */
static void SD_15_what_is_no_kick_is_not_received(void **state)
{
	static const char two[2] = "xx";
	struct rig *rig = apart_make(8);
	int fd = wake_fd_of(&rig->a), bell = container_of(rig->b.pd, struct soft_pd, ibv)->bell.fd;
	char bytes[8];

	(void)state;
	assert_int_equal(send(fd, two, 2, MSG_DONTWAIT), 2);
	for (int i = 0; i < 100; i++) {
		assert_int_equal(ibv_req_notify_cq(rig->b.recv_cq, 0), 0);
		announce_to_b(rig);
		take_event(&rig->b);
		rig_expect_count(rig->b.recv_cq, 1);
		rig_receives(&rig->b, 1);
	}
	assert_int_equal(recv(bell, bytes, sizeof(bytes), MSG_DONTWAIT | MSG_TRUNC), 2);
	assert_int_equal(recv(bell, bytes, sizeof(bytes), MSG_DONTWAIT | MSG_TRUNC), 1);
	rig_free(rig);
}

/* Only trusted peers share an eventfd. */
static void SD_15_no_eventfd_of_a_stranger(void **state)
{
	struct hostile h = hostile_make();

	(void)state;
	assert_int_equal(soft_pd_set_apart(h.rig->a.pd, h.rig->a.channel), 0);
	assert_int_equal(import(&h), -EPROTO);
	rig_free(h.rig);
}

/* A peer keeps the file's lock for as long as it likes, by a write() from memory whose pages do not come. */
static void SD_15_no_pages_are_given_back(void **state)
{
	struct rig *rig = apart_make(0);

	(void)state;
	memset(rig->a.memory, 'x', 4096);
	assert_int_equal(soft_arena_discard(rig->a.pd, rig->a.memory, 4096), 0);
	assert_int_equal(rig->a.memory[0], 'x');
	rig_free(rig);
}

static void SD_15_the_segment_cannot_shrink(void **state)
{
	struct hostile h = hostile_make();

	(void)state;
	assert_int_equal(ftruncate(h.fds[0], 4096), -1);
	assert_int_equal(ftruncate(h.fds[0], (off_t)h.address.segment_bytes * 2), -1);
	assert_int_equal(fcntl(h.fds[0], F_ADD_SEALS, F_SEAL_FUTURE_WRITE), -1);
	rig_free(h.rig);
}

static void SD_15_one_segment_is_mapped_once(void **state)
{
	struct rig *rig = rig_make(NULL);
	struct ibv_qp_init_attr init = { .qp_type = IBV_QPT_RC, .send_cq = rig->a.send_cq,
					 .recv_cq = rig->a.recv_cq, .cap = { 8, 8, 1, 1, 0 } };
	struct ibv_qp *second = rig->a.verbs->create_qp(rig->a.pd, &init);
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_INIT };
	struct rig_address address;
	int fds[2];

	(void)state;
	assert_non_null(second);
	assert_int_equal(rig->a.verbs->modify_qp(second, &attr, SHUNT_TO_INIT), 0);
	rig_tell(&rig->b, &address, fds);
	assert_int_equal(soft_qp_import(second, &address.soft, fds), 0);
	assert_ptr_equal(soft_qp_peek(second, (uint64_t)(uintptr_t)rig->b.memory, rig->b.mr->rkey, 1),
			 soft_qp_peek(rig->a.qp, (uint64_t)(uintptr_t)rig->b.memory, rig->b.mr->rkey, 1));
	assert_int_equal(rig->a.verbs->destroy_qp(second), 0);
	rig_one(&rig->a, &rig->b, 1, IBV_WR_RDMA_WRITE, 8); /* still mapped for the first */
	rig_expect(rig->a.send_cq, 1, IBV_WC_SUCCESS);
	rig_free(rig);
}

/* Of b's segment a maps what ends in the middle of the arena: what lies behind is refused, and nothing is touched. */
static void SD_15_a_segment_may_be_mapped_in_part(void **state)
{
	struct hostile h = hostile_make();
	struct rig_end *a = &h.rig->a, *b = &h.rig->b;
	uint64_t front = soft_segment_bytes(b->pd) - (64 << 20), queue = h.address.queue_offset;
	struct ibv_mr *near = b->mr, *across;

	(void)state;
	soft_map_most(a->pd, front + 2 * MEMORY);
	assert_int_equal(import(&h), 0);
	assert_int_equal(soft_qp_mapped(a->qp), front + 2 * MEMORY);
	rig_end_state(a, &h.rig->options, IBV_QPS_RTR);
	rig_end_state(a, &h.rig->options, IBV_QPS_RTS);
	rig_one(a, b, 1, IBV_WR_RDMA_WRITE, MEMORY);
	rig_expect(a->send_cq, 1, IBV_WC_SUCCESS);
	across = b->verbs->register_mr(b->pd, b->memory + MEMORY, MEMORY + 1,
				       h.rig->options.access);
	assert_non_null(across);
	assert_null(soft_qp_peek(a->qp, (uint64_t)(uintptr_t)across->addr, across->rkey, 1));
	b->mr = across;
	b->memory += MEMORY;
	rig_one(a, b, 2, IBV_WR_RDMA_WRITE, 8);
	rig_expect(a->send_cq, 2, IBV_WC_REM_ACCESS_ERR);
	b->memory -= MEMORY;
	b->mr = near;
	assert_int_equal(b->verbs->deregister_mr(across), 0);
	rig_end_state(a, &h.rig->options, IBV_QPS_RESET);
	rig_end_state(a, &h.rig->options, IBV_QPS_INIT);
	assert_int_equal(soft_qp_mapped(a->qp), 0);
	soft_map_most(a->pd, 1);
	h.address.queue_offset = front - 128 * (1 + segment_queue_bytes(h.address.rq_depth) / 128);
	assert_true(h.address.queue_offset > queue);
	assert_int_equal(import(&h), -ENOSPC);
	h.address.queue_offset = queue;
	assert_int_equal(import(&h), 0);
	rig_free(h.rig);
}

/* QPs have places in front of the arena: fewer of them, and there is less in front of it. */
static void SD_15_a_domain_has_no_more_queues_than_asked_for(void **state)
{
	struct soft_attr attr = { .max_qp = 1, .arena_bytes = 64 << 20 };
	const struct shunt_verbs *verbs;
	struct ibv_context *context = soft_open(&attr, &verbs);
	struct ibv_cq *cq = verbs->create_cq(context, 16, NULL, NULL, 0);
	struct ibv_qp_init_attr init = { .qp_type = IBV_QPT_RC, .send_cq = cq, .recv_cq = cq, .cap = { 8, 8, 1, 1, 0 } };
	struct ibv_pd *pd;
	struct ibv_qp *qp;

	(void)state;
	soft_size_arena(context, 4 << 20);
	pd = verbs->alloc_pd(context);
	assert_in_range(soft_segment_bytes(pd), 4 << 20, 5 << 20);
	qp = verbs->create_qp(pd, &init);
	assert_non_null(qp);
	assert_null(verbs->create_qp(pd, &init));
	assert_int_equal(verbs->destroy_qp(qp), 0);
	qp = verbs->create_qp(pd, &init);
	assert_non_null(qp);
	assert_int_equal(verbs->destroy_qp(qp), 0);
	assert_int_equal(verbs->destroy_cq(cq), 0);
	assert_int_equal(verbs->dealloc_pd(pd), 0);
	soft_close(context);
}

/* b's view of a's segment, to write what no device would. */
static char *segment_of(struct rig_end *end, struct soft_address *address)
{
	int fds[2];
	char *segment;

	assert_int_equal(soft_qp_export(end->qp, address, fds), 0);
	segment = mmap(NULL, address->segment_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fds[0], 0);
	assert_true(segment != MAP_FAILED);
	return segment;
}

struct lie {
	uint32_t slot, bytes;
	uint64_t stamp; /* without the sequence number */
};

static const struct lie lies[] = {
	{ 0, 65, IBV_WC_RECV }, /* longer than the receive */
	{ 0, 0, 0 },
	{ 0, 0, IBV_WC_RDMA_READ },
	{ 0, 0, IBV_WC_RECV_RDMA_WITH_IMM }, /* without an immediate */
	{ 0, 0xffffffff, SEGMENT_IMMEDIATE | IBV_WC_RECV_RDMA_WITH_IMM },
	{ 0, 8, 1 << 16 | SEGMENT_IMMEDIATE | IBV_WC_RECV_RDMA_WITH_IMM },
	{ 0, 8, 99 << 16 | IBV_WC_RECV },
	{ 2, 8, SEGMENT_IMMEDIATE | IBV_WC_RECV_RDMA_WITH_IMM }, /* more than was posted */
};

static void lie_to(const struct lie *lie)
{
	struct rig *rig = rig_make(NULL);
	struct soft_address address;
	char *segment = segment_of(&rig->a, &address);
	struct segment_queue *queue = (struct segment_queue *)(segment + address.queue_offset);
	uint32_t base = segment_base(queue->generation);

	rig_receive(&rig->a, 5, rig->a.memory, 64);
	rig_receive(&rig->a, 6, rig->a.memory, 64);
	for (uint32_t i = 0; i < lie->slot; i++) {
		rig_one(&rig->b, &rig->a, i, IBV_WR_RDMA_WRITE_WITH_IMM, 8);
		rig_expect(rig->a.recv_cq, 5 + i, IBV_WC_SUCCESS);
	}
	queue->arrival[lie->slot].what = (uint64_t)lie->bytes << 32;
	queue->arrival[lie->slot].stamp = (uint64_t)(base + lie->slot + 1) << 32 | lie->stamp;
	rig_expect_none(rig->a.recv_cq);
	rig_expect_async(&rig->a, IBV_EVENT_QP_FATAL);
	assert_int_equal(rig_state(&rig->a), IBV_QPS_ERR);
	for (uint32_t i = lie->slot; i < 2; i++)
		rig_expect(rig->a.recv_cq, 5 + i, IBV_WC_WR_FLUSH_ERR);
	munmap(segment, address.segment_bytes);
	rig_free(rig);
}

static void SD_15_lies_in_arrivals_kill_the_qp(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(lies) / sizeof(lies[0]); i++)
		lie_to(&lies[i]);
}

/* A region that claims to lie beyond the segment, and a receive buffer that does. */
static void SD_15_lies_about_memory_are_refused(void **state)
{
	struct rig *rig = rig_make(NULL);
	struct soft_address address;
	char *segment = segment_of(&rig->b, &address);
	struct segment_mr *mr = &segment_mrs(segment)[rig->b.mr->rkey & (SEGMENT_MR_SLOTS - 1)];
	struct segment_queue *queue = (struct segment_queue *)(segment + address.queue_offset);

	(void)state;
	rig_receive(&rig->b, 5, rig->b.memory, 64);
	segment_rqes(queue, address.rq_depth)[0].offset = address.segment_bytes - 7;
	rig_one(&rig->a, &rig->b, 1, IBV_WR_SEND, 8);
	rig_expect(rig->a.send_cq, 1, IBV_WC_REM_OP_ERR);
	munmap(segment, address.segment_bytes);
	rig_free(rig);

	rig = rig_make(NULL);
	segment = segment_of(&rig->b, &address);
	mr = &segment_mrs(segment)[rig->b.mr->rkey & (SEGMENT_MR_SLOTS - 1)];
	mr->offset = address.segment_bytes - MEMORY + 1;
	rig_one(&rig->a, &rig->b, 1, IBV_WR_RDMA_WRITE, 8);
	rig_expect(rig->a.send_cq, 1, IBV_WC_REM_ACCESS_ERR);
	munmap(segment, address.segment_bytes);
	rig_free(rig);
}

/* A peer that overwrites our published words changes nothing for us. */
static void SD_15_own_decisions_use_private_copies(void **state)
{
	struct rig *rig = rig_make(&(struct rig_options){ .receives = 4, .recv_wr = 4 });
	struct ibv_recv_wr wr = { 0 }, *bad;
	struct soft_address address;
	char *segment = segment_of(&rig->b, &address);
	struct segment_queue *queue = (struct segment_queue *)(segment + address.queue_offset);

	(void)state;
	memset(segment_mrs(segment), 0xff, SEGMENT_MR_SLOTS * sizeof(struct segment_mr));
	queue->posted = 1000;
	queue->generation = 77;
	assert_int_equal(ibv_post_recv(rig->b.qp, &wr, &bad), ENOMEM);
	rig_one(&rig->b, &rig->a, 1, IBV_WR_RDMA_WRITE_WITH_IMM, 8);
	rig_expect(rig->b.send_cq, 1, IBV_WC_SUCCESS);
	rig_one(&rig->a, &rig->b, 2, IBV_WR_RDMA_WRITE_WITH_IMM, 0);
	rig_expect(rig->b.recv_cq, 1000, IBV_WC_SUCCESS);
	munmap(segment, address.segment_bytes);
	rig_free(rig);
}

static void SD_15_discarded_memory_reads_as_zero(void **state)
{
	struct rig *rig = rig_make(NULL);

	(void)state;
	memset(rig->a.memory, 'x', 3 * 4096);
	assert_int_equal(soft_arena_discard(rig->a.pd, rig->a.memory + 4096, 4096), 0);
	assert_int_equal(rig->a.memory[4095], 'x');
	assert_int_equal(rig->a.memory[4096], 0);
	assert_int_equal(rig->a.memory[8191], 0);
	assert_int_equal(rig->a.memory[8192], 'x');
	assert_int_equal(soft_arena_discard(rig->a.pd, rig->a.memory - 4096, 4096), -EINVAL);
	rig_free(rig);
}

RIG_TABLE(hostile, cmocka_unit_test(SD_15_bad_addresses_are_refused),
	  cmocka_unit_test(SD_15_bad_files_are_refused),
	  cmocka_unit_test(SD_15_wake_must_be_a_nonblocking_eventfd),
	  cmocka_unit_test(SD_15_get_event_never_blocks), cmocka_unit_test(SD_15_the_segment_cannot_shrink),
	  cmocka_unit_test(SD_15_one_segment_is_mapped_once),
	  cmocka_unit_test(SD_15_a_segment_may_be_mapped_in_part),
	  cmocka_unit_test(SD_15_a_domain_has_no_more_queues_than_asked_for),
	  cmocka_unit_test(SD_15_lies_in_arrivals_kill_the_qp),
	  cmocka_unit_test(SD_15_lies_about_memory_are_refused),
	  cmocka_unit_test(SD_15_own_decisions_use_private_copies),
	  cmocka_unit_test(SD_15_discarded_memory_reads_as_zero),
	  cmocka_unit_test(SD_15_each_arming_is_heard), cmocka_unit_test(SD_15_no_waker_waits),
	  cmocka_unit_test(SD_15_what_is_no_kick_is_not_received),
	  cmocka_unit_test(SD_15_no_eventfd_of_a_stranger),
	  cmocka_unit_test(SD_15_no_pages_are_given_back));
