# SPDX-License-Identifier: MIT
# A fork's relatives.
fork_sources = \
	core/fork/fork_door.c core/fork/fork_door.h \
	core/fork/fork_rest.c core/fork/fork_rest.h \
	core/fork/fork_slots.c core/fork/fork_slots.h \
	core/fork/sole.c core/fork/sole.h
