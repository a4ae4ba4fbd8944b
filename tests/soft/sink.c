/* SPDX-License-Identifier: MIT */
/* The cost model's node at the other end, which contexts share by a file (SD-04); rig_clock is all the time there is. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>
#include "tests/soft/rig.h"

enum { MODEL = 2 * SOFT_SINKFILE };

static char folder[] = "/tmp/shunt-sink.XXXXXX";

static void in_scratch(const char *name, char path[SOFT_SINKFILE])
{
	snprintf(path, SOFT_SINKFILE, "%s/%s", folder, name);
}

static int make_scratch(void **state)
{
	(void)state;
	snprintf(folder, sizeof(folder), "/tmp/shunt-sink.XXXXXX");
	return mkdtemp(folder) ? 0 : -1;
}

static int remove_scratch(void **state)
{
	char path[SOFT_SINKFILE];

	(void)state;
	in_scratch("file", path);
	unlink(path);
	in_scratch("link", path);
	unlink(path);
	return rmdir(folder);
}

static uint32_t complete_by(struct rig *rig, uint64_t when, uint32_t most)
{
	struct ibv_wc wc;
	uint32_t count = 0;

	rig_clock = when;
	while (count < most && ibv_poll_cq(rig->a.send_cq, 1, &wc) == 1)
		count++;
	return count;
}

static void SD_04_a_node_takes_its_time_for_each_4_kib(void **state)
{
	struct rig *rig = rig_modelled("sink=100,wqe=10");
	uint64_t start = rig_clock;

	(void)state;
	rig_post_chain(rig, 1, 1, 4096);
	rig_post_chain(rig, 2, 1, 4097);
	rig_post_chain(rig, 3, 1, 8); /* takes nothing, and does not overtake */
	rig_expect_at(rig, start, 100, 1);
	rig_expect_at(rig, start, 300, 2);
	rig_expect(rig->a.send_cq, 3, IBV_WC_SUCCESS);
	start = rig_clock += 1000;
	rig_post_chain(rig, 4, 1, 9);
	rig_expect_at(rig, start, 100, 4);
	rig_free(rig);
}

/* The same at the sender's NIC, beside what each WR takes there. */
static void SD_04_a_nic_takes_its_time_for_each_4_kib(void **state)
{
	struct rig *rig = rig_modelled("block=100,wqe=10");
	uint64_t start = rig_clock;

	(void)state;
	rig_post_chain(rig, 1, 1, 4096);
	rig_post_chain(rig, 2, 1, 4097);
	rig_post_chain(rig, 3, 1, 8);
	rig_expect_at(rig, start, 110, 1);
	rig_expect_at(rig, start, 320, 2);
	rig_expect_at(rig, start, 330, 3);
	rig_free(rig);
}

/* A client that posts as much as another has as much, a step of the node's capacity is both's. */
static void SD_04_clients_share_a_node(void **state)
{
	char path[SOFT_SINKFILE], model[MODEL];
	struct rig *one, *two;
	uint64_t extra = 300, start;
	int fd;

	(void)state;
	in_scratch("file", path);
	snprintf(model, sizeof(model), "sink=100,sinkfile=%s", path);
	one = rig_modelled(model);
	two = rig_modelled(model);
	start = rig_clock;
	for (uint64_t i = 0; i < 16; i++) {
		rig_post_chain(one, i, 1, 4096);
		rig_post_chain(two, i, 1, 4096);
	}
	assert_int_equal(complete_by(one, start + 1600, 16), 8);
	assert_int_equal(complete_by(two, start + 1600, 16), 8);
	assert_int_equal(complete_by(one, start + 3200, 16), 8);
	assert_int_equal(complete_by(two, start + 3200, 16), 8);

	fd = open(path, O_RDWR | O_CLOEXEC);
	assert_int_equal(pwrite(fd, &extra, sizeof(extra), sizeof(extra)), sizeof(extra));
	for (uint64_t i = 0; i < 4; i++) {
		rig_post_chain(one, i, 1, 4096);
		rig_post_chain(two, i, 1, 4096);
	}
	assert_int_equal(complete_by(one, start + 4800, 16), 2);
	assert_int_equal(complete_by(two, start + 4800, 16), 2);
	assert_int_equal(complete_by(one, start + 6400, 16), 2);
	assert_int_equal(complete_by(two, start + 6400, 16), 2);

	extra = 0;
	assert_int_equal(pwrite(fd, &extra, sizeof(extra), sizeof(extra)), sizeof(extra));
	rig_post_chain(one, 1, 1, 4096);
	assert_int_equal(complete_by(one, start + 6500, 16), 1);

	extra = UINT64_MAX; /* of another clock: nobody waits for it */
	assert_int_equal(pwrite(fd, &extra, sizeof(extra), 0), sizeof(extra));
	rig_post_chain(one, 1, 1, 4096);
	assert_int_equal(complete_by(one, start + 6600, 16), 1);
	close(fd);
	rig_free(one);
	rig_free(two);
}

/* The buffer before a node is that of all its senders (XR-E5): a quiet one is paused for what another has sent. */
static void XR_E5_senders_of_a_node_share_its_buffer(void **state)
{
	char path[SOFT_SINKFILE], model[MODEL];
	struct soft_gauges gauges[2];
	struct rig *one, *two;
	uint64_t start;

	(void)state;
	in_scratch("file", path);
	snprintf(model, sizeof(model), "sink=100,queue=16K,pause=1000,sinkfile=%s", path);
	one = rig_modelled(model);
	two = rig_modelled(model);
	start = rig_clock;
	rig_post_chain(one, 1, 3, 4096); /* 12 KiB */
	rig_post_chain(two, 1, 1, 4096); /* 16 KiB: the buffer is full */
	rig_post_chain(two, 2, 1, 4096); /* beyond it: its NIC stands still for 1000 */
	assert_int_equal(complete_by(one, start + 300, 16), 3);
	assert_int_equal(complete_by(two, start + 500, 16), 1);
	assert_int_equal(complete_by(two, start + 999, 16), 0);
	assert_int_equal(complete_by(two, start + 1000, 16), 1);
	rig_post_chain(two, 3, 4, 4096); /* it is empty again */
	assert_int_equal(complete_by(two, start + 1400, 16), 4);
	soft_read_gauges(one->a.context, &gauges[0]);
	soft_read_gauges(two->a.context, &gauges[1]);
	assert_int_equal(gauges[0].pauses, 0);
	assert_int_equal(gauges[1].pauses, 1);
	rig_free(one);
	rig_free(two);
}

static int open_with(const char *path)
{
	struct soft_attr attr = { .model = { .on = 1, .sink = 1 } };
	const struct shunt_verbs *verbs;
	struct ibv_context *context;

	snprintf(attr.model.sinkfile, sizeof(attr.model.sinkfile), "%s", path);
	context = soft_open(&attr, &verbs);
	if (!context)
		return errno;
	soft_close(context);
	return 0;
}

static void SD_04_only_a_file_of_ones_own_is_a_node(void **state)
{
	char path[SOFT_SINKFILE], link[SOFT_SINKFILE];
	struct stat stat_of;

	(void)state;
	in_scratch("file", path);
	in_scratch("link", link);
	assert_int_equal(open_with(path), 0);
	assert_int_equal(stat(path, &stat_of), 0);
	assert_int_equal(stat_of.st_mode & 07777, 0600);
	assert_int_equal(stat_of.st_size, 4096);
	assert_int_equal(open_with(path), 0);
	assert_int_equal(symlink(path, link), 0);
	assert_int_equal(open_with(link), ELOOP);
	unlink(link);
	assert_int_equal(mkfifo(link, 0600), 0);
	assert_int_equal(open_with(link), EPERM);
	unlink(link);
	assert_int_equal(truncate(path, 8), 0);
	assert_int_equal(open_with(path), EINVAL);
}

RIG_TABLE(sink, cmocka_unit_test(SD_04_a_node_takes_its_time_for_each_4_kib),
	  cmocka_unit_test(SD_04_a_nic_takes_its_time_for_each_4_kib),
	  cmocka_unit_test_setup_teardown(SD_04_clients_share_a_node, make_scratch, remove_scratch),
	  cmocka_unit_test_setup_teardown(XR_E5_senders_of_a_node_share_its_buffer, make_scratch,
					  remove_scratch),
	  cmocka_unit_test_setup_teardown(SD_04_only_a_file_of_ones_own_is_a_node, make_scratch,
					  remove_scratch));
