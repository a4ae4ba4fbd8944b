# SPDX-License-Identifier: MIT
# The verbs device: every file of core/device/verbs.
verbs_sources = \
	core/device/verbs/library.c \
	core/device/verbs/open.c \
	core/device/verbs/path.c \
	core/device/verbs/verbs.h
