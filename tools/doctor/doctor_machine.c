/* SPDX-License-Identifier: MIT */
/* The requirements of README.md on a machine, each with its check. */
#include "tools/doctor/doctor.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/base/space.h"
#include "tools/doctor/devices.h"
#include "tools/shunt.h"

#define TEXT_BYTES 256
#define NOFILE_LEAST 256 /* below, the descriptors of a few links are a large part */
#define ABOVE "/run/shunt"

/* ---- the kernel ---- */

static void check_version(struct shunt_findings *findings, const char *root)
{
	char release[TEXT_BYTES];
	int major = 0, minor = 0;

	shunt_tree_read(root, release, sizeof(release), "/proc/sys/kernel/osrelease");
	if (sscanf(release, "%d.%d", &major, &minor) != 2) {
		shunt_findings_add(findings, SHUNT_WARN, "kernel",
				   "/proc does not tell the kernel's version");
		shunt_findings_advise(
			findings,
			"mount /proc; in a chroot only the kernel's witness proves connections");
	} else if (major < 5 || (major == 5 && minor < 11)) {
		shunt_findings_add(findings, SHUNT_BAD, "kernel", "Linux %s is older than 5.11",
				   release);
		shunt_findings_advise(findings, "upgrade the kernel to 5.11 or later");
	} else {
		shunt_findings_add(findings, SHUNT_WELL, "kernel", "Linux %s", release);
	}
}

static void check_memfd(struct shunt_findings *findings)
{
	int fd = memfd_create("shunt", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	bool well = fd >= 0 && !ftruncate(fd, 4096) && !fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK);
	int error = errno;

	if (fd >= 0)
		close(fd);
	if (well) {
		shunt_findings_add(findings, SHUNT_WELL, "memory",
				   "sealed shared memory (memfd_create)");
		return;
	}
	shunt_findings_add(findings, SHUNT_BAD, "memory",
			   "no sealed shared memory (memfd_create): %s", strerror(error));
	shunt_findings_advise(
		findings, "allow memfd_create(2) in the seccomp filter of the container or unit");
}

static void check_witness(struct shunt_findings *findings)
{
	int tcp = shunt_doctor_sock_diag(AF_INET), local = shunt_doctor_sock_diag(AF_UNIX);

	if (!tcp && !local) {
		shunt_findings_add(
			findings, SHUNT_WELL, "sock_diag",
			"the kernel shows the holders of connections (tcp_diag, unix_diag)");
		return;
	}
	shunt_findings_add(
		findings, SHUNT_WARN, "sock_diag",
		"the kernel does not show the holders of connections (%s: %s), so processes that may not "
		"trace each other stay on TCP",
		tcp ? "tcp_diag" : "unix_diag", strerror(-(tcp ? tcp : local)));
	if (tcp == -ENOENT || local == -ENOENT)
		shunt_findings_advise(
			findings,
			"modprobe tcp_diag unix_diag, and name both in /etc/modules-load.d");
	else
		shunt_findings_advise(
			findings, "allow AF_NETLINK: RestrictAddressFamilies= of the unit, or the "
				  "seccomp filter of the container");
}

/* Where the processor's counter is not trusted, each look at the clock is a system call. */
static void check_clock(struct shunt_findings *findings, const char *root)
{
	static const char *const fast[] = { "tsc", "kvm-clock", "hyperv_clocksource_tsc_page",
					    "arch_sys_counter" };
	char source[TEXT_BYTES];
	bool known = false;

	if (shunt_tree_read(root, source, sizeof(source),
			    "/sys/devices/system/clocksource/clocksource0/current_clocksource") <=
	    0)
		return;
	for (size_t i = 0; i < sizeof(fast) / sizeof(fast[0]); i++)
		known |= !strcmp(source, fast[i]);
	shunt_findings_add(
		findings, known ? SHUNT_WELL : SHUNT_WARN, "clock",
		known ? "the clock is %s" :
			"the clock is %s, so each look at it is a system call and links are slower",
		source);
	if (!known)
		shunt_findings_advise(
			findings,
			"see dmesg why the kernel does not trust the TSC (clocksource=tsc, "
			"tsc=reliable)");
}

static void check_security(struct shunt_findings *findings, const char *root)
{
	char modules[TEXT_BYTES], hidden[TEXT_BYTES];

	if (shunt_tree_read(root, modules, sizeof(modules), "/sys/kernel/security/lsm") > 0)
		shunt_findings_add(findings, SHUNT_WELL, "security", "security modules: %s",
				   modules);
	/* Attaching alone is restricted by it; proofs between processes of one user read only. */
	if (shunt_tree_read(root, hidden, sizeof(hidden), "/proc/sys/kernel/yama/ptrace_scope") > 0)
		shunt_findings_add(
			findings, SHUNT_WELL, "ptrace",
			"yama's ptrace_scope is %s: it concerns debuggers, not SHUNT_TRUST=user",
			hidden);
}

/* ---- limits of this shell ---- */

static void check_descriptors(struct shunt_findings *findings)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit))
		return;
	if (limit.rlim_cur >= NOFILE_LEAST) {
		shunt_findings_add(findings, SHUNT_WELL, "nofile", "%llu descriptors (ulimit -n)",
				   (unsigned long long)limit.rlim_cur);
		return;
	}
	shunt_findings_add(
		findings, SHUNT_WARN, "nofile",
		"programs may have %llu descriptors only (ulimit -n); each link needs a handful in the upper half",
		(unsigned long long)limit.rlim_cur);
	shunt_findings_advise(findings, "raise ulimit -n, or LimitNOFILE= of the unit");
}

static void check_space(struct shunt_findings *findings)
{
	struct shunt_space space = shunt_space_read();

	if (space.limit == SHUNT_SPACE_UNLIMITED)
		return;
	shunt_findings_add(
		findings, SHUNT_WARN, "space",
		"programs may have %llu MiB of addresses (ulimit -v): links are small, and RDMA devices are not used",
		(unsigned long long)(space.limit >> 20));
	shunt_findings_advise(findings, "ulimit -v unlimited, or LimitAS=infinity of the unit");
}

/* ---- the library ---- */

static void check_library(struct shunt_findings *findings)
{
	char path[PATH_MAX];
	int error;

	if (shunt_library_locate(path)) {
		shunt_findings_add(
			findings, SHUNT_BAD, "library",
			"libshunt.so is neither beside this program nor where it was to be installed");
		shunt_findings_advise(findings,
				      "make install, or run the command of the build tree");
		return;
	}
	error = -shunt_library_loads(path);
	if (!error) {
		shunt_findings_add(findings, SHUNT_WELL, "library", "%s", path);
		return;
	}
	shunt_findings_add(findings, SHUNT_BAD, "library", "%s cannot be loaded: %s", path,
			   strerror(error));
	if (error == EPERM)
		shunt_findings_advise(
			findings,
			"its file system is mounted noexec, or is so for this unit: install it "
			"elsewhere, mount -o remount,exec, or ExecPaths=");
	else
		shunt_findings_advise(findings, "let this user read and execute the file");
}

/* ---- names of rendezvous ---- */

static bool is_safe(const struct stat *st)
{
	return S_ISDIR(st->st_mode) && st->st_uid == 0 &&
	       (!(st->st_mode & (S_IWGRP | S_IWOTH)) || st->st_mode & S_ISVTX);
}

static void check_run(struct shunt_findings *findings)
{
	struct stat st, run;
	char own[64];

	if (lstat(ABOVE, &st)) {
		shunt_findings_add(
			findings, SHUNT_WELL, "run",
			"there is no " ABOVE
			": rendezvous have abstract names, which any user may take first");
		return;
	}
	snprintf(own, sizeof(own), ABOVE "/%u", geteuid());
	if (!is_safe(&st)) {
		shunt_findings_add(
			findings, SHUNT_BAD, "run",
			ABOVE
			" is not a folder of root's that is sticky where others may write: it is not used");
		shunt_findings_advise(findings,
				      "chown root " ABOVE "; chmod 1777 " ABOVE
				      " (`systemd-tmpfiles --create shunt.conf` does it)");
	} else if (st.st_mode & S_IWOTH && !lstat("/run", &run) && run.st_dev == st.st_dev) {
		shunt_findings_add(findings, SHUNT_WARN, "run",
				   ABOVE
				   " is on the file system of /run, which any user can fill there");
		shunt_findings_advise(
			findings,
			"mount a small tmpfs there (`systemctl enable --now run-shunt.mount` does it)");
	} else if (access(own, F_OK) && access(ABOVE, W_OK)) {
		shunt_findings_add(findings, SHUNT_WARN, "run",
				   "%s is not there and this user may not make it", own);
		shunt_findings_advise(
			findings, "chmod 1777 " ABOVE ", or make %s and give it to the user", own);
	} else {
		shunt_findings_add(findings, SHUNT_WELL, "run",
				   ABOVE " is there: no other user can take a name");
	}
}

/* ---- all ---- */

void shunt_doctor_machine(struct shunt_findings *findings, const char *root)
{
	check_version(findings, root);
	check_clock(findings, root);
	check_security(findings, root);
	if (!*root) {
		check_memfd(findings);
		check_witness(findings);
		check_descriptors(findings);
		check_space(findings);
		check_library(findings);
		check_run(findings);
	}
	shunt_doctor_devices(findings, root);
}
