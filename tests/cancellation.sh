#!/bin/bash
# SPDX-License-Identifier: MIT
# Of the functions of libc that core/ calls by name none is a cancellation point (core/poll/cancel.h), but for what is listed
# here with its reason.
set -eu

library=${top_builddir:?}/libshuntcore.a
# shellcheck source-path=SCRIPTDIR source=scratch.sh
. "${top_srcdir:?}/tests/scratch.sh"
scratch cancellation
work=$scratch

[ -f "$library" ] || { echo "there is no $library"; exit 77; }

# pthreads(7), and what else glibc has made one.
tr -s ' \t' '\n' > "$work/points" << 'END'
accept accept4 clock_nanosleep close closedir connect copy_file_range creat epoll_pwait epoll_pwait2 epoll_wait
fallocate fallocate64 fcntl fcntl64 fdatasync fgets fopen fopen64 fprintf fputs fread fsync fwrite getdents64 getline
getrandom lockf msgrcv msgsnd msync nanosleep open open64 openat openat64 opendir pause poll ppoll pread pread64 preadv
preadv2 preadv64v2 printf pselect pthread_cond_timedwait pthread_cond_wait pthread_join puts pwrite pwrite64 pwritev
pwritev2 pwritev64v2 read readdir readv recv recvfrom recvmmsg recvmsg select sem_timedwait sem_wait send sendmmsg
sendmsg sendto sigsuspend sigtimedwait sigwait sigwaitinfo sleep splice sync_file_range system tcdrain tee usleep
vmsplice wait wait3 wait4 waitid waitpid write writev
END

# OBJECT CALL, and why it does no harm.
sed 's/ *#.*//' > "$work/allowed" << 'END'
iwarp close			# service thread, as are the next
iwarp closedir
iwarp open
iwarp opendir
iwarp read
iwarp readdir
remote closedir			# service thread, which nobody cancels
remote opendir
remote readdir
meeting_dir closedir		# service thread
meeting_dir readdir
meeting_dir openat		# cancellation is held off, or the service thread
ask getrandom
attach close			# service thread, or cancellation is held off
attach open
attach read
leave pthread_join		# cancellation is held off
channel preadv2			# a descriptor of our own: preload/read.c, write.c
channel read
channel write
thread write
cm fcntl			# not F_SETLKW
memfd fcntl
peer fcntl
waiter fcntl
guard fcntl
memfd close			# of a device whose owner does not keep its descriptors
sink open			# a device is opened: service thread
context read			# asynchronous events: service thread
context epoll_pwait		# of a device without an engine; with one, the engine's calls take their place
context recvmmsg
context sendmsg
screen open			# service thread
engine getrandom		# cancellation is held off
facts open			# cancellation is held off, or the service thread
facts read
hw_counters close		# cancellation is held off, or the service thread
hw_counters closedir
hw_counters open
hw_counters openat
hw_counters read
hw_counters readdir
conf_file close			# cancellation is held off (preload/once.c)
conf_file open
conf_file read
keyfile close			# cancellation is held off
keyfile open
keyfile read
log close
log poll			# log.c holds cancellation off
log write
no_new_privs sem_wait		# cancellation is held off
outfile close			# of the log, or of the statistics at exit
outfile getrandom
outfile open
outfile openat
overflow close			# cancellation is held off
overflow open
overflow read
space close			# cancellation is held off, or the service thread
space open
space read
write_nosig sigtimedwait
library dlopen			# none in glibc
pd close			# a new segment: service thread
thread pthread_cond_timedwait	# the modelled device's own thread
thread pthread_cond_wait
thread pthread_join
uring open			# service thread, which nobody cancels
END
tr -s '\t' ' ' < "$work/allowed" | sed 's/ *$//' | sort -u > "$work/may"

nm -A "$library" | sed -nE 's/.*:libshuntcore_a-([a-z_0-9]+)\.o:.* U ([a-zA-Z_0-9]+)$/\1 \2/p' |
	awk 'NR == FNR { point[$1] = 1; next } point[$2]' "$work/points" - | sort -u > "$work/calls"
[ -s "$work/calls" ] || { echo "no calls found in $library"; exit 1; }
comm -13 "$work/may" "$work/calls" > "$work/more"
if [ -s "$work/more" ]; then
	echo "cancellation points that core/ calls (object, function); see core/poll/cancel.h:"
	cat "$work/more"
	exit 1
fi
echo "$(wc -l < "$work/calls") calls"
