/* SPDX-License-Identifier: MIT */
/* Opening the verbs device where there is nothing to open: an error in words, and nothing else. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "core/device/verbs/verbs.h"

static void is_refused(const char *library, int expected, const char *named)
{
	struct verbs_device device;

	assert_int_equal(verbs_library_open(&device, library), expected);
	assert_non_null(strstr(device.error, named));
	assert_null(device.library);
}

static void a_machine_without_the_library(void **state)
{
	(void)state;
	is_refused("libibverbs.so.none", -ENOENT, "libibverbs.so.none");
}

static void a_library_that_lacks_a_call(void **state)
{
	(void)state;
	is_refused("libc.so.6", -ENOSYS, "ibv_alloc_pd");
}

/* With rdma-core or without: this one is not there. */
static void a_device_that_is_not_there(void **state)
{
	struct verbs_device device;
	int result = verbs_open(&device, "no such device", NULL);

	(void)state;
	assert_true(result < 0);
	assert_true(strlen(device.error) > 0);
	assert_null(device.context);
	assert_null(device.library);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_machine_without_the_library),
		cmocka_unit_test(a_library_that_lacks_a_call),
		cmocka_unit_test(a_device_that_is_not_there),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
