# Unit tests: one program for each file of core/ that can be tested alone.
check_PROGRAMS += tests/unit/arena_test tests/unit/channel_test tests/unit/cm_test tests/unit/config_test \
	tests/unit/group_test tests/unit/log_test tests/unit/pin_test tests/unit/polling_test tests/unit/verbs_test \
	tests/unit/window_test
TESTS += tests/unit/arena_test tests/unit/channel_test tests/unit/cm_test tests/unit/config_test \
	tests/unit/group_test tests/unit/log_test tests/unit/pin_test tests/unit/polling_test tests/unit/verbs_test \
	tests/unit/window_test

tests_unit_arena_test_SOURCES = tests/unit/arena_test.c
tests_unit_arena_test_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS)
tests_unit_arena_test_LDADD = libshuntcore.la $(CMOCKA_LIBS)

tests_unit_channel_test_SOURCES = tests/unit/channel_test.c
tests_unit_channel_test_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS)
tests_unit_channel_test_LDADD = libshuntcore.la $(CMOCKA_LIBS)

tests_unit_cm_test_SOURCES = tests/unit/cm_test.c
tests_unit_cm_test_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS)
tests_unit_cm_test_LDADD = libshuntcore.la $(CMOCKA_LIBS)

tests_unit_config_test_SOURCES = tests/unit/config_test.c
tests_unit_config_test_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS)
tests_unit_config_test_LDADD = libshuntcore.la $(CMOCKA_LIBS)

tests_unit_group_test_SOURCES = tests/unit/group_test.c
tests_unit_group_test_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS)
tests_unit_group_test_LDADD = libshuntcore.la $(CMOCKA_LIBS)

tests_unit_log_test_SOURCES = tests/unit/log_test.c
tests_unit_log_test_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS)
tests_unit_log_test_LDADD = libshuntcore.la $(CMOCKA_LIBS)

tests_unit_window_test_SOURCES = tests/unit/window_test.c
tests_unit_window_test_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS)
tests_unit_window_test_LDADD = libshuntcore.la $(CMOCKA_LIBS)

tests_unit_polling_test_SOURCES = tests/unit/polling_test.c
tests_unit_polling_test_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS)
tests_unit_polling_test_LDADD = libshuntcore.la $(CMOCKA_LIBS)

tests_unit_pin_test_SOURCES = tests/unit/pin_test.c
tests_unit_pin_test_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS)
tests_unit_pin_test_LDADD = libshuntcore.la $(CMOCKA_LIBS)

tests_unit_verbs_test_SOURCES = tests/unit/verbs_test.c
tests_unit_verbs_test_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS)
tests_unit_verbs_test_LDADD = libshuntcore.la $(CMOCKA_LIBS)
