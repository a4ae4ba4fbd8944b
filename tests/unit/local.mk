# Unit tests: one program for each file of core/ that can be tested alone; where no sources are named, there is one.
unit_tests = tests/unit/arena_test tests/unit/channel_test tests/unit/cm_test tests/unit/command_test \
	tests/unit/config_test tests/unit/fault_test tests/unit/gate_test tests/unit/group_test tests/unit/join_test tests/unit/log_test \
	tests/unit/pin_test tests/unit/polling_test tests/unit/private_test tests/unit/trust_test tests/unit/verbs_test tests/unit/window_test
check_PROGRAMS += $(unit_tests)
TESTS += $(unit_tests)

unit_libs = libshuntcore.la $(CMOCKA_LIBS)
tests_unit_arena_test_LDADD = $(unit_libs)
tests_unit_channel_test_LDADD = $(unit_libs)
tests_unit_cm_test_LDADD = $(unit_libs)
tests_unit_command_test_LDADD = $(unit_libs)
tests_unit_config_test_LDADD = $(unit_libs)
tests_unit_fault_test_LDADD = $(unit_libs)
tests_unit_gate_test_LDADD = $(unit_libs)
tests_unit_group_test_LDADD = $(unit_libs)
tests_unit_join_test_LDADD = $(unit_libs)
tests_unit_log_test_LDADD = $(unit_libs)
tests_unit_pin_test_LDADD = $(unit_libs)
tests_unit_polling_test_LDADD = $(unit_libs)
tests_unit_private_test_LDADD = $(unit_libs)
tests_unit_trust_test_LDADD = $(unit_libs)
tests_unit_verbs_test_LDADD = $(unit_libs)
tests_unit_window_test_LDADD = $(unit_libs)

# Real sockets in an engine, for some of them.
unit_sockets = tests/unit/sockets.c tests/unit/sockets.h
tests_unit_channel_test_SOURCES = tests/unit/channel_test.c $(unit_sockets)
tests_unit_gate_test_SOURCES = tests/unit/gate_test.c $(unit_sockets)
tests_unit_join_test_SOURCES = tests/unit/join_test.c $(unit_sockets)
tests_unit_private_test_SOURCES = tests/unit/private_test.c $(unit_sockets)
