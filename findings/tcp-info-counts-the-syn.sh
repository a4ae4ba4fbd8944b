#!/bin/bash
# SPDX-License-Identifier: MIT
# TCP_INFO says of a connected socket which end has called connect(), though no field is about that.
#
# Seen with Linux 6.18, by Perl 5.36.0 of Debian 12 (perl-base 5.36.0-7+deb12u3): two ends send 1000 and 500 bytes, and
# all of them are acknowledged. At the end that was accepted tcpi_bytes_acked is tcpi_bytes_sent: 500. At the end that has
# connected it is one more: 1001 of 1000. The SYN takes a sequence number, and is acknowledged as a byte is. It was not
# sent as one, because the counts of what is sent are of payload. The SYN of the accepting end is acknowledged before there
# is a socket that could count. tcpi_bytes_received has no such byte at either end. So a process that is handed a socket
# can tell, and one that takes bytes_acked for the bytes that its peer has got is wrong by one at one end.
#
#	tcp-info-counts-the-syn.sh	downloads the package into a temporary folder
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
socket(my $listener, PF_INET, SOCK_STREAM, 0) or die;
bind($listener, pack_sockaddr_in(0, INADDR_LOOPBACK)) or die;
listen($listener, 5) or die;
socket(my $connector, PF_INET, SOCK_STREAM, 0) or die;
connect($connector, getsockname($listener)) or die;
accept(my $acceptor, $listener) or die;

sub pass {
	my ($from, $to, $bytes) = @_;
	syswrite($from, "x" x $bytes) == $bytes or die;
	recv($to, my $got, $bytes, MSG_WAITALL);
	length($got) == $bytes or die;
}

pass($connector, $acceptor, 1000);
pass($acceptor, $connector, 500);	# and acknowledges the first
sub counts {
	my ($name, $socket) = @_;
	my ($acked, $received, $sent) = (0, 0, 0);
	do {	# until all is acknowledged
		my $info = getsockopt($socket, 6, 11) or die "$!";	# IPPROTO_TCP, TCP_INFO
		($acked, $received) = unpack("x120 Q Q", $info);
		($sent) = unpack("x200 Q", $info);
	} while $acked < $sent;
	print "$name: sent $sent, acknowledged $acked, received $received\n";
}
counts("connector", $connector);
counts("acceptor", $acceptor);
END
seen=$(root/usr/bin/perl -I root/usr/lib/x86_64-linux-gnu/perl-base program.pl)
echo "$seen"
[ "$seen" = "connector: sent 1000, acknowledged 1001, received 500
acceptor: sent 500, acknowledged 500, received 1000" ]
