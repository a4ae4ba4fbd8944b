/* SPDX-License-Identifier: MIT */
/*
 * The soft device and a peer that writes anything into the memory the two share. That is our segment, which it has
 * mapped, and its own, which we believe within bounds. It also makes up its address and the descriptors. Nothing of
 * ours may be read or written but what we have posted, and every completion must be of something posted.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <unistd.h>
#include "core/device/soft/device.h"
#include "tests/fuzz/fuzz.h"

#define DEPTH 16
#define PRIVATE 4096	/* bytes of ours that are registered, but not in the arena */
#define ROOM 1024	/* of those, in the middle: where posted WRs may read and write */

static struct fuzz_input *in;
static uint64_t clock_ns;

struct end {
	struct ibv_context *context;
	const struct shunt_verbs *verbs;
	struct ibv_comp_channel *channel;
	struct ibv_cq *cq;
	struct ibv_pd *pd;
	struct ibv_qp *qp;
	struct ibv_mr *mr, *private_mr;
	char *arena;
	char *segment;		/* as it was when it was made, as far as the other end writes there */
};

static struct end ours, theirs;
static char private[PRIVATE];
static uint64_t posted_sends, posted_receives, done_sends, done_receives;
static int bad_files[3];
static struct {
	int fd;
	uint64_t *words;
	struct ibv_mr *mr;
} page;	/* theirs, that we may reach by atomics */

static uint64_t now(void)
{
	return clock_ns;
}

/* The part of a segment that a peer may have overwritten, without the arena. */
static size_t shared_bytes(const struct end *end)
{
	return SEGMENT_QUEUE_OFFSET + container_of(end->pd, struct soft_pd, ibv)->queue_bytes;
}

static char *segment_of(const struct end *end)
{
	return container_of(end->pd, struct soft_pd, ibv)->segment;
}

static void make_end(struct end *end)
{
	struct soft_attr attr = { .max_qp_wr = DEPTH, .max_cqe = 64, .arena_bytes = 1 << 20, .now = now };
	int access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC;
	size_t bytes;

	end->context = soft_open(&attr, &end->verbs);
	fuzz_check(end->context);
	end->channel = end->verbs->create_comp_channel(end->context);
	end->cq = end->verbs->create_cq(end->context, 64, NULL, end->channel, 0);
	end->pd = end->verbs->alloc_pd(end->context);
	fuzz_check(end->channel && end->cq && end->pd);
	end->arena = soft_arena(end->pd, &bytes);
	end->mr = end->verbs->register_mr(end->pd, end->arena, 65536, access);
	end->private_mr = end->verbs->register_mr(end->pd, private + (PRIVATE - ROOM) / 2, ROOM, access);
	fuzz_check(end->mr && end->private_mr);
	end->segment = malloc(shared_bytes(end));
	fuzz_check(end->segment);
	memcpy(end->segment, segment_of(end), shared_bytes(end));
}

static void make_queue_pair(struct end *end)
{
	struct ibv_qp_init_attr init = { .qp_type = IBV_QPT_RC, .send_cq = end->cq, .recv_cq = end->cq,
					 .cap = { DEPTH, DEPTH, 4, 1, 256 } };
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_INIT, .port_num = 1,
				    .qp_access_flags = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC };

	end->qp = end->verbs->create_qp(end->pd, &init);
	fuzz_check(end->qp && !end->verbs->modify_qp(end->qp, &attr, SHUNT_TO_INIT));
}

/* As the other end told; 0 or -errno. */
static int join(struct end *end, const struct soft_address *address, const int fds[2])
{
	struct ibv_qp_attr rtr = { .qp_state = IBV_QPS_RTR, .min_rnr_timer = 12, .dest_qp_num = address->qp_num };
	struct ibv_qp_attr rts = { .qp_state = IBV_QPS_RTS, .timeout = 14, .retry_cnt = 6, .rnr_retry = 7 };
	int result = soft_qp_import(end->qp, address, fds);

	if (!result)
		fuzz_check(!end->verbs->modify_qp(end->qp, &rtr, SHUNT_TO_RTR) &&
			   !end->verbs->modify_qp(end->qp, &rts, SHUNT_TO_RTS));
	return result;
}

/* --- meeting --- */

static void change_address(struct soft_address *address)
{
	uint8_t *at = (uint8_t *)address + fuzz_below(in, sizeof(*address) / 4) * 4;
	uint32_t word;

	memcpy(&word, at, sizeof(word));
	word = fuzz_below(in, 2) ? word + (int8_t)fuzz_byte(in) * 128 : fuzz_u32(in);
	memcpy(at, &word, sizeof(word));
}

static void meet(void)
{
	struct soft_address address;
	unsigned int lies = fuzz_below(in, 8);
	int fds[2], result;

	fuzz_check(!soft_qp_export(ours.qp, &address, fds) && !join(&theirs, &address, fds));
	fuzz_check(!soft_qp_export(theirs.qp, &address, fds));
	for (; lies > 4; lies--)
		change_address(&address);
	if (lies == 4)
		fds[fuzz_below(in, 2)] = bad_files[fuzz_below(in, 3)];
	result = join(&ours, &address, fds);
	fuzz_check(!result || result == -EPROTO || result == -EINVAL || result == -ENOMEM);
	for (int i = 0; i < 3; i++)
		fuzz_check(soft_page_reach(ours.qp, bad_files[i]) ==
			   (result ? -ENOTCONN : -EPROTO));
	fuzz_check(soft_page_reach(ours.qp, page.fd) == (result ? -ENOTCONN : 0));
}

/* --- what we do --- */

static struct ibv_sge some_sge(void)
{
	struct ibv_sge sge = { .length = fuzz_byte(in), .lkey = ours.private_mr->lkey };

	sge.addr = (uintptr_t)private + (PRIVATE - ROOM) / 2 + fuzz_byte(in) * 3;
	if (!fuzz_below(in, 8)) {
		sge.addr = (uintptr_t)ours.arena + fuzz_byte(in) * 16;
		sge.lkey = ours.mr->lkey;
	}
	if (!fuzz_below(in, 16))	/* our own mistake: refused, not carried out */
		sge.length = fuzz_u32(in) | 1 << 20;
	return sge;
}

static void post_send(void)
{
	struct ibv_sge sge = some_sge();
	struct ibv_send_wr wr = { .wr_id = 1000 + posted_sends, .sg_list = &sge, .num_sge = 1, .send_flags = IBV_SEND_SIGNALED }, *bad;

	wr.opcode = fuzz_below(in, 7);
	if (wr.opcode == IBV_WR_SEND_WITH_IMM || wr.opcode == IBV_WR_RDMA_WRITE_WITH_IMM)
		wr.imm_data = fuzz_byte(in);
	if (wr.opcode == IBV_WR_ATOMIC_CMP_AND_SWP || wr.opcode == IBV_WR_ATOMIC_FETCH_AND_ADD) {
		sge.length = 8;
		wr.wr.atomic.remote_addr = (uintptr_t)theirs.arena + fuzz_byte(in) * 8;
		wr.wr.atomic.rkey = theirs.mr->rkey;
		if (wr.wr.atomic.remote_addr >= (uintptr_t)theirs.arena + 1024) {
			wr.wr.atomic.rkey = page.mr->rkey;
			wr.wr.atomic.remote_addr = (wr.wr.atomic.remote_addr - (uintptr_t)theirs.arena - 1024) * 5;
		}
	} else {
		wr.wr.rdma.remote_addr = (uintptr_t)theirs.arena + fuzz_byte(in) * 64;
		wr.wr.rdma.rkey = theirs.mr->rkey;
		if (sge.length <= 256 && fuzz_below(in, 2) && wr.opcode != IBV_WR_RDMA_READ)
			wr.send_flags |= IBV_SEND_INLINE;
	}
	if (fuzz_below(in, 2))
		wr.send_flags |= IBV_SEND_SOLICITED;
	if (!soft_post_send(ours.qp, &wr, &bad))
		posted_sends++;
}

static void post_receive(void)
{
	struct ibv_sge sge = { (uintptr_t)ours.arena + 32768 + fuzz_byte(in) * 16, fuzz_byte(in), ours.mr->lkey };
	struct ibv_recv_wr wr = { .wr_id = posted_receives, .sg_list = &sge, .num_sge = fuzz_below(in, 2) }, *bad;

	if (!soft_post_recv(ours.qp, &wr, &bad))
		posted_receives++;
}

static void check_done(const struct ibv_wc *wc)
{
	fuzz_check(wc->qp_num == ours.qp->qp_num);
	if (wc->wr_id >= 1000) {
		fuzz_check(wc->wr_id == 1000 + done_sends++ && done_sends <= posted_sends);
		return;
	}
	fuzz_check(wc->wr_id == done_receives++ && done_receives <= posted_receives);
	fuzz_check(wc->status != IBV_WC_SUCCESS || wc->byte_len <= SOFT_MAX_MESSAGE);
	fuzz_check(wc->status != IBV_WC_SUCCESS || wc->opcode == IBV_WC_RECV || wc->opcode == IBV_WC_RECV_RDMA_WITH_IMM);
}

static void poll_ours(void)
{
	struct ibv_wc wc[8];
	int n = soft_poll_cq(ours.cq, 1 + fuzz_below(in, 8), wc);

	fuzz_check(n >= 0 && n <= 8);
	for (int i = 0; i < n; i++)
		check_done(&wc[i]);
}

static void sleep_and_wake(void)
{
	struct ibv_cq *cq;
	void *context;

	soft_req_notify_cq(ours.cq, fuzz_below(in, 2));
	if (!ours.verbs->get_cq_event(ours.channel, &cq, &context))
		ours.verbs->ack_cq_events(cq, 1);
}

static void look(void)
{
	uint64_t bytes = fuzz_below(in, 2) ? fuzz_byte(in) : fuzz_u64(in);
	const char *seen = soft_qp_peek(ours.qp, (uintptr_t)theirs.arena + fuzz_byte(in) * 64, theirs.mr->rkey, bytes);
	struct soft_qp *qp = container_of(ours.qp, struct soft_qp, ibv);

	if (!seen || !bytes)
		return;
	if (seen >= qp->peer->page && seen < qp->peer->page + SEGMENT_PAGE_BYTES)	/* the peer says that it may be read */
		fuzz_check(bytes <= (uint64_t)(qp->peer->page + SEGMENT_PAGE_BYTES - seen));
	else
		fuzz_check(seen >= qp->peer->base &&
			   (uint64_t)(seen - qp->peer->base) <= qp->peer->bytes &&
			   bytes <= qp->peer->bytes - (seen - qp->peer->base));
	(void)*(const volatile char *)seen;
	(void)*(const volatile char *)(seen + bytes - 1);
}

/* --- what the peer does --- */

/* One word of ours, or of its own. */
static void scribble(const struct end *end)
{
	struct soft_qp *qp = container_of(end->qp, struct soft_qp, ibv);
	uint64_t queue = (char *)qp->queue - segment_of(end), at, value;

	switch (fuzz_below(in, 5)) {
	case 0:
		at = queue + fuzz_below(in, 2) * 128 + fuzz_below(in, 8) * 4;
		break;
	case 1:
		at = queue + sizeof(struct segment_queue) + fuzz_below(in, DEPTH) * 16 + fuzz_below(in, 4) * 4;
		break;
	case 2:
		at = queue + sizeof(struct segment_queue) + DEPTH * 16 + fuzz_below(in, DEPTH) * 16 + fuzz_below(in, 4) * 4;
		break;
	case 3:
		at = SEGMENT_MR_OFFSET + fuzz_below(in, 3) * sizeof(struct segment_mr) + fuzz_below(in, 8) * 4;
		break;
	default:
		at = fuzz_below(in, 8) * 4;
	}
	value = fuzz_below(in, 2) ? fuzz_byte(in) : fuzz_u64(in);
	if (value == 255)	/* a region of the page, or one that says so */
		((volatile struct segment_mr *)(segment_of(end) + SEGMENT_MR_OFFSET))[fuzz_below(in, 4)].offset = SEGMENT_PAGE_OFFSET;
	else if (fuzz_below(in, 2))
		*(volatile uint32_t *)(segment_of(end) + at) = value;
	else
		*(volatile uint64_t *)(segment_of(end) + (at & ~7ull)) += (int64_t)value;
}

/* An arrival that is expected next, or soon. */
static void arrive(void)
{
	struct soft_qp *qp = container_of(ours.qp, struct soft_qp, ibv);
	uint64_t k = done_receives + (fuzz_below(in, 4) ? 0 : fuzz_below(in, DEPTH));
	struct segment_arrival *arrival = &qp->queue->arrival[k & qp->rq_mask];
	static const uint32_t stamps[] = { SEGMENT_IMMEDIATE | IBV_WC_RECV_RDMA_WITH_IMM, IBV_WC_RECV, SEGMENT_IMMEDIATE | IBV_WC_RECV };
	uint32_t stamp = fuzz_below(in, 4) ? stamps[fuzz_below(in, 3)] : fuzz_u32(in);

	arrival->what = fuzz_below(in, 2) ? (uint64_t)fuzz_byte(in) << 32 : fuzz_u64(in);
	arrival->stamp = (uint64_t)(uint32_t)(qp->base + k + 1) << 32 | stamp;
}

static void post_theirs(void)
{
	struct ibv_sge sge = { (uintptr_t)theirs.arena, fuzz_byte(in), theirs.mr->lkey };
	struct ibv_send_wr wr = { .sg_list = &sge, .num_sge = 1, .opcode = fuzz_below(in, 7), .send_flags = IBV_SEND_SIGNALED }, *bad;
	struct ibv_wc wc[8];

	wr.wr.rdma.remote_addr = (uintptr_t)ours.arena + fuzz_byte(in) * 256;
	wr.wr.rdma.rkey = ours.mr->rkey;
	soft_post_send(theirs.qp, &wr, &bad);
	soft_poll_cq(theirs.cq, 8, wc);
}

static void receive_theirs(void)
{
	struct ibv_sge sge = { (uintptr_t)theirs.arena + fuzz_byte(in) * 16, fuzz_byte(in), theirs.mr->lkey };
	struct ibv_recv_wr wr = { .sg_list = &sge, .num_sge = fuzz_below(in, 2) }, *bad;

	soft_post_recv(theirs.qp, &wr, &bad);
}

static void step(void)
{
	struct ibv_qp_attr error = { .qp_state = IBV_QPS_ERR };

	switch (fuzz_below(in, 20)) {
	case 0 ... 2:
		post_send();
		break;
	case 3: case 4:
		post_receive();
		break;
	case 5 ... 7:
		poll_ours();
		break;
	case 8:
		sleep_and_wake();
		break;
	case 9:
		look();
		break;
	case 10:
		clock_ns += 1ull << fuzz_below(in, 32);
		break;
	case 11: case 12:
		scribble(&ours);
		break;
	case 13: case 14:
		scribble(&theirs);
		break;
	case 15: case 16:
		arrive();
		break;
	case 17:
		post_theirs();
		break;
	case 18:
		receive_theirs();
		break;
	default:
		if (!fuzz_below(in, 4))
			soft_modify_qp(ours.qp, &error, IBV_QP_STATE);
		else
			soft_eventfd_add(ours.channel->fd);
	}
}

/* --- the world --- */

static void make(void)
{
	make_end(&ours);
	make_end(&theirs);
	fuzz_check(!soft_page_make(theirs.context, &page.fd, (void **)&page.words));
	page.mr = soft_page_lend(theirs.pd, page.words);
	fuzz_check(page.mr);
	memcpy(theirs.segment, segment_of(&theirs), shared_bytes(&theirs));
	bad_files[0] = memfd_create("bad", MFD_CLOEXEC | MFD_ALLOW_SEALING);	/* not sealed */
	bad_files[1] = eventfd(0, EFD_CLOEXEC);	/* blocks */
	bad_files[2] = STDERR_FILENO;
}

/* In the end every receive and every WR is accounted for. */
static void finish(void)
{
	struct ibv_qp_attr error = { .qp_state = IBV_QPS_ERR };
	struct ibv_async_event event;
	struct ibv_wc wc[8];
	int n;

	soft_modify_qp(ours.qp, &error, IBV_QP_STATE);
	while ((n = soft_poll_cq(ours.cq, 8, wc)) > 0)
		for (int i = 0; i < n; i++)
			check_done(&wc[i]);
	fuzz_check(done_receives == posted_receives && done_sends == posted_sends);
	while (!ours.verbs->get_async_event(ours.context, &event))
		ours.verbs->ack_async_event(&event);
	soft_destroy_qp(ours.qp);
	while (soft_poll_cq(theirs.cq, 8, wc) > 0)
		;
	soft_destroy_qp(theirs.qp);
	memcpy(segment_of(&ours), ours.segment, shared_bytes(&ours));
	memcpy(segment_of(&theirs), theirs.segment, shared_bytes(&theirs));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fuzz_input input = { data, data + size };

	in = &input;
	if (!ours.context)
		make();
	clock_ns = 1000;
	posted_sends = posted_receives = done_sends = done_receives = 0;
	memset(private, 0x5a, sizeof(private));
	make_queue_pair(&ours);
	make_queue_pair(&theirs);
	meet();
	for (int i = 0; i < 400 && fuzz_more(in); i++)
		step();
	for (int i = 0; i < PRIVATE; i++)
		fuzz_check(private[i] == 0x5a || (i >= (PRIVATE - ROOM) / 2 && i < (PRIVATE + ROOM) / 2));
	finish();
	return 0;
}
