# SPDX-License-Identifier: MIT
# Failure, and the way back.
recovery_sources = \
	core/recovery/failover.c core/recovery/failover.h \
	core/recovery/idle.c core/recovery/idle.h \
	core/recovery/keepalive.c core/recovery/keepalive.h \
	core/recovery/probe.c core/recovery/probe.h \
	core/recovery/reclaim.c core/recovery/reclaim.h
