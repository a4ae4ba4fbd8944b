/* SPDX-License-Identifier: MIT */
/* From a trampoline to C on the thread's own stack, and back. */
#include "preload/go/go.h"
#include <errno.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#ifdef __x86_64__

#define STACK 262144		/* bytes: what a thread's C code may use */
#define GUARD 4096

/* The words below are known to the assembly by their offsets. */
struct shunt_go_thread {
	uint64_t busy;		/*  0: the thread is in C; a handler's calls meanwhile go to the kernel */
	uint8_t *top;		/*  8: the end of its stack; NULL: it has none yet */
	uint64_t stack;		/* 16: Go's stack pointer meanwhile */
	uint64_t saved[8];	/* 24: registers while the stack is made */
};

_Static_assert(offsetof(struct shunt_go_thread, top) == 8 &&
		       offsetof(struct shunt_go_thread, stack) == 16 &&
		       offsetof(struct shunt_go_thread, saved) == 24,
	       "as the assembly has it");

__attribute__((visibility("hidden"),
	       tls_model("initial-exec"))) __thread struct shunt_go_thread shunt_go_thread;

static const struct shunt_go_host *go_host;
static pthread_key_t go_key;

/* A thread ends on the stack of libc. One that calls again later in its end is given another. */
static void forget_stack(void *top)
{
	shunt_go_thread.top = NULL;
	munmap((uint8_t *)top - STACK, STACK);
}

bool shunt_go_entry_begin(const struct shunt_go_host *host)
{
	go_host = host;
	return !pthread_key_create(&go_key, forget_stack);
}

int32_t shunt_go_busy_offset(void)
{
	uint8_t *pointer;

	__asm__("movq %%fs:0, %0" : "=r"(pointer));
	return (int32_t)((uint8_t *)&shunt_go_thread.busy - pointer);
}

/* Called by the assembly, on the new stack. */
void shunt_go_stack_made(void);
long shunt_go_call(long number, long a, long b, long c, long d, long e, long f);
void shunt_go_shares(void);

__attribute__((used)) void shunt_go_stack_made(void)
{
	int saved = errno;

	(void)mprotect(shunt_go_thread.top - STACK, GUARD, PROT_NONE);
	(void)pthread_setspecific(go_key, shunt_go_thread.top);
	errno = saved;
}

/* Code in C that a handler of Go's has interrupted finds its errno. */
__attribute__((used)) long shunt_go_call(long number, long a, long b, long c, long d, long e,
					 long f)
{
	int saved = errno;
	bool last = number == SYS_epoll_pwait && !(int)d; /* netpoll(0), which netpoll(-1) follows */
	long result;

	if (last)
		go_host->sleeps_next(true);
	result = go_host->call(number, a, b, c, d, e, f);
	if (last)
		go_host->sleeps_next(false);
	if (result == -1)
		result = -errno;
	errno = saved;
	return result;
}

__attribute__((used)) void shunt_go_shares(void)
{
	go_host->shares();
}

/*
 * rax has the number, and rdi, rsi, rdx, r10, r8, r9 the arguments. All but rax, rcx and r11 are to be as they were. The
 * kernel keeps vector registers, C does not. Go expects none of them across a call but xmm15, which is zero.
 * A thread is given its stack without one: by a system call, with its registers in thread-local memory. If there is no
 * memory, the call fails with ENOMEM.
 */
__asm__(".pushsection .text\n"

	".macro shunt_go_own\n"
	"	movq shunt_go_thread@gottpoff(%rip), %r11\n"
	".endm\n"

	/* For both: as busy, on the own stack, with what SYSCALL keeps saved there. rcx: the SYSCALL of the trampoline. */
	".macro shunt_go_to_c name\n"
	"	shunt_go_own\n"
	"	cmpq $0, %fs:(%r11)\n"
	"	jne shunt_go_pass\n"
	"	movq $1, %fs:(%r11)\n"
	"	movq %rsp, %fs:16(%r11)\n"
	"	cmpq $0, %fs:8(%r11)\n"
	"	je shunt_go_make_stack_\\name\n"
	"shunt_go_has_stack_\\name:\n"
	"	movq %fs:8(%r11), %rsp\n"
	"	pushq %rcx\n"
	"	pushq %rdi\n"
	"	pushq %rsi\n"
	"	pushq %rdx\n"
	"	pushq %r10\n"
	"	pushq %r8\n"
	"	pushq %r9\n"
	".endm\n"

	".macro shunt_go_from_c\n"
	"	popq %r9\n"
	"	popq %r8\n"
	"	popq %r10\n"
	"	popq %rdx\n"
	"	popq %rsi\n"
	"	popq %rdi\n"
	"	popq %rcx\n"
	"	shunt_go_own\n"
	"	movq %fs:16(%r11), %rsp\n"
	"	movq $0, %fs:(%r11)\n"
	"	xorps %xmm15, %xmm15\n"
	".endm\n"

	".macro shunt_go_make_stack name\n"
	"shunt_go_make_stack_\\name:\n"
	"	movq %rax, %fs:24(%r11)\n"
	"	movq %rcx, %fs:32(%r11)\n"
	"	movq %rdi, %fs:40(%r11)\n"
	"	movq %rsi, %fs:48(%r11)\n"
	"	movq %rdx, %fs:56(%r11)\n"
	"	movq %r10, %fs:64(%r11)\n"
	"	movq %r8, %fs:72(%r11)\n"
	"	movq %r9, %fs:80(%r11)\n"
	"	movl $9, %eax\n"		/* mmap */
	"	xorl %edi, %edi\n"
	"	movl $262144, %esi\n"		/* STACK */
	"	movl $3, %edx\n"		/* PROT_READ | PROT_WRITE */
	"	movl $0x24022, %r10d\n"		/* MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK */
	"	movq $-1, %r8\n"
	"	xorl %r9d, %r9d\n"
	"	syscall\n"
	"	shunt_go_own\n"
	"	cmpq $-4096, %rax\n"
	"	ja 1f\n"
	"	addq $262144, %rax\n"
	"	movq %rax, %fs:8(%r11)\n"
	"	movq %rax, %rsp\n"
	"	call shunt_go_stack_made\n"
	"	shunt_go_own\n"
	"	movq %fs:24(%r11), %rax\n"
	"	movq %fs:32(%r11), %rcx\n"
	"	movq %fs:40(%r11), %rdi\n"
	"	movq %fs:48(%r11), %rsi\n"
	"	movq %fs:56(%r11), %rdx\n"
	"	movq %fs:64(%r11), %r10\n"
	"	movq %fs:72(%r11), %r8\n"
	"	movq %fs:80(%r11), %r9\n"
	"	jmp shunt_go_has_stack_\\name\n"
	"1:	movq %fs:32(%r11), %rcx\n"
	"	movq %fs:40(%r11), %rdi\n"
	"	movq %fs:48(%r11), %rsi\n"
	"	movq %fs:56(%r11), %rdx\n"
	"	movq %fs:64(%r11), %r10\n"
	"	movq %fs:72(%r11), %r8\n"
	"	movq %fs:80(%r11), %r9\n"
	"	movq $0, %fs:(%r11)\n"
	"	movq $-12, %rax\n"		/* -ENOMEM */
	"	addq $2, %rcx\n"
	"	jmp *%rcx\n"
	".endm\n"

	".globl shunt_go_pass\n"
	".hidden shunt_go_pass\n"
	".type shunt_go_pass, @function\n"
	"shunt_go_pass:\n"
	"	jmp *%rcx\n"
	".size shunt_go_pass, . - shunt_go_pass\n"

	".globl shunt_go_enter\n"
	".hidden shunt_go_enter\n"
	".type shunt_go_enter, @function\n"
	"shunt_go_enter:\n"
	"	shunt_go_to_c call\n"
	"	pushq %r9\n"
	"	movq %r8, %r9\n"
	"	movq %r10, %r8\n"
	"	movq %rdx, %rcx\n"
	"	movq %rsi, %rdx\n"
	"	movq %rdi, %rsi\n"
	"	movq %rax, %rdi\n"
	"	call shunt_go_call\n"
	"	addq $8, %rsp\n"
	"	shunt_go_from_c\n"
	"	addq $2, %rcx\n"	/* behind the SYSCALL of the trampoline */
	"	jmp *%rcx\n"
	"	shunt_go_make_stack call\n"
	".size shunt_go_enter, . - shunt_go_enter\n"

	".globl shunt_go_enter_vfork\n"
	".hidden shunt_go_enter_vfork\n"
	".type shunt_go_enter_vfork, @function\n"
	"shunt_go_enter_vfork:\n"
	"	shunt_go_to_c vfork\n"
	"	pushq %rax\n"
	"	call shunt_go_shares\n"
	"	popq %rax\n"
	"	shunt_go_from_c\n"
	"	jmp *%rcx\n"
	"	shunt_go_make_stack vfork\n"
	".size shunt_go_enter_vfork, . - shunt_go_enter_vfork\n"
	".popsection\n");

#else

bool shunt_go_entry_begin(const struct shunt_go_host *host)
{
	(void)host;
	return false;
}

#endif
