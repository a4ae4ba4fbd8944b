/* SPDX-License-Identifier: MIT */
/* Arming, events, overflow (SD-07, SD-08). */
#include <errno.h>
#include <sys/epoll.h>
#include <unistd.h>
#include "tests/soft/rig.h"

static struct ibv_cq *event_of(struct rig_end *end)
{
	struct ibv_cq *cq = NULL;
	void *context = NULL;

	if (rig_device->real)
		rig_readable(end->channel->fd); /* waits for it */
	if (end->verbs->get_cq_event(end->channel, &cq, &context)) {
		assert_int_equal(errno, EAGAIN);
		return NULL;
	}
	assert_ptr_equal(context, end);
	end->verbs->ack_cq_events(cq, 1);
	return cq;
}

static void announce_only(struct rig *rig, unsigned int flags)
{
	struct ibv_sge sge;
	struct ibv_send_wr wr = rig_write(&rig->a, &rig->b, &sge, 1, IBV_WR_RDMA_WRITE_WITH_IMM, 8), *bad;

	wr.send_flags = flags;
	assert_int_equal(rig_post(&rig->a, &wr, &bad), 0);
}

/* And it has arrived. */
static void announce(struct rig *rig, unsigned int flags)
{
	announce_only(rig, rig_device->real ? flags | IBV_SEND_SIGNALED : flags);
	if (rig_device->real)
		rig_expect(rig->a.send_cq, 1, IBV_WC_SUCCESS);
}

/* How often a was the one to wake its peer; real devices do not tell. */
static void expect_wakes(struct rig *rig, uint64_t count)
{
	if (!rig_device->real)
		assert_int_equal(soft_qp_counters(rig->a.qp)->wakes, count);
}

/* A thread that waits for it would wake up. */
static int epoll_says(int epfd)
{
	struct epoll_event event;

	return epoll_wait(epfd, &event, 1, rig_device->real ? 300 : 0);
}

static void SD_07_one_event_per_arming(void **state)
{
	struct rig *rig = rig_make(&(struct rig_options){ .receives = 8 });

	(void)state;
	announce(rig, 0);
	assert_false(rig_readable(rig->b.channel->fd));
	assert_int_equal(ibv_req_notify_cq(rig->b.recv_cq, 0), 0);
	/*
	 * Messages from before the arming raise nothing: users have to close this race by polling.
	 */
	assert_false(rig_readable(rig->b.channel->fd));
	assert_null(event_of(&rig->b));
	announce(rig, 0);
	announce(rig, 0);
	assert_true(rig_readable(rig->b.channel->fd));
	assert_ptr_equal(event_of(&rig->b), rig->b.recv_cq);
	assert_null(event_of(&rig->b));
	assert_false(rig_readable(rig->b.channel->fd));
	announce(rig, 0);
	assert_false(rig_readable(rig->b.channel->fd));
	expect_wakes(rig, 1);
	rig_free(rig);
}

/* The CQ was armed before the QP came (back) to it: it is armed for that QP too. */
static void SD_07_arming_covers_later_qps(void **state)
{
	struct rig *rig = rig_make(&(struct rig_options){ .receives = 8 });

	(void)state;
	assert_int_equal(ibv_req_notify_cq(rig->b.recv_cq, 0), 0);
	rig_end_state(&rig->a, &rig->options, IBV_QPS_RESET);
	rig_end_state(&rig->b, &rig->options, IBV_QPS_RESET);
	rig_connect(rig);
	rig_receives(&rig->b, 8);
	announce(rig, 0);
	assert_true(rig_readable(rig->b.channel->fd));
	assert_ptr_equal(event_of(&rig->b), rig->b.recv_cq);
	rig_free(rig);
}

static void SD_07_solicited_only(void **state)
{
	struct rig *rig = rig_make(&(struct rig_options){ .receives = 8 });

	(void)state;
	assert_int_equal(ibv_req_notify_cq(rig->b.recv_cq, 1), 0);
	announce(rig, 0);
	assert_false(rig_readable(rig->b.channel->fd));
	announce(rig, IBV_SEND_SOLICITED);
	assert_ptr_equal(event_of(&rig->b), rig->b.recv_cq);
	/* "Any" is not weakened by asking for solicited ones as well. */
	assert_int_equal(ibv_req_notify_cq(rig->b.recv_cq, 0), 0);
	assert_int_equal(ibv_req_notify_cq(rig->b.recv_cq, 1), 0);
	announce(rig, 0);
	assert_ptr_equal(event_of(&rig->b), rig->b.recv_cq);
	rig_free(rig);
}

static void SD_07_solicited_anywhere_in_a_chain(void **state)
{
	struct rig *rig = rig_make(&(struct rig_options){ .receives = 8 });
	struct ibv_sge sge[2];
	struct ibv_send_wr wr[2], *bad;

	(void)state;
	for (int i = 0; i < 2; i++)
		wr[i] = rig_write(&rig->a, &rig->b, &sge[i], 1, IBV_WR_RDMA_WRITE_WITH_IMM, 8);
	wr[0].next = &wr[1];
	wr[0].send_flags = IBV_SEND_SOLICITED;
	assert_int_equal(ibv_req_notify_cq(rig->b.recv_cq, 1), 0);
	assert_int_equal(rig_post(&rig->a, wr, &bad), 0);
	assert_ptr_equal(event_of(&rig->b), rig->b.recv_cq);
	expect_wakes(rig, 1);
	rig_free(rig);
}

static void SD_07_plain_write_wakes_nobody(void **state)
{
	struct rig *rig = rig_make(NULL);

	(void)state;
	assert_int_equal(ibv_req_notify_cq(rig->b.recv_cq, 0), 0);
	rig_one(&rig->a, &rig->b, 1, IBV_WR_RDMA_WRITE, 8);
	assert_false(rig_readable(rig->b.channel->fd));
	rig_free(rig);
}

static void SD_07_own_completions_raise_events(void **state)
{
	struct rig *rig = rig_make(&(struct rig_options){ .receives = 8 });

	(void)state;
	assert_int_equal(ibv_req_notify_cq(rig->a.send_cq, 1), 0);
	announce_only(rig, IBV_SEND_SIGNALED);
	assert_null(event_of(&rig->a));
	assert_int_equal(ibv_req_notify_cq(rig->a.send_cq, 0), 0);
	announce_only(rig, 0);
	assert_null(event_of(&rig->a));
	announce_only(rig, IBV_SEND_SIGNALED);
	assert_ptr_equal(event_of(&rig->a), rig->a.send_cq);
	assert_int_equal(ibv_req_notify_cq(rig->a.recv_cq, 1), 0);
	rig_end_state(&rig->a, &rig->options, IBV_QPS_ERR); /* flushed receives are errors: they count */
	assert_ptr_equal(event_of(&rig->a), rig->a.recv_cq);
	rig_free(rig);
}

static void SD_07_arming_again_keeps_the_event(void **state)
{
	struct rig *rig = rig_make(&(struct rig_options){ .receives = 8 });

	(void)state;
	assert_int_equal(ibv_req_notify_cq(rig->b.recv_cq, 0), 0);
	announce(rig, 0);
	assert_int_equal(ibv_req_notify_cq(rig->b.recv_cq, 0), 0);
	assert_ptr_equal(event_of(&rig->b), rig->b.recv_cq);
	rig_free(rig);
}

static void SD_07_refused_wr_wakes_the_responder(void **state)
{
	struct rig *rig = rig_make(&(struct rig_options){ .receives = 1 });
	struct ibv_sge sge;
	struct ibv_send_wr wr = rig_write(&rig->a, &rig->b, &sge, 1, IBV_WR_RDMA_WRITE, 8), *bad;

	(void)state;
	wr.wr.rdma.rkey = 0;
	assert_int_equal(ibv_req_notify_cq(rig->b.recv_cq, 1), 0);
	assert_int_equal(rig_post(&rig->a, &wr, &bad), 0);
	assert_ptr_equal(event_of(&rig->b), rig->b.recv_cq);
	rig_expect(rig->b.recv_cq, 1000, IBV_WC_WR_FLUSH_ERR);
	rig_free(rig);
}

static void SD_08_the_channel_works_in_epoll(void **state)
{
	struct rig *rig = rig_make(&(struct rig_options){ .receives = 8 });
	struct epoll_event event = { .events = EPOLLIN };
	int epfd = epoll_create1(EPOLL_CLOEXEC);

	(void)state;
	assert_int_equal(epoll_ctl(epfd, EPOLL_CTL_ADD, rig->b.channel->fd, &event), 0);
	assert_int_equal(ibv_req_notify_cq(rig->b.recv_cq, 0), 0);
	assert_int_equal(epoll_says(epfd), 0);
	announce(rig, 0);
	assert_int_equal(epoll_says(epfd), 1);
	assert_non_null(event_of(&rig->b));
	assert_int_equal(epoll_says(epfd), 0);
	close(epfd);
	rig_free(rig);
}

static void SD_08_cqs_share_a_channel(void **state)
{
	struct rig *rig = rig_make(&(struct rig_options){ .receives = 8, .separate_cqs = 1 });
	struct ibv_sge sge;
	struct ibv_send_wr wr = rig_write(&rig->b, &rig->a, &sge, 1, IBV_WR_RDMA_WRITE, 8), *bad;
	struct ibv_cq *first, *second;

	(void)state;
	assert_int_equal(ibv_req_notify_cq(rig->b.send_cq, 0), 0);
	assert_int_equal(ibv_req_notify_cq(rig->b.recv_cq, 0), 0);
	announce(rig, 0);
	assert_int_equal(rig_post(&rig->b, &wr, &bad), 0);
	first = event_of(&rig->b);
	assert_true(rig_readable(rig->b.channel->fd));
	second = event_of(&rig->b);
	assert_true((first == rig->b.send_cq && second == rig->b.recv_cq) ||
		    (second == rig->b.send_cq && first == rig->b.recv_cq));
	assert_null(event_of(&rig->b));
	rig_free(rig);
}

static void SD_07_overflow_by_receives(void **state)
{
	struct rig *rig = rig_make(&(struct rig_options){ .receives = 16, .cqe = 4, .separate_cqs = 1 });

	(void)state;
	assert_in_range(rig->b.recv_cq->cqe, 4, 12);
	for (int i = 0; i < rig->b.recv_cq->cqe; i++)
		announce(rig, 0);
	rig_expect(rig->b.recv_cq, 1000, IBV_WC_SUCCESS);
	assert_false(rig_readable(rig->b.context->async_fd));
	announce(rig, 0);
	announce_only(rig, 0);
	if (rig_device->real)
		rig_expect_async(&rig->b, IBV_EVENT_CQ_ERR); /* first: polling makes room */
	if (rig_quirk(QUIRK_MILD_OVERFLOW))
		rig_expect_count(rig->b.recv_cq, rig->b.recv_cq->cqe);
	else
		rig_expect_none(rig->b.recv_cq);
	if (!rig_device->real)
		rig_expect_async(&rig->b, IBV_EVENT_CQ_ERR);
	assert_int_equal(rig_state(&rig->b), IBV_QPS_ERR);
	rig_free(rig);
}

static void SD_07_overflow_by_sends(void **state)
{
	struct rig *rig = rig_make(&(struct rig_options){ .cqe = 4 });
	uint64_t fit = (uint64_t)rig->a.send_cq->cqe;

	(void)state;
	for (uint64_t i = 0; i < fit; i++)
		rig_one(&rig->a, &rig->b, i, IBV_WR_RDMA_WRITE, 8);
	assert_false(rig_readable(rig->a.context->async_fd));
	rig_one(&rig->a, &rig->b, fit, IBV_WR_RDMA_WRITE, 8);
	rig_expect_async(&rig->a, IBV_EVENT_CQ_ERR);
	assert_int_equal(rig_state(&rig->a), rig_quirk(QUIRK_MILD_OVERFLOW) ? IBV_QPS_RTS : IBV_QPS_ERR);
	for (uint64_t i = 0; i < fit; i++)
		rig_expect(rig->a.send_cq, i, IBV_WC_SUCCESS);
	rig_expect_none(rig->a.send_cq);
	rig_free(rig);
}

RIG_TABLE(event, cmocka_unit_test(SD_07_one_event_per_arming), cmocka_unit_test(SD_07_arming_covers_later_qps),
	   cmocka_unit_test(SD_07_solicited_only),
	  cmocka_unit_test(SD_07_solicited_anywhere_in_a_chain),
	  cmocka_unit_test(SD_07_plain_write_wakes_nobody),
	  cmocka_unit_test(SD_07_own_completions_raise_events),
	  cmocka_unit_test(SD_07_arming_again_keeps_the_event),
	  cmocka_unit_test(SD_07_refused_wr_wakes_the_responder),
	  cmocka_unit_test(SD_07_overflow_by_receives), cmocka_unit_test(SD_07_overflow_by_sends),
	  cmocka_unit_test(SD_08_the_channel_works_in_epoll), cmocka_unit_test(SD_08_cqs_share_a_channel));
