/* SPDX-License-Identifier: MIT */
/* A library that does something at the end of the process, as those do that say goodbye to a server (cases/ends.c). */
extern void (*late_goodbye)(void);
void (*late_goodbye)(void);

__attribute__((destructor)) static void late(void)
{
	if (late_goodbye)
		late_goodbye();
}
