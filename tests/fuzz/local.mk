# SPDX-License-Identifier: MIT
# One fuzzer for each parser and one for the engine. With --enable-fuzz each is libFuzzer's program; without, it runs
# the inputs that it is given, which make check-all does.
fuzzers = tests/fuzz/remote tests/fuzz/channel tests/fuzz/conf tests/fuzz/config tests/fuzz/device tests/fuzz/directory tests/fuzz/go tests/fuzz/shm_segment tests/fuzz/remote_listener \
	tests/fuzz/link tests/fuzz/model tests/fuzz/peer tests/fuzz/qos_rules tests/fuzz/rules tests/fuzz/uring_sq tests/fuzz/witness
check_PROGRAMS += $(fuzzers)
TESTS += tests/fuzz/corpus.sh
EXTRA_DIST += tests/fuzz/corpus.sh tests/fuzz/run.sh tests/fuzz/monitor.py tests/fuzz/corpus tests/fuzz/regress

if FUZZED
fuzz_main =
fuzz_ldflags = $(AM_LDFLAGS) -fsanitize=fuzzer
else
fuzz_main = tests/fuzz/main.c
fuzz_ldflags = $(AM_LDFLAGS)
endif

fuzz_ldadd = libshuntcore.a -lpthread

tests_fuzz_conf_SOURCES = tests/fuzz/conf.c tests/fuzz/fuzz.h $(fuzz_main)
tests_fuzz_conf_LDADD = $(fuzz_ldadd)
tests_fuzz_conf_LDFLAGS = $(fuzz_ldflags)
tests_fuzz_config_SOURCES = tests/fuzz/config.c tests/fuzz/fuzz.h $(fuzz_main)
tests_fuzz_config_LDADD = $(fuzz_ldadd)
tests_fuzz_config_LDFLAGS = $(fuzz_ldflags)

tests_fuzz_device_SOURCES = tests/fuzz/device.c tests/fuzz/fuzz.h $(fuzz_main)
tests_fuzz_device_LDADD = $(fuzz_ldadd)
tests_fuzz_device_LDFLAGS = $(fuzz_ldflags)

tests_fuzz_go_SOURCES = tests/fuzz/go.c tests/fuzz/fuzz.h $(fuzz_main)
tests_fuzz_go_LDADD = $(fuzz_ldadd)
tests_fuzz_go_LDFLAGS = $(fuzz_ldflags)

tests_fuzz_shm_segment_SOURCES = tests/fuzz/shm_segment.c tests/fuzz/fuzz.h $(fuzz_main)
tests_fuzz_shm_segment_LDADD = $(fuzz_ldadd)
tests_fuzz_shm_segment_LDFLAGS = $(fuzz_ldflags)

tests_fuzz_model_SOURCES = tests/fuzz/model.c tests/fuzz/fuzz.h $(fuzz_main)
tests_fuzz_model_LDADD = $(fuzz_ldadd)
tests_fuzz_model_LDFLAGS = $(fuzz_ldflags)

tests_fuzz_qos_rules_SOURCES = tests/fuzz/qos_rules.c tests/fuzz/fuzz.h $(fuzz_main)
tests_fuzz_qos_rules_LDADD = $(fuzz_ldadd)
tests_fuzz_qos_rules_LDFLAGS = $(fuzz_ldflags)

tests_fuzz_rules_SOURCES = tests/fuzz/rules.c tests/fuzz/fuzz.h $(fuzz_main)
tests_fuzz_rules_LDADD = $(fuzz_ldadd)
tests_fuzz_rules_LDFLAGS = $(fuzz_ldflags)

tests_fuzz_uring_sq_SOURCES = tests/fuzz/uring_sq.c tests/fuzz/fuzz.h $(fuzz_main)
tests_fuzz_uring_sq_LDADD = $(fuzz_ldadd)
tests_fuzz_uring_sq_LDFLAGS = $(fuzz_ldflags)

fuzz_fake = tests/fuzz/fuzz.h tests/fuzz/fake.c tests/fuzz/fake.h

tests_fuzz_channel_SOURCES = tests/fuzz/channel.c $(fuzz_fake) $(fuzz_main)
tests_fuzz_channel_LDADD = $(fuzz_ldadd)
tests_fuzz_channel_LDFLAGS = $(fuzz_ldflags)

tests_fuzz_remote_listener_SOURCES = tests/fuzz/remote_listener.c $(fuzz_fake) $(fuzz_main)
tests_fuzz_remote_listener_LDADD = $(fuzz_ldadd)
tests_fuzz_remote_listener_LDFLAGS = $(fuzz_ldflags)

tests_fuzz_directory_SOURCES = tests/fuzz/directory.c $(fuzz_fake) $(fuzz_main)
tests_fuzz_directory_LDADD = $(fuzz_ldadd)
tests_fuzz_directory_LDFLAGS = $(fuzz_ldflags)

tests_fuzz_witness_SOURCES = tests/fuzz/witness.c $(fuzz_fake) $(fuzz_main)
tests_fuzz_witness_LDADD = $(fuzz_ldadd)
tests_fuzz_witness_LDFLAGS = $(fuzz_ldflags)

# These have a world with three engines, and count the links of one of them.
fuzz_world_ldflags = $(fuzz_ldflags) -Wl,--wrap=shunt_link_create
fuzz_world = tests/fuzz/fuzz.h tests/fuzz/world.c tests/fuzz/world.h tests/inspect.c tests/inspect.h tests/sim/epoll.c tests/sim/names.c tests/sim/names.h tests/sim/random.h tests/sim/role.h \
	tests/sim/sim.h tests/sim/start.h tests/sim/sys.c tests/sim/sys.h tests/sim/tcp.c tests/sim/tcp.h tests/sim/witness.c tests/sim/witness.h

tests_fuzz_remote_SOURCES = tests/fuzz/remote.c $(fuzz_world) $(fuzz_main)
tests_fuzz_remote_LDADD = $(fuzz_ldadd)
tests_fuzz_remote_LDFLAGS = $(fuzz_world_ldflags)

tests_fuzz_link_SOURCES = tests/fuzz/link.c $(fuzz_world) $(fuzz_main)
tests_fuzz_link_LDADD = $(fuzz_ldadd)
tests_fuzz_link_LDFLAGS = $(fuzz_world_ldflags)

tests_fuzz_peer_SOURCES = tests/fuzz/peer.c tests/fuzz/hostile.c tests/fuzz/hostile.h $(fuzz_world) $(fuzz_main)
tests_fuzz_peer_LDADD = $(fuzz_ldadd)
tests_fuzz_peer_LDFLAGS = $(fuzz_world_ldflags)

fuzzers: $(fuzzers)
