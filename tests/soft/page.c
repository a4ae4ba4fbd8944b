/* SPDX-License-Identifier: MIT */
/* A page of words that the peers of several domains share, and reach by atomics alone (SD-10, SD-15). */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>
#include "core/device/soft/shm_segment.h"
#include "tests/soft/fds.h"
#include "tests/soft/party.h"
#include "tests/soft/rig.h"

enum { ADDS = 2000, PEERS = 2, WORDS = SEGMENT_PAGE_BYTES / 8 };

/* b owns the page, and has lent it to a. */
struct lent {
	struct rig *rig;
	int fd;
	uint64_t *words;
	struct ibv_mr *mr;
};

static struct lent page_make(void)
{
	struct lent lent = { .rig = rig_make(&(struct rig_options){ .receives = 4 }) };
	void *page;

	assert_int_equal(soft_page_make(lent.rig->b.context, &lent.fd, &page), 0);
	lent.words = page;
	lent.mr = soft_page_lend(lent.rig->b.pd, page);
	assert_non_null(lent.mr);
	return lent;
}

static void page_free(struct lent *lent)
{
	if (lent->mr)
		lent->rig->b.verbs->deregister_mr(lent->mr);
	soft_page_free(lent->rig->b.context, lent->fd, lent->words);
	rig_free(lent->rig);
}

static struct lent reached(void)
{
	struct lent lent = page_make();

	assert_int_equal(soft_page_reach(lent.rig->a.qp, lent.fd), 0);
	return lent;
}

/* Posts one of a's, of 8 bytes, to what the page's owner calls `address`. */
static void post(struct rig_end *end, uint32_t rkey, uint64_t wr_id, enum ibv_wr_opcode opcode,
		 uint64_t address, uint64_t compare_add, uint64_t swap)
{
	struct ibv_sge sge = { (uintptr_t)end->memory, 8, end->mr->lkey };
	struct ibv_send_wr *bad, wr = { .wr_id = wr_id, .sg_list = &sge, .num_sge = 1, .opcode = opcode,
					.send_flags = IBV_SEND_SIGNALED };

	if (opcode == IBV_WR_ATOMIC_FETCH_AND_ADD || opcode == IBV_WR_ATOMIC_CMP_AND_SWP) {
		wr.wr.atomic.remote_addr = address;
		wr.wr.atomic.rkey = rkey;
		wr.wr.atomic.compare_add = compare_add;
		wr.wr.atomic.swap = swap;
	} else {
		wr.wr.rdma.remote_addr = address;
		wr.wr.rdma.rkey = rkey;
	}
	must(rig_post(end, &wr, &bad) == 0);
}

static void ends_with(struct lent *lent, enum ibv_wr_opcode opcode, uint64_t address,
		      enum ibv_wc_status status)
{
	post(&lent->rig->a, lent->mr ? lent->mr->rkey : 0, 1, opcode, address, 3, 0);
	rig_expect(lent->rig->a.send_cq, 1, status);
}

static void SD_10_a_page_is_reached_by_atomics(void **state)
{
	struct lent lent = reached();
	const uint64_t *before = (const uint64_t *)lent.rig->a.memory;
	uint64_t last = (WORDS - 1) * 8;

	(void)state;
	lent.words[WORDS - 1] = 40;
	post(&lent.rig->a, lent.mr->rkey, 1, IBV_WR_ATOMIC_FETCH_AND_ADD, last, (uint64_t)-2, 0);
	rig_expect(lent.rig->a.send_cq, 1, IBV_WC_SUCCESS);
	assert_int_equal(*before, 40);
	assert_int_equal(lent.words[WORDS - 1], 38);
	post(&lent.rig->a, lent.mr->rkey, 2, IBV_WR_ATOMIC_CMP_AND_SWP, last, 38, 7);
	rig_expect(lent.rig->a.send_cq, 2, IBV_WC_SUCCESS);
	assert_int_equal(*before, 38);
	assert_int_equal(lent.words[WORDS - 1], 7);
	assert_int_equal(lent.words[0], 0);
	rig_one(&lent.rig->a, &lent.rig->b, 3, IBV_WR_RDMA_WRITE, MEMORY); /* the segment is reached as before */
	rig_expect(lent.rig->a.send_cq, 3, IBV_WC_SUCCESS);
	page_free(&lent);
}

static void refuse(enum ibv_wr_opcode opcode, uint64_t address, enum ibv_wc_status status)
{
	struct lent lent = reached();

	ends_with(&lent, opcode, address, status);
	for (int i = 0; i < WORDS; i++)
		assert_int_equal(lent.words[i], 0);
	page_free(&lent);
}

static void SD_10_nothing_else_reaches_a_page(void **state)
{
	(void)state;
	refuse(IBV_WR_RDMA_WRITE, 0, IBV_WC_REM_ACCESS_ERR);
	refuse(IBV_WR_RDMA_WRITE_WITH_IMM, 0, IBV_WC_REM_ACCESS_ERR);
	refuse(IBV_WR_RDMA_READ, 0, IBV_WC_REM_ACCESS_ERR);
	refuse(IBV_WR_ATOMIC_FETCH_AND_ADD, SEGMENT_PAGE_BYTES, IBV_WC_REM_ACCESS_ERR);
	refuse(IBV_WR_ATOMIC_FETCH_AND_ADD, (uint64_t)-8, IBV_WC_REM_ACCESS_ERR);
	refuse(IBV_WR_ATOMIC_FETCH_AND_ADD, 1ull << 63, IBV_WC_REM_ACCESS_ERR);
	refuse(IBV_WR_ATOMIC_FETCH_AND_ADD, 4, IBV_WC_REM_INV_REQ_ERR);
	refuse(IBV_WR_ATOMIC_CMP_AND_SWP, SEGMENT_PAGE_BYTES - 4, IBV_WC_REM_INV_REQ_ERR);
}

static void SD_10_a_page_is_not_peeked_at_and_takes_no_sends(void **state)
{
	struct lent lent = reached();
	struct ibv_sge sge = { (uintptr_t)lent.words, 64, lent.mr->lkey };
	struct ibv_recv_wr wr = { .wr_id = 5, .sg_list = &sge, .num_sge = 1 }, *bad;

	(void)state;
	assert_null(soft_qp_peek(lent.rig->a.qp, 0, lent.mr->rkey, 8));
	for (int i = 0; i < 4; i++) {
		rig_one(&lent.rig->a, &lent.rig->b, 1, IBV_WR_SEND, 0);
		rig_expect(lent.rig->a.send_cq, 1, IBV_WC_SUCCESS);
		rig_expect(lent.rig->b.recv_cq, 1000 + (uint64_t)i, IBV_WC_SUCCESS);
	}
	assert_int_equal(ibv_post_recv(lent.rig->b.qp, &wr, &bad), 0);
	rig_one(&lent.rig->a, &lent.rig->b, 2, IBV_WR_SEND, 8);
	rig_expect(lent.rig->a.send_cq, 2, IBV_WC_REM_OP_ERR);
	assert_int_equal(lent.words[0], 0);
	page_free(&lent);
}

static void SD_15_a_page_that_was_not_sent_is_refused(void **state)
{
	struct lent lent = page_make();

	(void)state;
	ends_with(&lent, IBV_WR_ATOMIC_FETCH_AND_ADD, 0, IBV_WC_REM_ACCESS_ERR);
	page_free(&lent);
}

static int reach_file(struct lent *lent, int fd)
{
	int result = soft_page_reach(lent->rig->a.qp, fd);

	close(fd);
	return result;
}

static int memfd(off_t bytes, int seals)
{
	int fd = memfd_create("hostile", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	assert_true(fd >= 0 && !ftruncate(fd, bytes) && !fcntl(fd, F_ADD_SEALS, seals));
	return fd;
}

static void SD_15_bad_pages_are_refused(void **state)
{
	enum { SEALS = F_SEAL_SHRINK | F_SEAL_GROW };
	struct lent lent = page_make();
	FILE *file = tmpfile();
	int sockets[2];

	(void)state;
	assert_true(file && !ftruncate(fileno(file), SEGMENT_PAGE_BYTES));
	assert_int_equal(soft_page_reach(lent.rig->a.qp, fileno(file)), -EPROTO);
	fclose(file);
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets), 0);
	assert_int_equal(reach_file(&lent, sockets[0]), -EPROTO);
	close(sockets[1]);
	assert_int_equal(soft_page_reach(lent.rig->a.qp, -1), -EPROTO);
	assert_int_equal(reach_file(&lent, open("/dev/zero", O_RDWR | O_CLOEXEC)), -EPROTO);
	assert_int_equal(reach_file(&lent, memfd(SEGMENT_PAGE_BYTES, F_SEAL_SHRINK)), -EPROTO);
	assert_int_equal(reach_file(&lent, memfd(SEGMENT_PAGE_BYTES, F_SEAL_GROW)), -EPROTO);
	assert_int_equal(reach_file(&lent, memfd(SEGMENT_PAGE_BYTES, SEALS | F_SEAL_WRITE)),
			 -EPROTO);
	assert_int_equal(reach_file(&lent, memfd(SEGMENT_PAGE_BYTES / 2, SEALS)), -EPROTO);
	assert_int_equal(reach_file(&lent, memfd(2 * SEGMENT_PAGE_BYTES, SEALS)), -EPROTO);
	assert_int_equal(reach_file(&lent, memfd(0, SEALS)), -EPROTO);
	assert_int_equal(soft_page_reach(lent.rig->a.qp, lent.fd), 0);
	assert_int_equal(soft_page_reach(lent.rig->a.qp, lent.fd), -EBUSY);
	assert_int_equal(reach_file(&lent, memfd(SEGMENT_PAGE_BYTES, SEALS)), -EBUSY);
	ends_with(&lent, IBV_WR_ATOMIC_FETCH_AND_ADD, 8, IBV_WC_SUCCESS);
	assert_int_equal(lent.words[1], 3);
	page_free(&lent);
}

/* Writes the owner's table: the page keeps its length, wherever the segment ends. */
static void lie(uint64_t length, uint64_t offset, enum ibv_wc_status status)
{
	struct lent lent = reached();
	struct soft_address address;
	struct segment_mr *mr;
	char *segment;
	int fds[2];

	assert_int_equal(soft_qp_export(lent.rig->b.qp, &address, fds), 0);
	segment = mmap(NULL, address.segment_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fds[0], 0);
	assert_true(segment != MAP_FAILED);
	mr = &segment_mrs(segment)[lent.mr->rkey & (SEGMENT_MR_SLOTS - 1)];
	mr->length = length;
	mr->offset = offset;
	ends_with(&lent, IBV_WR_ATOMIC_FETCH_AND_ADD, length - 8, status);
	munmap(segment, address.segment_bytes);
	page_free(&lent);
}

static void SD_15_lies_about_a_page_are_refused(void **state)
{
	(void)state;
	lie(SEGMENT_PAGE_BYTES, SEGMENT_PAGE_OFFSET, IBV_WC_SUCCESS);
	lie(SEGMENT_PAGE_BYTES + 8, SEGMENT_PAGE_OFFSET, IBV_WC_REM_ACCESS_ERR);
	lie(UINT64_MAX & ~7ull, SEGMENT_PAGE_OFFSET, IBV_WC_REM_ACCESS_ERR);
	lie(SEGMENT_PAGE_BYTES, SEGMENT_PAGE_OFFSET + 8, IBV_WC_REM_ACCESS_ERR);
	lie(SEGMENT_PAGE_BYTES, UINT64_MAX, IBV_WC_REM_ACCESS_ERR);
}

static void SD_15_a_page_that_was_taken_back_is_refused(void **state)
{
	struct lent lent = reached();
	uint32_t rkey = lent.mr->rkey;

	(void)state;
	ends_with(&lent, IBV_WR_ATOMIC_FETCH_AND_ADD, 8, IBV_WC_SUCCESS);
	assert_int_equal(lent.rig->b.verbs->deregister_mr(lent.mr), 0);
	lent.mr = NULL;
	post(&lent.rig->a, rkey, 2, IBV_WR_ATOMIC_FETCH_AND_ADD, 8, 3, 0);
	rig_expect(lent.rig->a.send_cq, 2, IBV_WC_REM_ACCESS_ERR);
	assert_int_equal(lent.words[1], 3);
	page_free(&lent);
}

/* The owner has unmapped and closed it without a word: the peer's own mapping stays. */
static void SD_15_a_page_may_vanish_under_its_peer(void **state)
{
	struct lent lent = reached();

	(void)state;
	soft_page_free(lent.rig->b.context, lent.fd, lent.words);
	ends_with(&lent, IBV_WR_ATOMIC_FETCH_AND_ADD, 8, IBV_WC_SUCCESS);
	ends_with(&lent, IBV_WR_ATOMIC_FETCH_AND_ADD, 8, IBV_WC_SUCCESS);
	assert_int_equal(*(uint64_t *)lent.rig->a.memory, 3);
	lent.rig->b.verbs->deregister_mr(lent.mr);
	rig_free(lent.rig);
}

/* With the QP's reset the peer goes, and its page: the next one may send another. */
static void SD_15_a_page_goes_with_its_peer(void **state)
{
	struct lent lent = reached();
	struct rig *rig = lent.rig;

	(void)state;
	ends_with(&lent, IBV_WR_ATOMIC_FETCH_AND_ADD, 8, IBV_WC_SUCCESS);
	rig_end_state(&rig->a, &rig->options, IBV_QPS_RESET);
	assert_int_equal(soft_page_reach(rig->a.qp, lent.fd), -ENOTCONN);
	rig_end_state(&rig->b, &rig->options, IBV_QPS_RESET);
	rig_connect(rig);
	ends_with(&lent, IBV_WR_ATOMIC_FETCH_AND_ADD, 8, IBV_WC_REM_ACCESS_ERR);
	assert_int_equal(lent.words[1], 3);
	assert_int_equal(soft_page_reach(rig->a.qp, lent.fd), 0);
	page_free(&lent);
}

/* --- three processes, each pair with a domain of its own --- */

struct loan {
	struct rig_address address;
	uint32_t rkey;
};

static void join(struct rig_end *end, int socket, const struct rig_options *options,
		 struct loan *mine, struct loan *peer)
{
	int fds[2];

	must(rig_tell(end, &mine->address, fds) == 0);
	must(fds_send(socket, mine, sizeof(*mine), fds));
	must(fds_receive(socket, peer, sizeof(*peer), fds));
	must(rig_meet(end, &peer->address, fds) == 0);
	close(fds[0]);
	close(fds[1]);
	rig_end_state(end, options, IBV_QPS_RTR);
	rig_end_state(end, options, IBV_QPS_RTS);
}

static const struct rig_options three = { .send_wr = 16, .recv_wr = 16, .cqe = 64, .real_time = 1, .timeout = 14,
					  .access = IBV_ACCESS_LOCAL_WRITE, .qp_access = IBV_ACCESS_REMOTE_ATOMIC };

static void add_from_afar(int socket)
{
	struct loan mine = { 0 }, peer;
	struct rig_end end = { 0 };
	int fds[2];
	char go;

	rig_end_make(&end, &three);
	rig_end_state(&end, &three, IBV_QPS_INIT);
	join(&end, socket, &three, &mine, &peer);
	must(fds_receive(socket, &go, 1, fds)); /* the page, twice */
	must(soft_page_reach(end.qp, fds[0]) == 0);
	for (uint64_t i = 0; i < ADDS; i++) {
		post(&end, peer.rkey, i, IBV_WR_ATOMIC_FETCH_AND_ADD, 8, 1, 0);
		rig_await(end.send_cq, i, IBV_WC_SUCCESS);
	}
	must(write(socket, "", 1) == 1);
	_exit(0);
}

static int start_peer(pid_t *pid)
{
	int sockets[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets), 0);
	*pid = fork();
	assert_true(*pid >= 0);
	if (!*pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		close(sockets[0]);
		add_from_afar(sockets[1]);
	}
	close(sockets[1]);
	return sockets[0];
}

/* Peers add 1, the owner exchanges the word for one that has 2^32 more: no addition is lost. */
static void SD_15_a_page_is_shared_by_three_processes(void **state)
{
	struct rig_end ends[PEERS] = { 0 };
	struct ibv_mr *mrs[PEERS];
	int sockets[PEERS], status, fd;
	uint64_t word = 0, swaps = 0;
	_Atomic uint64_t *words;
	pid_t pids[PEERS];
	void *page;
	char done;

	(void)state;
	for (int i = 0; i < PEERS; i++)
		sockets[i] = start_peer(&pids[i]);
	for (int i = 0; i < PEERS; i++) {
		rig_end_make(&ends[i], &three);
		rig_end_state(&ends[i], &three, IBV_QPS_INIT);
	}
	assert_int_equal(soft_page_make(ends[0].context, &fd, &page), 0);
	words = page;
	for (int i = 0; i < PEERS; i++) {
		struct loan mine = { 0 }, peer;
		int fds[2] = { fd, fd };

		mrs[i] = soft_page_lend(ends[i].pd, page);
		assert_non_null(mrs[i]);
		mine.rkey = mrs[i]->rkey;
		join(&ends[i], sockets[i], &three, &mine, &peer);
		assert_true(fds_send(sockets[i], "", 1, fds));
	}
	while ((uint32_t)(word = words[1]) < PEERS * ADDS)
		swaps += atomic_compare_exchange_strong(&words[1], &word, word + (1ull << 32));
	assert_int_equal(word, swaps << 32 | PEERS * ADDS);
	for (int i = 0; i < PEERS; i++) {
		assert_int_equal(read(sockets[i], &done, 1), 1);
		close(sockets[i]);
		assert_int_equal(waitpid(pids[i], &status, 0), pids[i]);
		assert_int_equal(status, 0);
		assert_int_equal(ends[i].verbs->deregister_mr(mrs[i]), 0);
	}
	soft_page_free(ends[0].context, fd, page);
	for (int i = 0; i < PEERS; i++)
		rig_end_free(&ends[i]);
}

RIG_TABLE(page, cmocka_unit_test(SD_15_a_page_is_shared_by_three_processes),
	  cmocka_unit_test(SD_10_a_page_is_reached_by_atomics),
	  cmocka_unit_test(SD_10_nothing_else_reaches_a_page),
	  cmocka_unit_test(SD_10_a_page_is_not_peeked_at_and_takes_no_sends),
	  cmocka_unit_test(SD_15_a_page_that_was_not_sent_is_refused),
	  cmocka_unit_test(SD_15_bad_pages_are_refused),
	  cmocka_unit_test(SD_15_lies_about_a_page_are_refused),
	  cmocka_unit_test(SD_15_a_page_that_was_taken_back_is_refused),
	  cmocka_unit_test(SD_15_a_page_may_vanish_under_its_peer),
	  cmocka_unit_test(SD_15_a_page_goes_with_its_peer));
