# SPDX-License-Identifier: MIT
# Finding the peer, proving it, claiming.
peer_sources = \
	core/peer/attach.c core/peer/attach.h \
	core/peer/claim.c core/peer/claim.h \
	core/peer/claim_grant.c core/peer/claim_grant.h \
	core/peer/claim_refuse.c core/peer/claim_refuse.h \
	core/peer/claim_task.c core/peer/claim_task.h \
	core/peer/hear.c core/peer/hear.h \
	core/peer/limits.c core/peer/limits.h \
	core/peer/link_end.c core/peer/link_end.h \
	core/peer/link_make.c core/peer/link_make.h \
	core/peer/links.c core/peer/links.h \
	core/peer/listen.c core/peer/listen.h \
	core/peer/listen_bind.c core/peer/listen_bind.h \
	core/peer/listener_message.c core/peer/listener_message.h \
	core/peer/listener_owner.c core/peer/listener_owner.h \
	core/peer/listener_worker.c core/peer/listener_worker.h \
	core/peer/mock.c core/peer/mock.h \
	core/peer/possession.c core/peer/possession.h \
	core/peer/reconnect.c core/peer/reconnect.h \
	core/peer/redirect.c core/peer/redirect.h \
	core/peer/remote.c core/peer/remote.h \
	core/peer/remote_ask.c core/peer/remote_ask.h \
	core/peer/remote_listener.c core/peer/remote_listener.h \
	core/peer/rendezvous.c core/peer/rendezvous.h \
	core/peer/witness.c core/peer/witness.h
