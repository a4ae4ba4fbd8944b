# SPDX-License-Identifier: MIT
# The device boundary and its kinds.
device_sources = \
	core/device/by_cm.c core/device/by_cm.h \
	core/device/device.h \
	core/device/device_soft.c \
	core/device/device_verbs.c core/device/device_verbs.h \
	core/device/fault.c core/device/fault.h \
	core/device/imm.c core/device/imm.h \
	core/device/iwarp.c core/device/iwarp.h \
	core/device/itself.c core/device/itself.h \
	core/device/page.c core/device/page.h \
	core/device/psn.c core/device/psn.h \
	core/device/selftest.c core/device/selftest.h \
	core/device/page_verbs.c core/device/page_verbs.h
