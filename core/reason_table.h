/*
 * Why a connection stays on TCP, or goes back to it for good: once, for `shunt stat`, the log and README.md, whose
 * tables name every row (tests/documents.sh). No include guard: the enumeration and the texts are made from it.
 *
 *   REASON(name, text)     a text names one row; it is a key of the statistics
 */

/* Before a link carries anything: finding the peer, claiming, attaching. */
REASON(NO_SHUNT, "the peer runs without Shunt")
REASON(OTHER_HOST, "the peer is on another host")
REASON(NO_ROUTE, "no RDMA device leads to the peer")
REASON(HOST_SILENT, "the peer's host does not answer over RDMA")
REASON(HOST_UNASKED, "the peer's host cannot be asked")
REASON(NO_DEVICE, "there is no device")
REASON(NO_LINK, "no link to the peer could be made")
REASON(OTHER_USER, "the peer's rendezvous belongs to another user")
REASON(NOT_HAD, "the peer does not have the connection")
REASON(REDIRECTED_TWICE, "redirected twice")
REASON(PEER_CLOSED, "the peer has closed it or shares it")
REASON(NOT_CONNECTED, "not connected in time")
REASON(CLOSED, "closed before it was claimed")
REASON(CLAIM_UNSENT, "the claim could not be sent")
REASON(NO_ROOM, "no room for its rings, or closed already")
REASON(ARENA_FULL, "the link's arena is full")
REASON(NO_REGIONS, "no more memory or memory regions for its rings")
REASON(NOT_LOCKED, "the memory of its rings cannot be locked: raise ulimit -l")
REASON(NO_MEMORY, "out of descriptors or memory")
REASON(NO_THREAD, "out of descriptors, memory or threads")
REASON(NO_RANDOM, "the system has no randomness yet")
REASON(CONFINED, "the program's address space is limited")
REASON(BROKE_EARLY, "the link broke before it was up")
REASON(BROKE, "the link broke during the claim")

/* What the program did. */
REASON(FORK, "shared by a fork")
REASON(SPLICE, "splice")
REASON(FDOPEN, "fdopen")
REASON(DPRINTF, "dprintf")
REASON(ANCILLARY, "ancillary data")
REASON(STAMPS, "times of arrival")
REASON(FLAG, "a flag of send or recv")
REASON(OPTION, "a socket option")
REASON(ASYNC, "O_ASYNC")
REASON(PASSED, "passed to another process")
REASON(INHERITED, "inherited by a program")
REASON(STANDARD, "a standard stream")
REASON(NUMBER_CLOSED, "closed under a number that epoll knows")
REASON(UNKNOWN_SET, "an unknown epoll set")
REASON(SET_FULL, "no memory or descriptor for its epoll set")
