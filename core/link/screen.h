/* SPDX-License-Identifier: MIT */
/*
 * Descriptors of strangers. To receive one is to close it some day, and so is to drop one. Closing takes as long as its
 * sender likes: a socket that lingers, a file whose server answers late. So a packet is looked at before it is received.
 */
#ifndef SHUNT_CORE_LINK_SCREEN_H
#define SHUNT_CORE_LINK_SCREEN_H

#include <stdbool.h>

struct shunt_links;
struct shunt_loop;

/*
 * The next packet of a Unix socket, which stays there. 1: it has at most `most` descriptors, memory files and sockets of
 * a pair alone; 0: no packet; -EBADMSG: it has others. -EBUSY: too many are being closed already, and it was not looked
 * at. Another -errno: the peer is gone. `named`: the socket has SO_PASSCRED, and `most` is 0. The service thread,
 * between shunt_own_fds_begin() and its end.
 */
int shunt_screen_packet(struct shunt_loop *loop, int fd, int most, bool named);
/*
 * Descriptors that have been received after that. True: each socket is the peer's own (the peer's at the other end of
 * `channel`), and can be closed in no time. False: they are closed elsewhere.
 */
bool shunt_screen_sockets(struct shunt_links *links, int channel, const int *fds, int count);
/*
 * A descriptor goes that has come with a message. One that has not been screened is closed here if it is a memory file or
 * an eventfd, as believed peers send them. Others may take long: they are for the porter.
 */
void shunt_screen_drop(struct shunt_loop *loop, int fd, bool screened);

#endif
