/* Does a device keep the rules of RC verbs (FEATURES SD-01…15)? */
#include <stdlib.h>
#include "tests/soft/rig.h"

static void add(struct CMUnitTest *all, size_t *count, const struct CMUnitTest *tests, size_t more)
{
	memcpy(all + *count, tests, more * sizeof(*tests));
	*count += more;
}

/*
 * conform [-m MODEL] [PATTERN]: with the device slowed down by a cost model (as SHUNT_SOFT_MODEL
 * says it), and only the tests of a cmocka pattern, as in `conform 'SD_07*'`.
 */
int main(int argc, char **argv)
{
	struct CMUnitTest all[128];
	size_t count = 0;

	if (argc > 2 && !strcmp(argv[1], "-m")) {
		rig_model = argv[2];
		argc -= 2;
		argv += 2;
	}
	if (argc > 1)
		cmocka_set_test_filter(argv[1]);
	add(all, &count, process_tests, process_count);
	add(all, &count, basic_tests, basic_count);
	add(all, &count, error_tests, error_count);
	add(all, &count, event_tests, event_count);
	add(all, &count, race_tests, race_count);
	add(all, &count, fault_tests, fault_count);
	add(all, &count, hostile_tests, hostile_count);
	add(all, &count, thread_tests, thread_count);
	add(all, &count, model_tests, model_count);
	add(all, &count, shape_tests, shape_count);
	return _cmocka_run_group_tests("soft", all, count, NULL, NULL);
}
