/* SPDX-License-Identifier: MIT */
/* A rendezvous becomes ours: its name, and the name where co-listeners come in. */
#ifndef SHUNT_CORE_PEER_LISTEN_BIND_H
#define SHUNT_CORE_PEER_LISTEN_BIND_H

struct shunt_crowd;
struct shunt_rendezvous;
struct shunt_service;

/* Takes both names of the rendezvous. 0 or -errno. rendezvous_lock held; the crowd: see porter.h. */
int shunt_listen_bind(struct shunt_service *service, struct shunt_rendezvous *rendezvous,
		      struct shunt_crowd *crowd);
/* Its abstract names, too, where it has those in its user's directory. The same. */
int shunt_listen_bind_abstract(struct shunt_service *service, struct shunt_rendezvous *rendezvous,
			       struct shunt_crowd *crowd);

#endif
