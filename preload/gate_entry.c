/* SPDX-License-Identifier: MIT */
/* From a trampoline to C and back, and the thunks of the real calls. */
#include "preload/gate.h"
#include "preload/process.h"
#include <stddef.h>

__thread uintptr_t shunt_gate_mark __attribute__((visibility("hidden"), tls_model("initial-exec")));

#ifdef __x86_64__

_Static_assert(offsetof(struct shunt_gate_frame, number) == 48 &&
		       offsetof(struct shunt_gate_frame, site) == 56,
	       "as the assembly pushes it");

/*
 * All registers but rax, rcx and r11 are to be as they were, those of vectors too: the kernel keeps them. The 128 bytes
 * below the stack pointer may be in use. The C code that decides has no vector registers. A mark of a thunk is above the
 * stack pointer and near it. An old one is not.
 */
__asm__(".pushsection .text\n"
	".globl shunt_gate_enter\n"
	".hidden shunt_gate_enter\n"
	".type shunt_gate_enter, @function\n"
	"shunt_gate_enter:\n"
	"	endbr64\n"
	"	movq shunt_gate_mark@gottpoff(%rip), %r11\n"
	"	movq %fs:(%r11), %r11\n"
	"	subq %rsp, %r11\n"
	"	cmpq $65536, %r11\n" /* stack between a thunk and the site at which its call ends, at most */
	"	jae 2f\n"
	"	jmp *%rcx\n"
	"2:	leaq -128(%rsp), %rsp\n"
	"	pushq %rcx\n"
	"	pushq %rax\n"
	"	pushq %r9\n"
	"	pushq %r8\n"
	"	pushq %r10\n"
	"	pushq %rdx\n"
	"	pushq %rsi\n"
	"	pushq %rdi\n"
	"	movq %rsp, %rdi\n"
	"	pushq %rbp\n"
	"	movq %rsp, %rbp\n"
	"	andq $-16, %rsp\n"
	"	call shunt_gate_wants\n"
	"	testb %al, %al\n"
	"	jne 1f\n"
	"3:	movq %rbp, %rsp\n"
	"	popq %rbp\n"
	"	popq %rdi\n"
	"	popq %rsi\n"
	"	popq %rdx\n"
	"	popq %r10\n"
	"	popq %r8\n"
	"	popq %r9\n"
	"	popq %rax\n"
	"	popq %rcx\n"
	"	leaq 128(%rsp), %rsp\n"
	"	jmp *%rcx\n"
	"1:	leaq 8(%rbp), %rdi\n"
	"	subq $512, %rsp\n"
	"	fxsave64 (%rsp)\n"
	"	call shunt_gate_call\n"
	"	fxrstor64 (%rsp)\n"
	"	testb %al, %al\n"
	"	je 3b\n"
	"	addq $2, 64(%rbp)\n" /* frame.site: behind the SYSCALL */
	"	jmp 3b\n"
	".size shunt_gate_enter, . - shunt_gate_enter\n"
	".popsection\n");

/* The calls of calls.h that end at a site, and have no argument on the stack. */
/* clang-format off */
#define THUNKS(X)	\
	X(connect) X(listen) X(accept) X(accept4) X(shutdown) X(getsockopt) X(setsockopt) \
	X(ioctl) X(sockatmark) X(fcntl) X(fcntl64) X(close) X(close_range) X(closefrom) \
	X(dup) X(dup2) X(dup3) X(read) X(__read_chk) X(readv) X(preadv2) X(preadv64v2) \
	X(recv) X(__recv_chk) X(recvfrom) X(recvmsg) X(recvmmsg) X(write) X(writev) \
	X(pwritev2) X(pwritev64v2) X(send) X(sendto) X(sendmsg) X(sendmmsg) X(sendfile) \
	X(sendfile64) X(splice) X(poll) X(__poll_chk) X(ppoll) X(__ppoll_chk) X(select) \
	X(pselect) X(epoll_create) X(epoll_create1) X(epoll_ctl) X(epoll_wait) \
	X(epoll_pwait) X(epoll_pwait2) X(fdopen) X(fclose) X(vdprintf) X(__vdprintf_chk) \
	X(posix_spawn) X(posix_spawnp) X(system) X(popen)
/* clang-format on */

/* Where the thunks go. */
static struct shunt_calls behind __attribute__((used));

/* A thread may be cancelled in the call, so its frame is described. r10 and r11 carry no argument. */
#define THUNK(name)                                                                                \
	__asm__(".pushsection .text\n"                                                             \
		".type shunt_gate_thunk_" #name ", @function\n"                                    \
		"shunt_gate_thunk_" #name ":\n"                                                    \
		"	.cfi_startproc\n"                                                                \
		"	endbr64\n"                                                                       \
		"	movq shunt_gate_mark@gottpoff(%rip), %r11\n"                                     \
		"	subq $8, %rsp\n"                                                                 \
		"	.cfi_adjust_cfa_offset 8\n"                                                      \
		"	movq %rsp, %fs:(%r11)\n"                                                         \
		"	call *shunt_gate_behind_" #name "(%rip)\n"                                 \
		"	movq shunt_gate_mark@gottpoff(%rip), %r11\n"                                     \
		"	movq $0, %fs:(%r11)\n"                                                           \
		"	addq $8, %rsp\n"                                                                 \
		"	.cfi_adjust_cfa_offset -8\n"                                                     \
		"	ret\n"                                                                           \
		"	.cfi_endproc\n"                                                                  \
		".size shunt_gate_thunk_" #name ", . - shunt_gate_thunk_" #name "\n"               \
		".popsection\n");                                                                  \
	extern __attribute__((visibility("hidden"))) char thunk_##name[] __asm__(                  \
		"shunt_gate_thunk_" #name);                                                        \
	__attribute__((used, visibility("hidden"))) void *behind_##name __asm__(                   \
		"shunt_gate_behind_" #name);
THUNKS(THUNK)

/* The only one with an argument on the stack. It ends the program if the room is too small. */
static ssize_t recvfrom_checked(int fd, void *buffer, size_t bytes, size_t room, int flags,
				struct sockaddr *address, socklen_t *length)
{
	if (bytes > room)
		return behind.__recvfrom_chk(fd, buffer, bytes, room, flags, address, length);
	return shunt_real.recvfrom(fd, buffer, bytes, flags, address, length);
}

/* The whole of libc's syscall(), whose SYSCALL is a site. Left as it was entered, so that a clone may return twice. */
long shunt_gate_syscall(long number, long a, long b, long c, long d, long e, long f);
long shunt_gate_failed(long error);

__attribute__((used)) long shunt_gate_failed(long error)
{
	errno = (int)error;
	return -1;
}

__asm__(".pushsection .text\n"
	".globl shunt_gate_syscall\n"
	".hidden shunt_gate_syscall\n"
	".type shunt_gate_syscall, @function\n"
	"shunt_gate_syscall:\n"
	"	endbr64\n"
	"	movq %rdi, %rax\n"
	"	movq %rsi, %rdi\n"
	"	movq %rdx, %rsi\n"
	"	movq %rcx, %rdx\n"
	"	movq %r8, %r10\n"
	"	movq %r9, %r8\n"
	"	movq 8(%rsp), %r9\n"
	"	syscall\n"
	"	cmpq $-4095, %rax\n"
	"	jae 1f\n"
	"	ret\n"
	"1:	negq %rax\n"
	"	movq %rax, %rdi\n"
	"	jmp shunt_gate_failed\n"
	".size shunt_gate_syscall, . - shunt_gate_syscall\n"
	".popsection\n");

void shunt_gate_use_thunks(void)
{
	behind = shunt_real;
#define BEHIND(name)                                                                               \
	behind_##name = (void *)behind.name;                                                       \
	shunt_real.name = (__typeof__(behind.name))(void *)thunk_##name;
	THUNKS(BEHIND)
#undef BEHIND
	shunt_real.__recvfrom_chk = recvfrom_checked;
	shunt_real.syscall = (__typeof__(shunt_real.syscall))shunt_gate_syscall;
}

const struct shunt_calls *shunt_gate_behind(void)
{
	return &behind;
}

#else

const struct shunt_calls *shunt_gate_behind(void)
{
	return &shunt_real;
}

void shunt_gate_use_thunks(void)
{
}

#endif
