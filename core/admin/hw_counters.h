/* SPDX-License-Identifier: MIT */
/*
 * The kernel's word about one port of an RDMA device: its hw_counters, its state and its link layer. They are files
 * of /sys/class/infiniband, which are read when somebody asks. Nothing is believed of them: names and contents are
 * bounded, and a file that holds anything but one decimal number is left out.
 */
#ifndef SHUNT_CORE_ADMIN_HW_COUNTERS_H
#define SHUNT_CORE_ADMIN_HW_COUNTERS_H

#include <stdint.h>

#define SHUNT_HW_ROOT "/sys/class/infiniband"
#define SHUNT_HW_MAX 128	/* counters of a port; mlx5 has less than fifty */
#define SHUNT_HW_NAME 48	/* bytes of a name, the NUL included */
#define SHUNT_HW_ENTRIES 1024	/* of the folder that are looked at */

struct shunt_hw_counter {
	char name[SHUNT_HW_NAME];	/* letters, digits and '_' */
	uint64_t value;
};

struct shunt_hw_port {
	char state[SHUNT_HW_NAME];	/* "ACTIVE"; "" where it is not known */
	char link_layer[SHUNT_HW_NAME];	/* "Ethernet"; the same */
	uint32_t count;
	struct shunt_hw_counter counters[SHUNT_HW_MAX];	/* in the order of their names */
};

/*
 * Fills `port` with what there is of port `number` of `device` under `root`: SHUNT_HW_ROOT, or a
 * test's. 0, or -errno: the port has no folder, or the device's name is invalid. Makes descriptors.
 */
int shunt_hw_counters_read(const char *root, const char *device, uint32_t number,
			   struct shunt_hw_port *port);

#endif
