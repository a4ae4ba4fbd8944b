# SPDX-License-Identifier: MIT
# Knows nothing of sockets.
base_sources = \
	core/base/address.c core/base/address.h \
	core/base/answer.c core/base/answer.h \
	core/base/attach.c core/base/attach.h \
	core/base/capability.h \
	core/base/conf.c core/base/conf.h \
	core/base/conf_file.c core/base/conf_file.h \
	core/base/conf_lines.c core/base/conf_lines.h \
	core/base/config.c core/base/config.h \
	core/base/config_review.c core/base/config_review.h \
	core/base/config_table.h \
	core/base/tune_table.h \
	core/base/copy.c core/base/copy.h \
	core/base/cycles.h \
	core/base/deadline.c core/base/deadline.h \
	core/base/fault_rules.c core/base/fault_rules.h \
	core/base/guard.c core/base/guard.h \
	core/base/hmac.c core/base/hmac.h \
	core/base/identity.c core/base/identity.h \
	core/base/iov.h \
	core/base/json.c core/base/json.h \
	core/base/kernel_clock.c core/base/kernel_clock.h \
	core/base/keyfile.c core/base/keyfile.h \
	core/base/lock.c core/base/lock.h \
	core/base/lock_check.c core/base/lock_check.h \
	core/base/lock_rank.h \
	core/base/log.c core/base/log.h \
	core/base/log_line.c core/base/log_line.h \
	core/base/lsan.c core/base/lsan.h \
	core/base/machine.c core/base/machine.h \
	core/base/narrow.h \
	core/base/outfile.c core/base/outfile.h \
	core/base/program.c core/base/program.h \
	core/base/poison.h \
	core/base/random.c core/base/random.h \
	core/base/reason.c core/base/reason.h \
	core/base/reason_table.h \
	core/base/rule.c core/base/rule.h \
	core/base/rule_text.c \
	core/base/scm_rights.c core/base/scm_rights.h \
	core/base/sha256.c core/base/sha256.h \
	core/base/signal_defer.c core/base/signal_defer.h \
	core/base/soft_model.c core/base/soft_model.h \
	core/base/space.c core/base/space.h \
	core/base/sys.h \
	core/base/word.c core/base/word.h \
	core/base/text.c core/base/text.h \
	core/base/verbs.h \
	core/base/write_nosig.c core/base/write_nosig.h
