# SPDX-License-Identifier: MIT
# The layouts in which services run. Those that have what is expected are a test; reach.sh has all,
# and writes docs/dev/REACH.md.
EXTRA_DIST += tests/reach/reach.sh tests/reach/lib.sh tests/reach/quick.sh \
	tests/reach/figures.py tests/reach/talk.py
TESTS += tests/reach/quick.sh
