# SPDX-License-Identifier: MIT
# Tests of the built products as wholes.
whole_tests = tests/kubernetes.sh tests/lines.sh tests/alone_test.sh tests/services.sh tests/drop_in.sh tests/check_test.sh tests/exports.sh tests/rooms.sh tests/states.sh tests/locks.sh tests/cancellation.sh tests/run.sh tests/install.sh tests/harmless.sh tests/conf.sh tests/config.sh tests/completion.sh tests/newcomer.sh tests/quickstart.sh tests/stat.sh tests/doors.sh tests/example.sh tests/adm.sh tests/adm_hosts.sh tests/live.sh tests/rules.sh tests/log.sh tests/slow_log.sh tests/probes.sh tests/compare.sh tests/advise.sh \
	tests/perf.sh tests/perf_qos.sh tests/papers.sh tests/mechanisms.sh tests/prose.sh \
	tests/trace.sh \
	tests/metrics.sh tests/monitor.sh \
	tests/top.sh tests/dump.sh
EXTRA_DIST += $(whole_tests) tests/api.c tests/stat_fake.py tests/doors_fake.py tests/stat_plain.py tests/live.py tests/rules.py tests/stat_queues.py tests/stat_tcp.py tests/harmless/allocator.c tests/harmless/fixed.c tests/harmless/leaves.c tests/harmless/other.c tests/harmless/reports.c tests/harmless/talk.c tests/lib.sh tests/alone.sh tests/scratch.sh tests/units.sh tests/documents.sh tests/prose.py \
	tests/kubernetes.mjs tests/trace.py tests/page.py \
	tests/metrics_check.py tests/metrics_count.py tests/monitor_client.py tests/monitor_hosts.py \
	tests/top_load.py
TESTS += $(whole_tests)
# shunt ping.
TESTS += tests/ping.sh tests/nowait.py
EXTRA_DIST += tests/ping.sh tests/nowait.py tests/ping_liar.py tests/ping_service.py
# Tests of doctor, devices and report.
doctor_tests = tests/devices.sh tests/doctor.sh tests/report.sh
EXTRA_DIST += $(doctor_tests) tests/doctor_end.py tests/doctor_plain.c
TESTS += $(doctor_tests)
# Needs tests/calls/lacking.
TESTS += tests/reach/hostile.sh tests/reach/user_dirs.sh
EXTRA_DIST += tests/reach/hostile.sh tests/reach/user_dirs.sh tests/reach/hostile.py tests/reach/attacks.py tests/reach/enemy.py tests/reach/speech.py tests/reach/victim.py tests/reach/waits.py
# The symptom table of docs/TROUBLESHOOTING.md. Needs tests/bench/sick.
TESTS += tests/findings.sh
EXTRA_DIST += tests/findings.sh tests/findings_cases.sh
