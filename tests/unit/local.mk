# SPDX-License-Identifier: MIT
# Unit tests: one program for each file of core/ that can be tested alone; where no sources are named, there is one.
unit_tests = tests/unit/advice_test tests/unit/verdict_test tests/unit/anonymous_test tests/unit/arena_test tests/unit/channel_test tests/unit/cm_test tests/unit/command_test \
	tests/unit/conf_test tests/unit/config_test tests/unit/copy_test tests/unit/directory_test tests/unit/directory_owner_test tests/unit/directory_words_test tests/unit/end_test tests/unit/heading_test tests/unit/intake_test tests/unit/claim_test tests/unit/fault_test tests/unit/files_test tests/unit/fork_door_test tests/unit/fork_rest_test tests/unit/seat_test tests/unit/loading_test tests/unit/group_test \
	tests/unit/lock_check_test tests/unit/histogram_test tests/unit/hmac_test tests/unit/hw_counters_test tests/unit/imm_test tests/unit/invite_test tests/unit/iwarp_test tests/unit/keyfile_test tests/unit/listener_worker_test tests/unit/log_line_test tests/unit/log_test tests/unit/nonce_test \
	tests/unit/own_fds_test tests/unit/page_test tests/unit/path_test tests/unit/polling_test tests/unit/sleeper_test tests/unit/linger_test tests/unit/qos_account_test tests/unit/qos_capacity_test tests/unit/qos_drr_test tests/unit/qos_meter_test \
	tests/unit/qos_profile_test tests/unit/qos_rules_test tests/unit/qos_tally_test tests/unit/qos_tokens_test tests/unit/remote_listener_test tests/unit/rules_test \
	tests/unit/remote_words_test tests/unit/psn_test tests/unit/proof_parts_test tests/unit/screen_test tests/unit/facts_test tests/unit/sha256_test tests/unit/slow_test tests/unit/space_test tests/unit/tap_test tests/unit/pcapng_test tests/unit/trace_test tests/unit/trust_test \
	tests/unit/go_test tests/unit/guard_test tests/unit/top_test \
	tests/unit/verbs_test tests/unit/window_test tests/unit/zero_copy_test
check_PROGRAMS += $(unit_tests)
TESTS += $(unit_tests)
quick_tests += $(unit_tests)

unit_libs = libshuntcore.a $(CMOCKA_LIBS)
tests_unit_anonymous_test_LDADD = $(unit_libs)
tests_unit_anonymous_test_SOURCES = tests/unit/anonymous_test.c tools/report/anonymous.c tools/report/anonymous.h
tests_unit_advice_test_LDADD = $(unit_libs)
tests_unit_advice_test_SOURCES = tests/unit/advice_test.c tools/common/advice.c tools/common/advice.h
tests_unit_verdict_test_CFLAGS = $(AM_CFLAGS) $(JANSSON_CFLAGS)
tests_unit_verdict_test_LDADD = $(unit_libs) -lm
tests_unit_verdict_test_SOURCES = tests/unit/verdict_test.c tools/advise/advise.h tools/advise/advise_verdict.c tools/advise/advise_metric.c tools/bench/bench_figure.c
tests_unit_arena_test_LDADD = $(unit_libs)
tests_unit_arena_test_SOURCES = tests/unit/arena_test.c tests/vm.h
tests_unit_channel_test_LDADD = $(unit_libs)
tests_unit_cm_test_LDADD = $(unit_libs)
tests_unit_command_test_LDADD = $(unit_libs)
tests_unit_conf_test_LDADD = $(unit_libs)
tests_unit_trace_test_LDADD = $(unit_libs)
tests_unit_tap_test_LDADD = $(unit_libs) -lpthread
tests_unit_pcapng_test_LDADD = $(unit_libs)
tests_unit_pcapng_test_SOURCES = tests/unit/pcapng_test.c tools/dump/pcapng.c tools/dump/pcapng.h tools/dump/frame.c tools/dump/frame.h
tests_unit_config_test_LDADD = $(unit_libs)
tests_unit_copy_test_LDADD = $(unit_libs) -lpthread
tests_unit_directory_test_LDADD = $(unit_libs)
tests_unit_directory_owner_test_LDADD = $(unit_libs)
tests_unit_directory_words_test_LDADD = $(unit_libs)
tests_unit_iwarp_test_LDADD = $(unit_libs)
tests_unit_end_test_LDADD = $(unit_libs) -lpthread
tests_unit_heading_test_LDADD = $(unit_libs)
tests_unit_heading_test_SOURCES = tests/unit/heading_test.c tests/unit/machine_rows.h
tests_unit_intake_test_LDADD = $(unit_libs)
tests_unit_intake_test_SOURCES = tests/unit/intake_test.c tests/unit/machine_rows.h
tests_unit_claim_test_LDADD = $(unit_libs)
tests_unit_claim_test_SOURCES = tests/unit/claim_test.c tests/unit/machine_rows.h
tests_unit_fault_test_LDADD = $(unit_libs)
tests_unit_files_test_LDADD = $(unit_libs)
tests_unit_fork_door_test_LDADD = $(unit_libs)
tests_unit_fork_rest_test_LDADD = $(unit_libs)
tests_unit_seat_test_LDADD = $(unit_libs)
tests_unit_loading_test_LDADD = $(unit_libs)
tests_unit_remote_listener_test_LDADD = $(unit_libs)
tests_unit_group_test_LDADD = $(unit_libs)
tests_unit_histogram_test_LDADD = $(unit_libs)
tests_unit_go_test_LDADD = $(unit_libs)
tests_unit_go_test_SOURCES = tests/unit/go_test.c tests/go_maker.c tests/go_maker.h
tests_unit_guard_test_LDADD = $(unit_libs)
tests_unit_guard_test_SOURCES = tests/unit/guard_test.c tests/vm.h
tests_unit_hmac_test_LDADD = $(unit_libs)
tests_unit_hw_counters_test_LDADD = $(unit_libs)
tests_unit_imm_test_LDADD = $(unit_libs)
tests_unit_keyfile_test_LDADD = $(unit_libs)
tests_unit_remote_words_test_LDADD = $(unit_libs)
tests_unit_invite_test_LDADD = $(unit_libs)
tests_unit_listener_worker_test_LDADD = $(unit_libs)
tests_unit_log_line_test_CFLAGS = $(AM_CFLAGS) $(JANSSON_CFLAGS)
tests_unit_log_line_test_LDADD = $(unit_libs) $(JANSSON_LIBS)
tests_unit_log_test_LDADD = $(unit_libs)
tests_unit_zero_copy_test_LDADD = $(unit_libs)
tests_unit_nonce_test_LDADD = $(unit_libs)
tests_unit_page_test_LDADD = $(unit_libs)
tests_unit_path_test_LDADD = $(unit_libs)
tests_unit_linger_test_LDADD = $(unit_libs)
tests_unit_polling_test_LDADD = $(unit_libs)
tests_unit_polling_test_SOURCES = tests/unit/polling_test.c tests/unit/polling_bed.c tests/unit/polling_bed.h tests/inspect.c tests/inspect.h
tests_unit_sleeper_test_LDADD = $(unit_libs)
tests_unit_sleeper_test_SOURCES = tests/unit/sleeper_test.c tests/unit/polling_bed.c tests/unit/polling_bed.h tests/inspect.c tests/inspect.h
tests_unit_own_fds_test_LDADD = $(unit_libs)
tests_unit_screen_test_LDADD = $(unit_libs)
tests_unit_psn_test_LDADD = $(unit_libs)
tests_unit_proof_parts_test_LDADD = $(unit_libs)
tests_unit_facts_test_LDADD = $(unit_libs)
tests_unit_qos_account_test_LDADD = $(unit_libs)
tests_unit_qos_capacity_test_LDADD = $(unit_libs)
tests_unit_qos_drr_test_LDADD = $(unit_libs)
tests_unit_qos_meter_test_LDADD = $(unit_libs)
tests_unit_qos_profile_test_LDADD = $(unit_libs)
tests_unit_qos_rules_test_LDADD = $(unit_libs)
tests_unit_rules_test_LDADD = $(unit_libs)
tests_unit_qos_tally_test_LDADD = $(unit_libs)
tests_unit_qos_tokens_test_LDADD = $(unit_libs)
tests_unit_sha256_test_LDADD = $(unit_libs)
tests_unit_space_test_LDADD = $(unit_libs)
tests_unit_slow_test_CFLAGS = $(AM_CFLAGS) $(JANSSON_CFLAGS)
tests_unit_slow_test_LDADD = $(unit_libs) $(JANSSON_LIBS) -lpthread
tests_unit_trust_test_LDADD = $(unit_libs)
tests_unit_verbs_test_LDADD = $(unit_libs)
tests_unit_window_test_LDADD = $(unit_libs)

# With checks, whatever the build has.
tests_unit_lock_check_test_SOURCES = tests/unit/lock_check_test.c core/base/lock.c core/base/lock_check.c core/base/signal_defer.c
tests_unit_lock_check_test_CPPFLAGS = $(AM_CPPFLAGS) -DSHUNT_LOCK_CHECKS=1
tests_unit_lock_check_test_LDADD = $(CMOCKA_LIBS) -lpthread

# Of the command, all of `shunt top` but what it shows on.
tests_unit_top_test_SOURCES = tests/unit/top_test.c tools/top/top.h tools/top/top_model.c tools/top/top_columns.c tools/top/top_line.c \
	tools/top/top_keys.c tools/stat/stat_rate.c tools/common/output.c
tests_unit_top_test_CFLAGS = $(AM_CFLAGS) $(JANSSON_CFLAGS)
tests_unit_top_test_LDADD = $(unit_libs) $(JANSSON_LIBS)

# Real sockets in an engine, for some of them.
unit_sockets = tests/unit/sockets.c tests/unit/sockets.h
tests_unit_channel_test_SOURCES = tests/unit/channel_test.c $(unit_sockets)
directory_bed = tests/unit/directory_bed.c tests/unit/directory_bed.h $(unit_sockets)
tests_unit_directory_test_SOURCES = tests/unit/directory_test.c $(directory_bed)
tests_unit_directory_owner_test_SOURCES = tests/unit/directory_owner_test.c $(directory_bed)
tests_unit_remote_listener_test_SOURCES = tests/unit/remote_listener_test.c $(unit_sockets)
tests_unit_fork_door_test_SOURCES = tests/unit/fork_door_test.c $(unit_sockets)
tests_unit_fork_rest_test_SOURCES = tests/unit/fork_rest_test.c tests/inspect.c tests/inspect.h $(unit_sockets)
tests_unit_loading_test_SOURCES = tests/unit/loading_test.c $(unit_sockets)
tests_unit_invite_test_SOURCES = tests/unit/invite_test.c $(unit_sockets)
tests_unit_listener_worker_test_SOURCES = tests/unit/listener_worker_test.c $(unit_sockets)
tests_unit_screen_test_SOURCES = tests/unit/screen_test.c $(unit_sockets)
tests_unit_psn_test_SOURCES = tests/unit/psn_test.c $(unit_sockets)
tests_unit_proof_parts_test_SOURCES = tests/unit/proof_parts_test.c $(unit_sockets)
tests_unit_facts_test_SOURCES = tests/unit/facts_test.c $(unit_sockets)
tests_unit_own_fds_test_SOURCES = tests/unit/own_fds_test.c $(unit_sockets)
