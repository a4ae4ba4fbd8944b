# SPDX-License-Identifier: MIT
# Limits by class of client.
qos_sources = \
	core/qos/account.c core/qos/account.h \
	core/qos/admission.h \
	core/qos/capacity.c core/qos/capacity.h \
	core/qos/client.c \
	core/qos/drr.c core/qos/drr.h \
	core/qos/facts.c core/qos/facts.h \
	core/qos/ledger.c core/qos/ledger.h \
	core/qos/fetch.c core/qos/fetch.h \
	core/qos/grants.c core/qos/grants.h \
	core/qos/holding.c core/qos/holding.h \
	core/qos/meter.c core/qos/meter.h \
	core/qos/monitor.c core/qos/monitor.h \
	core/qos/node.c \
	core/qos/own_sends.c core/qos/own_sends.h \
	core/qos/pacing.c core/qos/pacing.h \
	core/qos/pool.h \
	core/qos/pools.c core/qos/pools.h \
	core/qos/portions.c core/qos/portions.h \
	core/qos/profile.c core/qos/profile.h \
	core/qos/qos.h \
	core/qos/qos_show.c \
	core/qos/rules.c core/qos/rules.h \
	core/qos/rules_capacity.c \
	core/qos/rules_class.c \
	core/qos/rules_match.c \
	core/qos/rules_rate.c \
	core/qos/rules_text.c \
	core/qos/rules_words.c core/qos/rules_words.h \
	core/qos/tally.c core/qos/tally.h \
	core/qos/throttle.c core/qos/throttle.h \
	core/qos/tokens.c core/qos/tokens.h
