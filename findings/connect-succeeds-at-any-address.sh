#!/bin/bash
# SPDX-License-Identifier: MIT
# A TCP socket that is connected already says once more that connect() has succeeded, whatever address it is given.
#
# Seen with Linux 6.18, by Perl 5.36.0 of Debian 12 (perl-base 5.36.0-7+deb12u3): a socket that does not block connects to
# a listener, and says EINPROGRESS. It becomes writable, SO_ERROR is 0, and a byte is written. connect() to a port at which
# nobody listens is 0 then, and the peer is the listener as before. The next one says EISCONN. The kernel keeps "being
# connected" in the socket, beside TCP's own state, and only connect() ends it: it looks at no address there but for its
# length and family. A program that asks SO_ERROR, as most do, never hears this word. Whoever gets the descriptor does.
#
#	connect-succeeds-at-any-address.sh	downloads the package into a temporary folder
#
# Exit status: 0 as described, 1 not any more, 77 the package is not to be had.
set -u
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder" || exit 77
apt-get download -q perl-base=5.36.0-7+deb12u3 > apt.log 2>&1 || {
	tail -1 apt.log
	exit 77
}
dpkg -x ./*.deb root || exit 77
cat > program.pl <<'END'
use Socket;
use Fcntl;
use Errno;
socket(my $listener, PF_INET, SOCK_STREAM, 0) or die;
bind($listener, pack_sockaddr_in(0, INADDR_LOOPBACK)) or die;
listen($listener, 5) or die;
my ($port) = unpack_sockaddr_in(getsockname($listener));
socket(my $silent, PF_INET, SOCK_STREAM, 0) or die;
bind($silent, pack_sockaddr_in(0, INADDR_LOOPBACK)) or die;
my ($nobody) = unpack_sockaddr_in(getsockname($silent));
socket(my $s, PF_INET, SOCK_STREAM, 0) or die;
fcntl($s, F_SETFL, O_RDWR | O_NONBLOCK) or die;

sub call {
	my ($where, $to) = @_;
	$! = 0;
	my $done = connect($s, pack_sockaddr_in($to, INADDR_LOOPBACK));
	print "connect to $where: ", $done ? "0" : (grep { $!{$_} } qw(EINPROGRESS EISCONN ECONNREFUSED))[0], "\n";
}

call("the listener", $port);
vec(my $writable = '', fileno($s), 1) = 1;
select(undef, $writable, undef, undef);
print "SO_ERROR: ", unpack("i", getsockopt($s, SOL_SOCKET, SO_ERROR)), "\n";
syswrite($s, "x") == 1 or die;
call("nobody", $nobody);
call("nobody", $nobody);
my ($peer) = unpack_sockaddr_in(getpeername($s));
print "peer: ", $peer == $port ? "the listener" : "another", "\n";
END
seen=$(root/usr/bin/perl -I root/usr/lib/x86_64-linux-gnu/perl-base program.pl)
echo "$seen"
[ "$seen" = "connect to the listener: EINPROGRESS
SO_ERROR: 0
connect to nobody: 0
connect to nobody: EISCONN
peer: the listener" ]
