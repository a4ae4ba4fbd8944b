/* SPDX-License-Identifier: MIT */
/* A shared page on an RDMA device whose atomics are its own: the owner goes through a queue pair to itself. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "core/device/device.h"
#include "core/device/page.h"
#include "core/device/page_verbs.h"
#include "core/device/device.h"
#include "core/fd/own_fds.h"

/* --- a device: it carries out what is posted when it is polled --- */

static struct {
	int objects;		/* that exist */
	int fail_at;		/* the object that cannot be made, from 1 on; 0: none */
	bool mute;		/* nothing completes */
	enum ibv_wc_status status;
	int access;		/* of the last region of a page */
	int joined;		/* queue pairs that were connected to themselves */
	int posts;
	struct ibv_send_wr wr;
	struct ibv_sge sge;
	bool posted;
} fake;
static uint64_t clock_ns;
static struct ibv_device stand_in = { .name = "stand-in" };
static struct ibv_context context = { .device = &stand_in };
static struct ibv_pd pd;
static struct ibv_cq cq;
static struct ibv_qp qp;
static struct ibv_mr mrs[8];

static uint64_t fake_now(void)
{
	return clock_ns += 1000000;
}

static bool make(void)
{
	if (fake.fail_at && !--fake.fail_at)
		return false;
	fake.objects++;
	return true;
}

static int unmake(void)
{
	fake.objects--;
	return 0;
}

static struct ibv_pd *alloc_pd(struct ibv_context *of)
{
	(void)of;
	return make() ? &pd : NULL;
}

static int dealloc_pd(struct ibv_pd *of)
{
	(void)of;
	return unmake();
}

static struct ibv_mr *register_mr(struct ibv_pd *of, void *addr, size_t length, int access)
{
	struct ibv_mr *mr = &mrs[fake.objects % 8];

	if (!make()) {
		errno = ENOMEM;
		return NULL;
	}
	if (length == SHUNT_PAGE_BYTES)
		fake.access = access;
	*mr = (struct ibv_mr) { .pd = of, .addr = addr, .length = length, .rkey = 77, .lkey = 78 };
	return mr;
}

static int deregister_mr(struct ibv_mr *mr)
{
	(void)mr;
	return unmake();
}

static struct ibv_cq *create_cq(struct ibv_context *of, int cqe, void *owner,
				struct ibv_comp_channel *channel, int vector)
{
	(void)of, (void)cqe, (void)owner, (void)channel, (void)vector;
	return make() ? &cq : NULL;
}

static int destroy_cq(struct ibv_cq *of)
{
	(void)of;
	return unmake();
}

static struct ibv_qp *create_qp(struct ibv_pd *of, struct ibv_qp_init_attr *init)
{
	(void)of, (void)init;
	return make() ? &qp : NULL;
}

static int modify_qp(struct ibv_qp *of, struct ibv_qp_attr *attr, int mask)
{
	(void)of, (void)mask;
	assert_int_equal(attr->qp_access_flags, IBV_ACCESS_REMOTE_ATOMIC);
	return 0;
}

static int destroy_qp(struct ibv_qp *of)
{
	(void)of;
	return unmake();
}

static int post_send(struct ibv_qp *of, struct ibv_send_wr *wr, struct ibv_send_wr **bad)
{
	(void)of, (void)bad;
	assert_false(fake.posted);
	fake.posts++;
	fake.wr = *wr;
	fake.sge = wr->sg_list[0];
	fake.posted = true;
	return 0;
}

static int poll_cq(struct ibv_cq *of, int room, struct ibv_wc *wc)
{
	uint64_t *word = (uint64_t *)(uintptr_t)fake.wr.wr.atomic.remote_addr;
	uint64_t before;

	(void)of, (void)room;
	if (!fake.posted || fake.mute)
		return 0;
	fake.posted = false;
	before = *word;
	assert_int_equal(fake.wr.opcode, IBV_WR_ATOMIC_CMP_AND_SWP);
	if (before == fake.wr.wr.atomic.compare_add)
		*word = fake.wr.wr.atomic.swap;
	memcpy((void *)(uintptr_t)fake.sge.addr, &before, sizeof(before));
	*wc = (struct ibv_wc) { .wr_id = fake.wr.wr_id, .status = fake.status };
	return 1;
}

/* The filter of faults knows lanes alone. */
static int filtered_post(struct ibv_qp *of, struct ibv_send_wr *wr, struct ibv_send_wr **bad)
{
	(void)of, (void)wr, (void)bad;
	fail();
	return -1;
}

static int tell(struct shunt_device *device, struct ibv_qp *of, void *address, int fds[2])
{
	(void)device, (void)of, (void)fds;
	memset(address, 9, SHUNT_ADDRESS_BYTES);
	return 0;
}

static int join(struct shunt_device *device, struct ibv_qp *of, const struct shunt_path *path,
		const void *address, const int *fds, int count)
{
	(void)device, (void)of, (void)path, (void)fds;
	assert_int_equal(*(const uint8_t *)address, 9);
	assert_int_equal(count, 0);
	fake.joined++;
	return 0;
}

static const struct shunt_verbs verbs = {
	.alloc_pd = alloc_pd, .dealloc_pd = dealloc_pd, .register_mr = register_mr, .deregister_mr = deregister_mr,
	.create_cq = create_cq, .destroy_cq = destroy_cq, .create_qp = create_qp, .modify_qp = modify_qp,
	.destroy_qp = destroy_qp,
};
static const struct shunt_device_kind kind = {
	.tell = tell, .join = join, .make_page = shunt_page_verbs_make, .free_page = shunt_page_verbs_free,
	.lend_page = shunt_page_verbs_lend, .reach_page = shunt_page_verbs_reach,
};
static struct shunt_fds fds;
static struct shunt_loop loop = { .fds = &fds };

static struct shunt_device device_with(enum ibv_atomic_cap cap, int reads)
{
	static struct shunt_sys sys;

	memset(&fake, 0, sizeof(fake));
	sys.now = fake_now;
	fds.sys = &sys;
	context.ops.post_send = post_send;
	context.ops.poll_cq = poll_cq;
	return (struct shunt_device) { .kind = &kind, .verbs = &verbs, .context = &context, .loop = &loop,
				       .limits = { .atomic_cap = cap, .max_qp_rd_atom = reads } };
}

static void exercise(struct shunt_page *page)
{
	uint64_t expected = 0;

	assert_int_equal(shunt_page_load(page, 511), 0);
	assert_int_equal(shunt_page_cas(page, 511, &expected, 40), 0);
	assert_int_equal(expected, 0);
	expected = 40;
	assert_int_equal(shunt_page_cas(page, 511, &expected, 7), 0);
	assert_int_equal(expected, 40);
	assert_int_equal(shunt_page_cas(page, 511, &expected, 9), 0);
	assert_int_equal(expected, 7);
	assert_int_equal(shunt_page_load(page, 511), 7);
	assert_int_equal(shunt_page_load(page, 0), 0);
}

static void the_device_does_its_owners_atomics(void **state)
{
	struct shunt_device device = device_with(IBV_ATOMIC_HCA, 16);
	struct shunt_page page;

	(void)state;
	assert_int_equal(shunt_page_make(&device, &page), 0);
	assert_int_equal(page.fd, -1);
	assert_int_equal(fake.joined, 1);
	exercise(&page);
	assert_int_equal(fake.posts, 3);
	shunt_page_free(&page);
	assert_int_equal(fake.objects, 0);
	assert_null(page.device);
	shunt_page_free(&page);
}

static void the_cpu_does_where_it_may(void **state)
{
	struct shunt_device device = device_with(IBV_ATOMIC_GLOB, 16);
	struct shunt_page page;

	(void)state;
	assert_int_equal(shunt_page_make(&device, &page), 0);
	exercise(&page);
	assert_int_equal(fake.posts, 0);
	shunt_page_free(&page);
	assert_int_equal(fake.objects, 0);
}

static void no_atomics_no_page(void **state)
{
	struct shunt_device device = device_with(IBV_ATOMIC_NONE, 16);
	struct shunt_page page;

	(void)state;
	assert_int_equal(shunt_page_make(&device, &page), -EOPNOTSUPP);
	assert_int_equal(shunt_page_access(&device.limits), 0);
	device = device_with(IBV_ATOMIC_HCA, 0);
	assert_int_equal(shunt_page_make(&device, &page), -EOPNOTSUPP);
	shunt_page_free(&page);
	device = device_with(IBV_ATOMIC_HCA, 1);
	assert_int_equal(shunt_page_access(&device.limits), IBV_ACCESS_REMOTE_ATOMIC);
}

static void a_loan_is_for_atomics_alone(void **state)
{
	struct shunt_device device = device_with(IBV_ATOMIC_GLOB, 16);
	struct shunt_page_loan loan = { .mr = NULL };
	struct shunt_page page;
	int fd = 0;

	(void)state;
	assert_int_equal(shunt_page_make(&device, &page), 0);
	assert_int_equal(shunt_page_lend(&page, &pd, &loan), 0);
	assert_int_equal(fake.access, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_ATOMIC);
	assert_int_equal(loan.rkey, 77);
	assert_int_equal(loan.address, (uintptr_t)page.words);
	assert_int_equal(shunt_page_reach(&device, &qp, NULL, 0), 0);
	assert_int_equal(shunt_page_reach(&device, &qp, &fd, 1), -EPROTO);
	shunt_page_take_back(&page, &loan);
	shunt_page_take_back(&page, &loan);
	assert_int_equal(fake.objects, 0);
	fake.fail_at = 1;
	assert_int_equal(shunt_page_lend(&page, &pd, &loan), -ENOMEM);
	assert_null(loan.mr);
	shunt_page_free(&page);
}

static void what_cannot_be_made_is_undone(void **state)
{
	struct shunt_device device = device_with(IBV_ATOMIC_HCA, 16);
	struct shunt_page page;

	(void)state;
	for (int at = 1; at <= 5; at++) {
		fake.fail_at = at;
		assert_int_equal(shunt_page_make(&device, &page), -ENOMEM);
		assert_int_equal(fake.objects, 0);
		assert_null(page.device);
	}
	fake.fail_at = 6;
	assert_int_equal(shunt_page_make(&device, &page), 0);
	shunt_page_free(&page);
}

/* Once an atomic is not answered, no later completion is mistaken for another's. */
static void a_device_that_does_not_answer(void **state)
{
	struct shunt_device device = device_with(IBV_ATOMIC_HCA, 16);
	struct shunt_page page;
	uint64_t before = 5;

	(void)state;
	assert_int_equal(shunt_page_make(&device, &page), 0);
	fake.mute = true;
	assert_int_equal(shunt_page_cas(&page, 0, &before, 1), -EIO);
	fake.mute = false;
	assert_int_equal(shunt_page_cas(&page, 0, &before, 1), -EIO);
	assert_int_equal(before, 5);
	assert_int_equal(fake.posts, 1);
	shunt_page_free(&page);
	device = device_with(IBV_ATOMIC_HCA, 16);
	assert_int_equal(shunt_page_make(&device, &page), 0);
	fake.status = IBV_WC_RETRY_EXC_ERR;
	assert_int_equal(shunt_page_cas(&page, 0, &before, 1), -EIO);
	assert_int_equal(before, 5);
	shunt_page_free(&page);
}

static void faults_are_for_lanes(void **state)
{
	struct shunt_device device = device_with(IBV_ATOMIC_HCA, 16);
	struct shunt_page page;

	(void)state;
	device.post_send = post_send;
	device.poll_cq = poll_cq;
	context.ops.post_send = filtered_post;
	assert_int_equal(shunt_page_make(&device, &page), 0);
	exercise(&page);
	shunt_page_free(&page);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_device_does_its_owners_atomics),
		cmocka_unit_test(the_cpu_does_where_it_may),
		cmocka_unit_test(no_atomics_no_page),
		cmocka_unit_test(a_loan_is_for_atomics_alone),
		cmocka_unit_test(what_cannot_be_made_is_undone),
		cmocka_unit_test(a_device_that_does_not_answer),
		cmocka_unit_test(faults_are_for_lanes),
	};

	return cmocka_run_group_tests_name("page", tests, NULL, NULL);
}
