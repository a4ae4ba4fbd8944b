/* SPDX-License-Identifier: MIT */
#include "tools/ping.h"
int ping_matrix(const struct ping_matrix_options *matrix, struct ping_options *options)
{
	(void)matrix;
	(void)options;
	return 2;
}
