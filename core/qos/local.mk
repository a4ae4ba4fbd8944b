# SPDX-License-Identifier: MIT
# Limits by class of client.
qos_sources = \
	core/qos/client.c \
	core/qos/facts.c core/qos/facts.h \
	core/qos/holding.c core/qos/holding.h \
	core/qos/meter.c core/qos/meter.h \
	core/qos/node.c \
	core/qos/portions.c core/qos/portions.h \
	core/qos/qos.h \
	core/qos/qos_show.c \
	core/qos/rules.c core/qos/rules.h \
	core/qos/throttle.c core/qos/throttle.h \
	core/qos/tokens.c core/qos/tokens.h
