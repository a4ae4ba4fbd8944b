/* SPDX-License-Identifier: MIT */
/*
 * A profile of what a device can carry (HA-13, HA-14). Several queue pairs write 4 KiB back to back into memory of this
 * process, and each millisecond is a sample. Haechi's clients do so for a second, 1000 times, before anybody is served.
 * The device does both ends of each write, so from other hosts an RNIC may take more than the profile says.
 */
#ifndef SHUNT_CORE_QOS_PROFILE_H
#define SHUNT_CORE_QOS_PROFILE_H

#include <stdint.h>

struct shunt_device;

/*
 * Mean and standard deviation of the device's rate, in thousandths of a token a second; set on success alone. Service
 * thread, with no lock held: it takes 17 ms, and 20 ms and what making takes at most. All that was made is gone after it.
 *
 * The soft device carries what this processor copies. Programs do not come near that. The rate of a
 * client alone cannot be told from it. The same device does both ends, and a link of an RDMA device
 * has as many queue pairs as the profile.
 *
 * 0; -ETIMEDOUT: fewer than four samples; -EIO: the device has failed; -ENOMEM or another -errno:
 * something could not be made. Samples lack if the device does not answer, the engine's clock
 * stands still, or the device is slower than 3000 tokens a second. It must be faster than 32,000 if
 * post_send carries out what it is given, as rxe's does.
 */
int shunt_profile(struct shunt_device *device, uint64_t *mean, uint64_t *sigma);

#endif
