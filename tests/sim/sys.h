/* SPDX-License-Identifier: MIT */
/*
 * The surroundings of the engines: one table of scripted descriptors, a virtual clock, and a struct
 * shunt_sys. Its calls go to the script or, for Unix sockets and eventfds, to the kernel. These
 * sockets have names of their own (names.h), so that no other process of the machine is met.
 */
#ifndef SIM_SYS_H
#define SIM_SYS_H

#include <poll.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/epoll.h>
#include "core/base/sys.h"
#include "tests/sim/tcp.h"

#define SIM_FDS 4096		/* size of the engines' tables */
#define SIM_FIRST 3072		/* the script's own numbers */

struct sim_ep;

extern struct sim_sock *sim_sock_of[SIM_FDS];	/* also of real numbers that carry a passed socket */
extern struct sim_ep *sim_ep_of[SIM_FDS];
extern const struct shunt_sys sim_sys;
extern uint64_t sim_clock;
extern uint64_t sim_numbers;		/* bytes of chance that the engines have had: it is the same again after the same number */
extern unsigned int sim_busy_channel;	/* one in so many messages finds its channel full; 0: none */

/* A new world: numbers start again. */
void sim_fd_begin(void);
/* Lowest free scripted number. */
int sim_fd_new(void);
int sim_fd_sock(struct sim_sock *sock);
int sim_fd_ep(void);
/* A number in use leads to another socket from now on. */
void sim_fd_lead_to(int fd, struct sim_sock *sock);
int sim_fd_close(int fd);
/* Scripted numbers in use. */
int sim_fd_count(void);

/* --- epoll.c --- */

struct sim_ep *sim_ep_create(void);
void sim_ep_destroy(struct sim_ep *ep);
int sim_ep_ctl(struct sim_ep *ep, int op, int fd, struct epoll_event *event);
int sim_ep_wait(struct sim_ep *ep, struct epoll_event *events, int max);
bool sim_ep_ready(struct sim_ep *ep);
/* A socket, or a real descriptor, has gone. */
void sim_ep_forget_sock(struct sim_sock *sock);
void sim_ep_forget_real(int fd);
/* Anything that sim_poll() is asked about: scripted, epoll or real; never waits. */
int sim_poll(struct pollfd *fds, nfds_t count);
/* play.c: a call waits; everybody else goes on, and time passes. */
void sim_idle(void);
void sim_ep_show(struct sim_ep *ep, int depth);

#endif
