# SPDX-License-Identifier: MIT
# Faults on purpose, against plain programs. tests/README.md tells more.
check_PROGRAMS += tests/fault/scene tests/fault/load tests/fault/campaign

tests_fault_scene_SOURCES = tests/fault/scene.c
tests_fault_scene_CFLAGS = $(plain_cflags)
tests_fault_scene_LDFLAGS =

tests_fault_load_SOURCES = tests/fault/load.c tests/fault/redis.c tests/fault/table.h
tests_fault_load_CFLAGS = $(plain_cflags)
tests_fault_load_LDFLAGS =

tests_fault_campaign_SOURCES = tests/fault/campaign.c tests/fault/campaign.h tests/fault/plan.c tests/fault/play.c \
	tests/fault/table.h
tests_fault_campaign_CFLAGS = $(plain_cflags)
tests_fault_campaign_LDFLAGS =

EXTRA_DIST += tests/fault/sweep.sh tests/fault/campaign.sh
TESTS += tests/fault/sweep.sh tests/fault/campaign.sh
