/* SPDX-License-Identifier: MIT */
/* Does a device keep the rules of RC verbs (FEATURES SD-01…15)? */
#include <stdio.h>
#include <stdlib.h>
#include "tests/soft/rig.h"

static struct CMUnitTest all[160];
static size_t count;

static void left_out(void **state)
{
	(void)state;
	skip();
}

/* Strangers give no pages back, and share no eventfd. */
static bool is_for_trusted_ends(const char *test)
{
	return !strcmp(test, "SD_15_wake_must_be_a_nonblocking_eventfd") ||
	       !strcmp(test, "SD_15_discarded_memory_reads_as_zero") ||
	       !strcmp(test, "SD_15_no_eventfd_of_a_stranger");
}

/* `why`: NULL, or why all of them are for the soft device alone. */
static void add(const struct CMUnitTest *tests, size_t more, const char *why)
{
	for (size_t i = 0; i < more; i++) {
		const char *reason = why ? why : rig_left_out(tests[i].name);

		all[count] = tests[i];
		if (rig_device->real && reason) {
			printf("# left out: %s: %s\n", tests[i].name, reason);
			all[count].test_func = left_out;
		}
		if (rig_device == &rig_apart && is_for_trusted_ends(tests[i].name))
			all[count].test_func = left_out;
		count++;
	}
}

static void wrong(const char *what, const char *name)
{
	fprintf(stderr, "conform: there is %s %s\n", what, name);
	exit(2);
}

/* "soft", "apart", "verbs", "verbs:NAME" or "verbs:NAME,NAME" */
static void choose_device(const char *name)
{
	if (!strncmp(name, "verbs", 5) && (!name[5] || name[5] == ':')) {
		rig_device = &rig_verbs;
		rig_verbs_name = name[5] ? name + 6 : NULL;
	} else if (!strcmp(name, "apart")) {
		rig_device = &rig_apart;
	} else if (strcmp(name, "soft")) {
		wrong("no device", name);
	}
}

/*
 * conform [--device soft|apart|verbs[:NAME[,NAME]]] [-m MODEL] [PATTERN]: tests of a device (or $RIG_DEVICE). With -m the
 * soft one is slowed down by a cost model (as SHUNT_SOFT_MODEL says it). PATTERN, as in `conform 'SD_07*'`, chooses
 * the tests, by cmocka's rules. Tests that match the pattern $RIG_SKIP are left out.
 */
int main(int argc, char **argv)
{
	if (getenv("RIG_DEVICE"))
		choose_device(getenv("RIG_DEVICE"));
	for (; argc > 2 && argv[1][0] == '-'; argc -= 2, argv += 2) {
		if (!strcmp(argv[1], "-m"))
			rig_model = argv[2];
		else if (!strcmp(argv[1], "--device"))
			choose_device(argv[2]);
		else
			wrong("no option", argv[1]);
	}
	if (rig_device->real && *rig_model)
		wrong("no model of", rig_device->name);
	if (argc > 1)
		cmocka_set_test_filter(argv[1]);
	if (getenv("RIG_SKIP"))
		cmocka_set_skip_filter(getenv("RIG_SKIP"));
	setvbuf(stdout, NULL, _IOLBF, 0);
	add(process_tests, process_count, NULL);
	add(basic_tests, basic_count, NULL);
	add(error_tests, error_count, NULL);
	add(event_tests, event_count, NULL);
	add(race_tests, race_count, NULL);
	add(fault_tests, fault_count, "faults are injected into the soft device");
	add(hostile_tests, hostile_count, "only the soft device shares memory with its peer");
	add(waiter_tests, waiter_count, "only the soft device has waiters");
	add(page_tests, page_count, "a page of a real device is registered memory, as any");
	add(thread_tests, thread_count, NULL);
	add(model_tests, model_count, "the cost model is the soft device's");
	add(sink_tests, sink_count, "the cost model is the soft device's");
	add(shape_tests, shape_count, "the cost model is the soft device's");
	return _cmocka_run_group_tests(rig_device->name, all, count, NULL, NULL);
}
