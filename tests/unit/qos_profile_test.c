/* SPDX-License-Identifier: MIT */
/* The profile of a device: the soft device, by a clock that goes on with each look at it. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>
#include <cmocka.h>
#include "core/device/device.h"
#include "core/device/fault.h"
#include "core/engine.h"
#include "core/poll/devices.h"
#include "core/qos/profile.h"

#define US 1000ull
#define UNSET 4711

static _Atomic uint64_t clock_ns;
static uint64_t step_ns; /* of the clock, for each look at it */
static int jump_after; /* looks, and then it goes on by 3 ms */
static bool no_descriptors;

static uint64_t now(void)
{
	uint64_t step = step_ns;

	if (jump_after && !--jump_after)
		step += 3000 * US;
	return atomic_fetch_add(&clock_ns, step) + step;
}

static int control(int fd, int command, ...)
{
	va_list arguments;
	int value;

	va_start(arguments, command);
	value = va_arg(arguments, int);
	va_end(arguments);
	if (no_descriptors && command == F_DUPFD_CLOEXEC) {
		errno = EMFILE;
		return -1;
	}
	return fcntl(fd, command, value);
}

static const struct shunt_sys sys = {
	.now = now,
	.fcntl = control,
	.close = close,
	.read = read,
	.write = write,
	.epoll_create1 = epoll_create1,
	.epoll_ctl = epoll_ctl,
	.yield = sched_yield,
};

/* --- an engine with a device --- */

static struct shunt_config config;
static struct shunt_engine *engine;
static struct shunt_device *device;
static uint64_t mean, sigma;

static void open_device(const char *model, bool thread)
{
	snprintf(config.soft_model, sizeof(config.soft_model), "%s", model);
	config.sq_depth = config.rq_depth = 64;
	config.cqs = 1;
	if (!engine)
		engine = shunt_engine_create(&config, &sys);
	assert_non_null(engine);
	engine->config = config;
	engine->loop.manual = !thread;
	step_ns = 100 * US;
	mean = sigma = UNSET;
	device = shunt_devices_open(&engine->group, SHUNT_SOFT);
	assert_non_null(device);
}

static int close_device(void **state)
{
	(void)state;
	shunt_devices_close(&engine->group);
	return 0;
}

/* --- what is there --- */

static int descriptors(void)
{
	int count = 0;

	for (int fd = 0; fd < 65536; fd++)
		count += fcntl(fd, F_GETFD) >= 0;
	return count;
}

static int mappings(void)
{
	FILE *maps = fopen("/proc/self/maps", "re");
	char line[512];
	int count = 0;

	assert_non_null(maps);
	while (fgets(line, sizeof(line), maps))
		count += strstr(line, "memfd:shunt") != NULL;
	fclose(maps);
	return count;
}

/* Nothing is left of it, and where it fails nothing is said. */
static int profile(void)
{
	int fds = descriptors(), maps = mappings(), result = shunt_profile(device, &mean, &sigma);

	assert_int_equal(descriptors(), fds);
	assert_int_equal(mappings(), maps);
	if (result) {
		assert_int_equal(mean, UNSET);
		assert_int_equal(sigma, UNSET);
	}
	return result;
}

/* --- rates --- */

/* Four queue pairs have 32 WRs each carried out at once, between two looks at the clock. */
static void rate_is_in_thousandths(void **state)
{
	(void)state;
	open_device("", false);
	assert_int_equal(profile(), 0);
	assert_int_equal(mean, 1280000000);
	assert_int_equal(sigma, 0);
}

/* A sample is ten looks, and the first one is of warm-up. */
static void interruption_is_no_measure(void **state)
{
	(void)state;
	open_device("", false);
	jump_after = 55;
	assert_int_equal(profile(), 0);
	assert_int_equal(jump_after, 0);
	assert_int_equal(mean, 1280000000);
	assert_int_equal(sigma, 0);
}

static void is_near(uint64_t value, uint64_t expected)
{
	assert_in_range(value, expected - expected / 50, expected + expected / 50);
}

/* Without a thread the device looks at the clock, too, for each WR. */
#define FINE 20

/* A WR takes the modelled device 1 us, and then the node 2 us. */
static void modelled_device_is_measured(void **state)
{
	(void)state;
	open_device("wqe=1000", false);
	step_ns = FINE;
	assert_int_equal(profile(), 0);
	is_near(mean, 1000000000);
	close_device(NULL);
	open_device("wqe=1000,sink=2000,qp=1500", false);
	step_ns = FINE;
	assert_int_equal(profile(), 0);
	is_near(mean, 500000000);
}

/* One queue pair alone would have 400,000 a second of it. */
static void queue_pairs_work_side_by_side(void **state)
{
	(void)state;
	open_device("wqe=1000,qp=2500", false);
	step_ns = FINE;
	assert_int_equal(profile(), 0);
	is_near(mean, 1000000000);
}

/* The device has a thread, so the clock does not say how far that is. */
static void device_with_a_thread_leaves_nothing(void **state)
{
	int result;

	(void)state;
	open_device("connectx3", true);
	step_ns = US;
	result = profile();
	assert_true(!result || result == -ETIMEDOUT);
}

/* --- time --- */

static void four_samples_are_enough(void **state)
{
	(void)state;
	open_device("", false);
	step_ns = 3500 * US;
	assert_int_equal(profile(), 0);
	assert_int_equal(sigma, 0);
	mean = sigma = UNSET;
	step_ns = 4100 * US;
	assert_int_equal(profile(), -ETIMEDOUT);
}

static void clock_may_stand_still(void **state)
{
	(void)state;
	open_device("", false);
	step_ns = 0;
	assert_int_equal(profile(), -ETIMEDOUT);
	step_ns = 1; /* it creeps */
	assert_int_equal(profile(), -ETIMEDOUT);
	close_device(NULL);
	open_device("connectx3", false);
	step_ns = 0;
	assert_int_equal(profile(), -ETIMEDOUT);
}

/* --- a device that fails --- */

static int (*real_poll)(struct ibv_cq *cq, int room, struct ibv_wc *wc);

static int poll_nothing(struct ibv_cq *cq, int room, struct ibv_wc *wc)
{
	(void)cq, (void)room, (void)wc;
	return 0;
}

static int poll_fails(struct ibv_cq *cq, int room, struct ibv_wc *wc)
{
	(void)cq, (void)room, (void)wc;
	return -1;
}

static int poll_errors(struct ibv_cq *cq, int room, struct ibv_wc *wc)
{
	int count = real_poll(cq, room, wc);

	if (count > 0)
		wc[0].status = IBV_WC_RETRY_EXC_ERR;
	return count;
}

static int post_nothing(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad)
{
	(void)qp;
	*bad = wr;
	return ENOMEM;
}

static void silence_and_errors_end_it(void **state)
{
	struct ibv_context_ops *ops, kept;

	(void)state;
	open_device("", false);
	ops = &device->context->ops;
	kept = *ops;
	real_poll = kept.poll_cq;
	ops->poll_cq = poll_nothing;
	assert_int_equal(profile(), -ETIMEDOUT);
	ops->poll_cq = poll_fails;
	assert_int_equal(profile(), -EIO);
	ops->poll_cq = poll_errors;
	assert_int_equal(profile(), -EIO);
	*ops = kept;
	ops->post_send = post_nothing;
	assert_int_equal(profile(), -EIO);
	*ops = kept;
	assert_int_equal(profile(), 0);
}

/* The filter would look for a lane that does not exist. */
static void faults_are_for_lanes(void **state)
{
	struct ibv_context_ops *ops, kept;

	(void)state;
	open_device("", false);
	ops = &device->context->ops;
	kept = *ops;
	device->post_send = kept.post_send;
	device->poll_cq = kept.poll_cq;
	ops->post_send = post_nothing;
	ops->poll_cq = poll_fails;
	assert_int_equal(profile(), 0);
	*ops = kept;
	device->post_send = NULL;
	device->poll_cq = NULL;
}

/* --- something cannot be made --- */

static const struct shunt_verbs *verbs;
static int fail_at; /* the call that fails, from 1 on; 0: none */

static bool fails(void)
{
	return fail_at && !--fail_at;
}

static struct ibv_pd *alloc_pd(struct ibv_context *context)
{
	return fails() ? NULL : verbs->alloc_pd(context);
}

static struct ibv_cq *create_cq(struct ibv_context *context, int cqe, void *owner,
				struct ibv_comp_channel *channel, int vector)
{
	return fails() ? NULL : verbs->create_cq(context, cqe, owner, channel, vector);
}

static struct ibv_mr *register_mr(struct ibv_pd *pd, void *addr, size_t length, int access)
{
	return fails() ? NULL : verbs->register_mr(pd, addr, length, access);
}

static struct ibv_qp *create_qp(struct ibv_pd *pd, struct ibv_qp_init_attr *attr)
{
	return fails() ? NULL : verbs->create_qp(pd, attr);
}

static int modify_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask)
{
	return fails() ? EINVAL : verbs->modify_qp(qp, attr, mask);
}

static void *no_arena(struct shunt_device *of, struct ibv_pd *pd, size_t *bytes)
{
	(void)of, (void)pd, (void)bytes;
	return NULL;
}

static void *small_arena(struct shunt_device *of, struct ibv_pd *pd, size_t *bytes)
{
	void *arena = shunt_device_soft.make_arena(of, pd, bytes);

	*bytes = 4096;
	return arena;
}

static int tell_fails(struct shunt_device *of, struct ibv_qp *qp, void *address, int fds[2])
{
	(void)of, (void)qp, (void)address, (void)fds;
	return -EMFILE;
}

/* A domain, a CQ, a region, four queue pairs, and each of those goes through three states. */
static void failing_calls_leave_nothing(void **state)
{
	struct shunt_verbs failing;
	int at = 0, result;

	(void)state;
	open_device("", false);
	verbs = device->verbs;
	failing = *verbs;
	failing.alloc_pd = alloc_pd;
	failing.create_cq = create_cq;
	failing.register_mr = register_mr;
	failing.create_qp = create_qp;
	failing.modify_qp = modify_qp;
	device->verbs = &failing;
	do {
		fail_at = ++at;
		result = profile();
		if (result)
			assert_int_equal(result, at <= 7 ? -ENOMEM : -EIO);
	} while (result);
	assert_int_equal(at, 20);
	device->verbs = verbs;
}

static void kind_that_refuses(void **state)
{
	struct shunt_device_kind refusing = shunt_device_soft;

	(void)state;
	open_device("", false);
	device->kind = &refusing;
	refusing.make_arena = no_arena;
	assert_int_equal(profile(), -ENOMEM);
	refusing.make_arena = small_arena;
	assert_int_equal(profile(), -ENOMEM);
	refusing = shunt_device_soft;
	refusing.tell = tell_fails;
	assert_int_equal(profile(), -EMFILE);
	device->kind = &shunt_device_soft;
	device->limits.max_qp_wr = 1;
	assert_int_equal(profile(), -EOPNOTSUPP);
	device->limits.max_qp_wr = 5; /* chains of two */
	assert_int_equal(profile(), 0);
	assert_int_equal(mean, 160000000);
}

static void denials_leave_nothing(void **state)
{
	(void)state;
	open_device("", false);
	no_descriptors = true;
	assert_int_equal(profile(), -ENOMEM);
	no_descriptors = false;
	shunt_fault_set_memory("deny:what=mr,nth=1");
	assert_int_equal(profile(), -ENOMEM);
	shunt_fault_set_memory("");
	assert_int_equal(profile(), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(rate_is_in_thousandths, close_device),
		cmocka_unit_test_teardown(interruption_is_no_measure, close_device),
		cmocka_unit_test_teardown(modelled_device_is_measured, close_device),
		cmocka_unit_test_teardown(queue_pairs_work_side_by_side, close_device),
		cmocka_unit_test_teardown(device_with_a_thread_leaves_nothing, close_device),
		cmocka_unit_test_teardown(four_samples_are_enough, close_device),
		cmocka_unit_test_teardown(clock_may_stand_still, close_device),
		cmocka_unit_test_teardown(silence_and_errors_end_it, close_device),
		cmocka_unit_test_teardown(faults_are_for_lanes, close_device),
		cmocka_unit_test_teardown(failing_calls_leave_nothing, close_device),
		cmocka_unit_test_teardown(kind_that_refuses, close_device),
		cmocka_unit_test_teardown(denials_leave_nothing, close_device),
	};

	return cmocka_run_group_tests_name("qos_profile", tests, NULL, NULL);
}
