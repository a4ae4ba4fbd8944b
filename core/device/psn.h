/* SPDX-License-Identifier: MIT */
/*
 * Packet sequence numbers with which queue pairs begin. A queue pair takes packets that bear its number and the expected
 * sequence number. So each number follows from a secret, and the peer that has been told one knows no other.
 */
#ifndef SHUNT_CORE_DEVICE_PSN_H
#define SHUNT_CORE_DEVICE_PSN_H

#include <stdint.h>

struct shunt_sys;

#define SHUNT_PSN_KEY_BYTES 16

/* One for each device that is opened. */
void shunt_psn_key(const struct shunt_sys *sys, uint8_t key[SHUNT_PSN_KEY_BYTES]);
/* 24 bits, the same whenever it is asked. */
uint32_t shunt_psn_of(const uint8_t key[SHUNT_PSN_KEY_BYTES], uint32_t qp_num);

#endif
