/* SPDX-License-Identifier: MIT */
#include "tests/fake/profile.h"
#include <errno.h>
#include <string.h>

static const struct fake_profile profiles[] = {
	{
		.name = "mlx5",
		.expect = "linked",
		.told = { .max_qp = 131072, .max_qp_wr = 32768, .max_sge = 30, .max_cqe = 4194303, .max_qp_rd_atom = 16,
			  .ports = 1, .vectors = 63, .atomic_cap = IBV_ATOMIC_HCA },
		.cqe = { .bytes = 64, .spare = 1, .power = true },
		.in_line = { .most = 988, .more = FAKE_REFUSED, .extra = 60 },
		.send = { .base = 192, .header = 4, .unit = 64, .most = 32768, .power = true },
		.receive_bytes = 16,
	},
	{
		.name = "mlx4",
		.expect = "linked",
		.told = { .max_qp = 131072, .max_qp_wr = 16351, .max_sge = 32, .max_cqe = 4194303, .max_qp_rd_atom = 16,
			  .ports = 2, .vectors = 16, .atomic_cap = IBV_ATOMIC_HCA },
		.cqe = { .bytes = 64, .spare = 1, .power = true },
		.in_line = { .most = 992, .more = FAKE_REFUSED, .extra = 192 },
		.sges_told = 30,
		.send = { .base = 64, .header = 4, .unit = 64, .spare = 5, .most = 1048576, .power = true },
		.receive_bytes = 16,
	},
	{
		.name = "irdma-e810",
		.expect = "linked",
		.told = { .max_qp = 4092, .max_qp_wr = 4063, .max_sge = 13, .max_cqe = 1048574, .max_qp_rd_atom = 8,
			  .ports = 1, .vectors = 32, .atomic_cap = IBV_ATOMIC_NONE },
		.cqe = { .bytes = 64, .spare = 1 },
		.in_line = { .most = 101, .more = FAKE_REFUSED },
		.send = { .base = 32, .header = 8, .unit = 32, .spare = 258, .most = 32768, .power = true },
		.receive_bytes = 32,
	},
	{
		.name = "bnxt-static",
		.expect = "linked",
		.told = { .max_qp = 131073, .max_qp_wr = 65407, .max_sge = 6, .max_cqe = 8388607, .max_qp_rd_atom = 126,
			  .ports = 1, .vectors = 32, .atomic_cap = IBV_ATOMIC_GLOB },
		.cqe = { .bytes = 32, .spare = 1, .power = true },
		.in_line = { .most = 96, .more = FAKE_REFUSED },
		.send = { .base = 32, .unit = 128, .spare = 129, .most = 1048576 },
		.receive_bytes = 128,
	},
	{
		.name = "bnxt-variable",
		.expect = "linked",
		.told = { .max_qp = 131073, .max_qp_wr = 4351, .max_sge = 13, .max_cqe = 8388607, .max_qp_rd_atom = 126,
			  .ports = 1, .vectors = 32, .atomic_cap = IBV_ATOMIC_NONE },
		.cqe = { .bytes = 32, .spare = 1, .power = true },
		.in_line = { .most = 208, .more = FAKE_REFUSED },
		.send = { .base = 32, .unit = 16, .most = 65536 },
		.receive_bytes = 48,
	},
	{
		.name = "hns-08",
		.expect = "linked",
		.told = { .max_qp = 65536, .max_qp_wr = 32768, .max_sge = 64, .max_cqe = 65535, .max_qp_rd_atom = 128,
			  .ports = 1, .vectors = 63, .atomic_cap = IBV_ATOMIC_HCA },
		.cqe = { .bytes = 32, .power = true },
		.in_line = { .most = 32, .more = FAKE_CLAMPED },
		.send = { .base = 32, .unit = 64, .most = 1048576, .power = true },
		.receive_bytes = 16,
	},
	{
		.name = "hns-09",
		.expect = "linked",
		.told = { .max_qp = 65536, .max_qp_wr = 32768, .max_sge = 64, .max_cqe = 4194304, .max_qp_rd_atom = 128,
			  .ports = 1, .vectors = 63, .atomic_cap = IBV_ATOMIC_HCA },
		.cqe = { .bytes = 64, .power = true },
		.in_line = { .most = 1024, .more = FAKE_CLAMPED },
		.send = { .base = 32, .unit = 64, .most = 1048576, .power = true },
		.receive_bytes = 16,
	},
	{
		.name = "mana",
		.expect = "linked",
		.told = { .max_qp = 16384, .max_qp_wr = 8192, .max_sge = 16, .max_cqe = 65536, .max_qp_rd_atom = 16,
			  .ports = 1, .vectors = 32, .atomic_cap = IBV_ATOMIC_NONE },
		.cqe = { .bytes = 64 },
		.in_line = { .more = FAKE_LIE },
		.send = { .base = 48, .unit = 32, .most = 1048576 },
		.receive_bytes = 32,
	},
	{
		.name = "qedr",
		.expect = "linked",
		.told = { .max_qp = 8568, .max_qp_wr = 32767, .max_sge = 4, .max_cqe = 8388480, .max_qp_rd_atom = 32,
			  .ports = 1, .vectors = 16, .atomic_cap = IBV_ATOMIC_NONE },
		.cqe = { .bytes = 32, .spare = 1 },
		.in_line = { .most = 256, .more = FAKE_REFUSED },
		.send = { .base = 32, .unit = 16, .spare = 1, .most = 1048576 },
		.receive_bytes = 32,
	},
	{
		.name = "pvrdma",
		.expect = "linked",
		.told = { .max_qp = 1024, .max_qp_wr = 16384, .max_sge = 16, .max_cqe = 65536, .max_qp_rd_atom = 16,
			  .ports = 1, .vectors = 1, .atomic_cap = IBV_ATOMIC_NONE },
		.cqe = { .bytes = 64, .power = true },
		.in_line = { .more = FAKE_CLAMPED },
		.send = { .base = 64, .unit = 64, .most = 1048576, .power = true },
		.receive_bytes = 32,
	},
	{
		.name = "hfi1",
		.expect = "linked",
		.told = { .max_qp = 16384, .max_qp_wr = 16383, .max_sge = 96, .max_cqe = 3145727, .max_qp_rd_atom = 16,
			  .ports = 1, .vectors = 1, .atomic_cap = IBV_ATOMIC_GLOB },
		.cqe = { .bytes = 64 },
		.in_line = { .more = FAKE_CLAMPED },
		.send = { .base = 64, .unit = 16, .most = 1048576 },
		.receive_bytes = 32,
		.kernel_rings = true,
	},
	{
		.name = "ionic",
		.expect = "linked",
		.told = { .max_qp = 32768, .max_qp_wr = 65535, .max_sge = 8, .max_cqe = 65535, .max_qp_rd_atom = 16,
			  .ports = 1, .vectors = 16, .atomic_cap = IBV_ATOMIC_NONE },
		.cqe = { .bytes = 32, .spare = 100, .power = true },
		.in_line = { .most = 480, .more = FAKE_REFUSED },
		.send = { .base = 32, .unit = 64, .most = 1048576, .power = true },
		.receive_bytes = 64,
		.receive_again = 3,
	},
	{
		.name = "efa",
		.expect = "the device has no reliable connections (RC)",
		.told = { .max_qp = 256, .max_qp_wr = 4096, .max_sge = 2, .max_cqe = 32768, .ports = 1, .vectors = 8,
			  .atomic_cap = IBV_ATOMIC_NONE },
		.cqe = { .bytes = 32, .power = true },
		.in_line = { .most = 32, .more = FAKE_REFUSED },
		.send = { .base = 32, .unit = 64, .most = 1048576 },
		.receive_bytes = 32,
		.no_rc = true,
	},
};
enum { PROFILES = sizeof(profiles) / sizeof(profiles[0]) };

const struct fake_profile *fake_profile_at(unsigned int i)
{
	return i < PROFILES ? &profiles[i] : NULL;
}

const struct fake_profile *fake_profile_find(const char *name, size_t length)
{
	for (int i = 0; i < PROFILES; i++)
		if (strlen(profiles[i].name) == length && !memcmp(profiles[i].name, name, length))
			return &profiles[i];
	return NULL;
}

static uint64_t power_of_two(uint64_t n)
{
	uint64_t power = 1;

	while (power < n)
		power *= 2;
	return power;
}

static uint64_t rounded(uint64_t bytes, uint64_t unit)
{
	return (bytes + unit - 1) / unit * unit;
}

uint64_t fake_profile_cq(const struct fake_profile *profile, int entries)
{
	uint64_t made = (uint64_t)entries + profile->cqe.spare;

	if (entries < 1 || (profile->cqe.spare > 1 && made > (uint64_t)profile->told.max_cqe) ||
	    entries > profile->told.max_cqe) {
		errno = EINVAL;
		return 0;
	}
	return (profile->cqe.power ? power_of_two(made) : made) * profile->cqe.bytes;
}

static int settle_inline(const struct fake_profile *profile, struct ibv_qp_cap *cap)
{
	switch (profile->in_line.more) {
	case FAKE_REFUSED:
		return cap->max_inline_data > profile->in_line.most ? EINVAL : 0;
	case FAKE_CLAMPED:
		if (cap->max_inline_data > profile->in_line.most)
			cap->max_inline_data = profile->in_line.most;
		return 0;
	default:
		return 0;
	}
}

int fake_profile_qp(const struct fake_profile *profile, struct ibv_qp_cap *cap, uint64_t *locked)
{
	uint64_t gathered, in_line, units;
	int err;

	if (profile->no_rc)
		return EOPNOTSUPP;
	if (cap->max_send_wr > (uint32_t)profile->told.max_qp_wr ||
	    cap->max_recv_wr > (uint32_t)profile->told.max_qp_wr ||
	    cap->max_send_sge > (uint32_t)profile->told.max_sge ||
	    cap->max_recv_sge > (uint32_t)profile->told.max_sge)
		return EINVAL;
	err = settle_inline(profile, cap);
	if (err)
		return err;
	gathered = 16ull * cap->max_send_sge;
	in_line = profile->in_line.more != FAKE_LIE && cap->max_inline_data ?
			  profile->send.header + cap->max_inline_data :
			  0;
	units = rounded(profile->send.base + (gathered > in_line ? gathered : in_line),
			profile->send.unit) /
		profile->send.unit;
	units = units * cap->max_send_wr + profile->send.spare;
	if (profile->send.power)
		units = power_of_two(units);
	if (units > profile->send.most)
		return EINVAL;
	if (profile->sges_told)
		cap->max_send_sge = profile->sges_told;
	if (cap->max_inline_data)
		cap->max_inline_data += profile->in_line.extra;
	*locked = units * profile->send.unit + (uint64_t)cap->max_recv_wr * profile->receive_bytes;
	return 0;
}
