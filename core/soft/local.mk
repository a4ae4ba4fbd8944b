# The soft device: every file of core/soft.
soft_sources = \
	core/soft/channel.c \
	core/soft/complete.c \
	core/soft/context.c \
	core/soft/cq.c \
	core/soft/device.h \
	core/soft/estate.h \
	core/soft/execute.c \
	core/soft/lock.h \
	core/soft/model.c \
	core/soft/mr.c \
	core/soft/nic.c \
	core/soft/pd.c \
	core/soft/peer.c \
	core/soft/pending.c \
	core/soft/qp.c \
	core/soft/receive.c \
	core/soft/send.c \
	core/soft/soft.h \
	core/soft/state.c \
	core/soft/thread.c
