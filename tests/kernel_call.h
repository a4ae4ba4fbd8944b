/* SPDX-License-Identifier: MIT */
/* A system call by an instruction of the caller's own, which goes past libc's names. */
#ifndef TESTS_KERNEL_CALL_H
#define TESTS_KERNEL_CALL_H

#include <errno.h>
#include <unistd.h>

/* The kernel's answer: -errno for an error. */
static inline long kernel_call(long number, long a, long b, long c, long d)
{
#if defined(__x86_64__)
	register long r10 __asm__("r10") = d;
	long result;

	__asm__ volatile("syscall"
			 : "=a"(result)
			 : "a"(number), "D"(a), "S"(b), "d"(c), "r"(r10)
			 : "rcx", "r11", "memory");
	return result;
#elif defined(__aarch64__)
	register long x8 __asm__("x8") = number, x0 __asm__("x0") = a, x1 __asm__("x1") = b,
		      x2 __asm__("x2") = c, x3 __asm__("x3") = d;

	__asm__ volatile("svc 0" : "+r"(x0) : "r"(x8), "r"(x1), "r"(x2), "r"(x3) : "memory");
	return x0;
#else
	long result = syscall(number, a, b, c, d);

	return result < 0 ? -errno : result;
#endif
}

#endif
