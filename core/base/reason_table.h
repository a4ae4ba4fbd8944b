/* SPDX-License-Identifier: MIT */
/*
 * Why a connection stays on TCP, or goes back to it for good. Reasons differ in what a person can do: `shunt stat`, the log,
 * the metrics and `shunt doctor` have them, and docs/CARRIED.md has a row for each (tests/documents.sh). Causes are what
 * the code tells apart; a cause adds a detail to its reason. No include guard: enumerations and texts are made from it.
 *
 *   REASON(name, text, remedy)     a text names one reason; it is a key of the statistics
 *   CAUSE(name, reason, detail)    "": the reason says it all
 */

#define PROGRAM_DOES "nothing is to be done: the program uses what only the kernel has, or libc; it may have a switch for it"

/* Before a link carries anything: finding the peer, claiming, attaching. */
REASON(RULE, "a rule (SHUNT_RULES)", "if the link is wanted: `shunt adm PID rules` shows the rules and changes them, here and at the peer")
CAUSE(RULE, RULE, "")
CAUSE(PEER_RULE, RULE, "of the peer")

REASON(NO_SHUNT, "the peer runs without Shunt",
       "start each program that accepts at the peer's address with `shunt run`, or by its unit (docs/SERVICES.md)")
CAUSE(NO_SHUNT, NO_SHUNT, "")

REASON(NOT_HAD, "the peer does not have the connection", "start every process that accepts at the peer's address with Shunt")
CAUSE(NOT_HAD, NOT_HAD, "")

REASON(OTHER_HOST, "the peer is on another host, or in another network namespace",
       "to another host: an RDMA device at both (`shunt doctor devices`), and no SHUNT_DEVICE=soft; "
       "to a container of this host: SHUNT_DIR (docs/CONTAINERS.md)")
CAUSE(OTHER_HOST, OTHER_HOST, "")

REASON(UNREACHED, "the peer's host cannot be reached over RDMA",
       "`shunt doctor devices` and `shunt ping HOST` on both hosts say why: an address on the way to the peer, rdma_ucm, "
       "UDP port 4791, ports of SHUNT_PORTS")
CAUSE(NO_ROUTE, UNREACHED, "no device leads there")
CAUSE(HOST_SILENT, UNREACHED, "it does not answer")
CAUSE(HOST_UNASKED, UNREACHED, "it cannot be asked: `shunt doctor` has the cause")
CAUSE(PEER_NO_GATE, UNREACHED, "the worker that has the connection has no device, or no free port of SHUNT_PORTS")

REASON(KEY, "the hosts have no common key (SHUNT_KEY)", "copy one file with a secret to both hosts for SHUNT_KEY, or use SHUNT_TRUST=host at both; start both programs anew")
CAUSE(OTHER_KEY, KEY, "the peer's host has another, or none")
CAUSE(NO_KEY, KEY, "this host has no key")

REASON(TRANSLATED, "addresses are translated between the two",
       "let both use addresses that reach each other without NAT; or let both mount one SHUNT_DIR (docs/CONTAINERS.md)")
CAUSE(ELSEWHERE, TRANSLATED, "the link to the peer's host is of other addresses")
CAUSE(TRANSLATED, TRANSLATED, "or no socket of this network namespace is the other end")

REASON(DEVICE_NONE, "SHUNT_DEVICE=none", "unset SHUNT_DEVICE, and start the program anew")
CAUSE(DEVICE_NONE, DEVICE_NONE, "")

REASON(NO_LINK, "no link to the peer could be made", "the first line of `shunt stat`, and the log of both ends, say why (SHUNT_LOG=info)")
CAUSE(NO_LINK, NO_LINK, "")
CAUSE(NO_DEVICE, NO_LINK, "there is no device")
CAUSE(NO_PARTITION, NO_LINK, "the device's port is not in the partition of the route")
CAUSE(NO_RC, NO_LINK, "the device has no reliable connections (RC)")
CAUSE(NO_RANDOM, NO_LINK, "the system has no randomness yet")
CAUSE(CLAIM_UNSENT, NO_LINK, "the claim could not be sent")
CAUSE(REDIRECTED_TWICE, NO_LINK, "redirected twice")
CAUSE(BROKE_EARLY, NO_LINK, "it broke before it was up")
CAUSE(BROKE, NO_LINK, "it broke during the claim")

REASON(TRUST, "the two processes may not share a link (SHUNT_TRUST)",
       "SHUNT_TRUST=host at both ends; or run both as one user, dumpable, with the same capabilities and a /proc; or start "
       "both programs anew with one version of Shunt")
CAUSE(OTHER_USER, TRUST, "the peer's rendezvous belongs to another user")
CAUSE(UNTRACED, TRUST, "this process may not be traced by its own user")
CAUSE(UNTRACEABLE, TRUST, "they may not trace each other")
CAUSE(OTHER_NAMESPACE, TRUST, "the peer is in another PID or user namespace")
CAUSE(NO_PROC, TRUST, "there is no /proc that tells whether they may trace each other")
CAUSE(NOT_LET_IN, TRUST, "the peer's process does not let this one in")
CAUSE(PEER_STRANGER, TRUST, "another user's process accepts at the peer's address")
CAUSE(ALONE, TRUST, "the owner of its address does not let this process in")

REASON(VERSION, "the peer speaks another version", "start both programs anew with one version of Shunt")
CAUSE(OTHER_VERSION, VERSION, "")

REASON(UNSEEN, "the kernel does not show who holds the connection (sock_diag, AF_NETLINK)",
       "modprobe tcp_diag unix_diag, and allow AF_NETLINK (RestrictAddressFamilies=)")
CAUSE(UNSEEN, UNSEEN, "")

REASON(UNPROVEN, "the peer could not prove that it holds the connection",
       "find the process that has taken the name or shares the socket, or that is stopped or has changed its user; connect anew")
CAUSE(DISPROVEN, UNPROVEN, "")
CAUSE(SILENT, UNPROVEN, "it took too long")
CAUSE(UNPROVEN, UNPROVEN, "or does not take it for ours")

REASON(UNUSED, "not used in time", "a program that connects, accepts or reads late may need a longer claim_ms (SHUNT_TUNE)")
CAUSE(UNUSED, UNUSED, "after the peer's claim")
CAUSE(PEER_UNUSED, UNUSED, "by the peer's program")
CAUSE(NOT_CONNECTED, UNUSED, "the connect took too long")

REASON(CLOSED, "closed before it was claimed", "nothing is to be done: the connection was short")
CAUSE(CLOSED, CLOSED, "")

REASON(NOT_ATTACHED, "closed before the link was up, or used by another process too", "nothing is to be done")
CAUSE(NOT_ATTACHED, NOT_ATTACHED, "")
CAUSE(PEER_CLOSED, NOT_ATTACHED, "at the peer")

REASON(PEER_NO_ROOM, "the peer has no room for it, or has closed it", "the peer's `shunt stat` and log say which; if room: a larger arena there (SHUNT_TUNE)")
CAUSE(PEER_NO_ROOM, PEER_NO_ROOM, "")

REASON(NO_MEMORY, "out of memory, descriptors or threads",
       "raise ulimit -n and -u (LimitNOFILE=, TasksMax=), and look at free memory")
CAUSE(NO_MEMORY, NO_MEMORY, "")
CAUSE(NO_THREAD, NO_MEMORY, "for the service thread")
CAUSE(SET_FULL, NO_MEMORY, "for its epoll set")
CAUSE(NO_QUEUES, NO_MEMORY, "the device has no queues for it")
CAUSE(RDMA_CGROUP, NO_MEMORY, "the cgroup may have no more objects of the device (rdma.max)")

REASON(NOT_LOCKED, "the memory of its rings cannot be locked (ulimit -l)", "raise ulimit -l, or LimitMEMLOCK= of the unit, and start the program anew")
CAUSE(NOT_LOCKED, NOT_LOCKED, "")

REASON(NO_REGIONS, "the device has no more memory regions for its rings", "a larger mr (SHUNT_TUNE), or fewer connections of this device")
CAUSE(NO_REGIONS, NO_REGIONS, "")

REASON(CONFINED, "too little address space is left for a link (ulimit -v)", "raise ulimit -v, or LimitAS= of the unit, and start the program anew")
CAUSE(CONFINED, CONFINED, "")

REASON(ARENA_FULL, "the link's arena is full", "a larger arena, or a smaller ring_max (SHUNT_TUNE)")
CAUSE(ARENA_FULL, ARENA_FULL, "")

/* Calls of the program. */
REASON(SHARED, "two processes have the connection", "nothing is to be done")
CAUSE(FORK, SHARED, "a fork")
CAUSE(PASSED, SHARED, "passed to another process")
CAUSE(INHERITED, SHARED, "inherited by a program")
CAUSE(HELD, SHARED, "another process keeps it, too")
CAUSE(UNSEEN_HOLDER, SHARED, "not every process that may hold it can be looked at")

REASON(URING, "a ring of io_uring", "tell the program to use epoll, or SHUNT_URING=deny")
CAUSE(URING, URING, "")

REASON(KERNEL, "only the kernel has what the program uses", PROGRAM_DOES)
CAUSE(SPLICE, KERNEL, "splice")
CAUSE(FDOPEN, KERNEL, "fdopen")
CAUSE(DPRINTF, KERNEL, "dprintf")
CAUSE(ANCILLARY, KERNEL, "ancillary data")
CAUSE(STAMPS, KERNEL, "times of arrival")
CAUSE(FLAG, KERNEL, "a flag of send or recv")
CAUSE(OPTION, KERNEL, "a socket option")
CAUSE(ASYNC, KERNEL, "O_ASYNC")
CAUSE(STANDARD, KERNEL, "a standard stream")
CAUSE(NUMBER_CLOSED, KERNEL, "closed under a number that epoll knows")
CAUSE(UNKNOWN_SET, KERNEL, "an unknown epoll set")

REASON(CHANGES, "the process has changed its user or its rights", "connect after the process has changed its user; nothing helps one that does so for each request")
CAUSE(CHANGES, CHANGES, "")
CAUSE(RESTLESS, CHANGES, "again and again")

REASON(SANDBOX, "the process has confined itself", "connect after the process has confined itself")
CAUSE(SANDBOX, SANDBOX, "")

REASON(BYPASSED, "the program has sent past Shunt on another connection",
       "find the call that goes past Shunt: the log of both ends says when, strace which (docs/CARRIED.md, Other roads)")
CAUSE(BYPASSED, BYPASSED, "")
#undef PROGRAM_DOES
