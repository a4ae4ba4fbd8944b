# SPDX-License-Identifier: MIT
# The soft device: every file of core/device/soft.
soft_sources = \
	core/device/soft/bell.c \
	core/device/soft/waiter.c \
	core/device/soft/channel.c \
	core/device/soft/complete.c \
	core/device/soft/context.c \
	core/device/soft/cq.c \
	core/device/soft/device.h \
	core/device/soft/execute.c \
	core/device/soft/memfd.c \
	core/device/soft/lock.h \
	core/device/soft/mr.c \
	core/device/soft/nic.c \
	core/device/soft/page.c \
	core/device/soft/pd.c \
	core/device/soft/peer.c \
	core/device/soft/pending.c \
	core/device/soft/qp.c \
	core/device/soft/receive.c \
	core/device/soft/send.c \
	core/device/soft/shm_segment.h \
	core/device/soft/sink.c \
	core/device/soft/soft.h \
	core/device/soft/state.c \
	core/device/soft/thread.c

# What tests link that have the device and no engine.
soft_alone_sources = \
	core/base/copy.c core/base/copy.h \
	core/base/guard.c core/base/guard.h \
	core/base/kernel_clock.c core/base/kernel_clock.h \
	core/base/soft_model.c core/base/soft_model.h \
	$(soft_sources)
