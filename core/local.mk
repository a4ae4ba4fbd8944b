# The engine.
core_sources = \
	include/shunt/wire.h \
	core/api.h core/file.h core/sys.h core/verbs.h core/loop.c core/loop.h \
	core/config.c core/config.h core/config_table.h core/config_review.c core/config_review.h core/narrow.h \
	core/fault.c core/fault.h core/fault_device.c core/fault_rules.c \
	core/log.c core/log.h core/outfile.c core/outfile.h core/quiet.c core/quiet.h \
	core/deadline.c core/deadline.h core/random.c core/random.h core/lock.c core/lock.h core/inside.c core/inside.h core/cancel.c core/cancel.h \
	core/arena.c core/arena.h \
	core/engine.c core/engine.h core/roots.c core/roots.h \
	core/private.c \
	core/reason.c core/reason.h core/reason_table.h core/stream.h core/streams.c core/streams.h core/stream_end.c core/stream_end.h core/stream_error.c core/stream_error.h core/stream_option.c core/file.c \
	core/tx.c core/rx.c core/iov.h core/eof.c core/eof.h core/peek.c core/peek.h core/shutdown.c \
	core/track.c core/rings.c core/rings.h core/attach.c core/attach.h core/loss.c core/loss.h \
	core/retire.c core/again.c core/again.h core/fetch.c core/fetch.h core/rights.c core/shared.c core/shared.h \
	core/lane.c core/lane.h core/lane_queue.c core/lane_queue.h core/lane_serve.c core/lane_serve.h core/delivered.c core/delivered.h core/lanes.c core/lanes.h core/chain.c core/chain.h core/direct.c core/direct.h core/wr.c core/wr.h core/stage.c core/stage.h \
	core/pin.c core/pin.h core/pinned.c core/pinned.h core/tally.c core/tally.h \
	core/window.c core/window.h \
	core/arrival.c \
	core/group.c core/group.h core/devices.c core/devices.h core/sleeper.c core/sleeper.h core/sleep.c core/sleep.h \
	core/roster.c core/roster.h core/settle.c core/settle.h \
	core/thread.c core/thread.h core/ticks.h \
	core/polling.c core/polling.h core/sleepcost.c core/sleepcost.h \
	core/ready.c core/wait.c core/poll.c core/poll.h core/select.c \
	core/epset.c core/epset.h core/epsets.c core/epwait.c core/watch.c core/watch.h \
	core/companion.c core/companion.h core/nested.c core/nested.h \
	core/link.c core/link.h core/seats.c core/seats.h core/link_make.c core/link_make.h core/link_end.c core/link_end.h core/hear.c core/hear.h core/channel.c core/channel.h core/fds.c core/fds.h core/gate.c core/gate.h \
	core/comeback.c core/comeback.h core/expiry.c core/expiry.h core/failover.c core/keepalive.c core/keepalive.h core/linger.c core/linger.h core/overflow.c core/overflow.h core/owed.c core/owed.h \
	core/proof.c core/proof.h core/device.h core/device_soft.c core/device_verbs.c \
	core/abroad.c core/abroad.h core/abroad_ask.c core/abroad_ask.h core/address.c core/address.h core/decision.c core/decision.h \
	core/rendezvous.c core/rendezvous.h core/trust.c core/trust.h core/porter.c core/porter.h core/listen.c core/listen.h core/claim.c core/claim.h core/claim_grant.c core/claim_grant.h core/claim_refuse.c core/claim_refuse.h core/brief.c core/brief.h core/trim.c core/trim.h core/unclaimed.c core/unclaimed.h core/unread.c core/unread.h core/uring.c core/uring.h core/have.c core/have.h core/join.c core/join.h core/redirect.c core/redirect.h \
	core/links.c core/links.h core/request.c core/request.h core/await.c core/await.h core/offer.c core/offer.h core/gather.c core/gather.h \
	core/doors.c core/doors.h core/service.c core/service.h \
	core/leave.c core/leave.h core/deaf.h core/deaf.c core/limits.h core/limits.c core/admin.c core/admin.h core/command.c core/command.h core/mock.c core/mock.h core/left.c core/left.h \
	core/stats.c core/carried.c core/carried.h
