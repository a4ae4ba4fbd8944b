# SPDX-License-Identifier: MIT
# Which tests `make check` runs, in the language of GNU make: Automake makes a rule for each test, and knows no tiers.
# A list that is given as TESTS=... runs as it is.
all_tests := $(TESTS)
TIER = quick
ifeq ($(origin TESTS),file)
ifeq ($(TIER),quick)
TESTS = $(quick_tests)
# Samples: of the simulator's seeds, and of the cases of tests/calls/diff.sh, from the first byte and on the link.
SIM_SEEDS ?= 500
SAMPLE ?= 8
PASSES ?= cold warm
export SIM_SEEDS SAMPLE PASSES
else ifneq ($(TIER),all)
$(error TIER is quick or all, not $(TIER))
endif
endif
