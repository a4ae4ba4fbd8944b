# Tests of the built products as wholes.
whole_tests = tests/exports.sh tests/run.sh tests/config.sh tests/stat.sh tests/compare.sh \
	tests/perf.sh
EXTRA_DIST += $(whole_tests) tests/lib.sh
TESTS += $(whole_tests)
