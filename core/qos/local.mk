# SPDX-License-Identifier: MIT
# Limits by class of client.
qos_sources = \
	core/qos/client.c \
	core/qos/facts.c core/qos/facts.h \
	core/qos/node.c \
	core/qos/pacing.c core/qos/pacing.h \
	core/qos/portions.c core/qos/portions.h \
	core/qos/qos.h \
	core/qos/qos_show.c \
	core/qos/rules.c core/qos/rules.h \
	core/qos/throttle.c core/qos/throttle.h \
	core/qos/tokens.c core/qos/tokens.h
