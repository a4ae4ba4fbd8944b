/* SPDX-License-Identifier: MIT */
/* shunt monitor, where libmicrohttpd was missing when the command was built. */
#include <stdio.h>

#include "tools/shunt.h"

int shunt_view_monitor(int argc, char **argv)
{
	(void)argc;
	(void)argv;
	fputs("shunt monitor: it was built without libmicrohttpd; install libmicrohttpd-dev, and build again\n",
	      stderr);
	return EXIT_FAILED;
}
