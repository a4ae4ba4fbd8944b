/* SPDX-License-Identifier: MIT */
/*
 * The program behind `shunt top` and `shunt monitor`. It is apart from the command, so that `shunt run` does not load
 * ncurses and libmicrohttpd, which bring a dozen other libraries.
 */
#include <stdio.h>
#include <string.h>

#include "tools/common/output.h"
#include "tools/shunt.h"

int main(int argc, char **argv)
{
	shunt_output_begin();
	if (argc > 1 && !strcmp(argv[1], "top"))
		return shunt_view_top(argc - 1, argv + 1);
	if (argc > 1 && !strcmp(argv[1], "monitor"))
		return shunt_view_monitor(argc - 1, argv + 1);
	fputs("shunt-view: it is a part of `shunt top` and `shunt monitor`\n", stderr);
	return EXIT_USAGE;
}
