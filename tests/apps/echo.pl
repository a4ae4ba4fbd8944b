# SPDX-License-Identifier: MIT
# echo.pl select|fork PORT: sends back what comes. echo.pl client PORT LINES: a client that checks each line.
use strict;
use warnings;
use IO::Select;
use IO::Socket::INET;
use POSIX ();

my ($kind, $port, $lines) = @ARGV;

if ($kind eq 'client') {
	my $socket = IO::Socket::INET->new(PeerAddr => '127.0.0.1', PeerPort => $port) or die $!;
	for my $i (1 .. $lines) {
		my $line = "line $i " . 'x' x ($i % 700) . "\n";
		print $socket $line;
		$socket->flush;
		die "line $i" if <$socket> ne $line;
	}
	$socket->shutdown(1);
	die 'no end' if defined <$socket>;
	print "$lines lines\n";
	exit 0;
}

$SIG{TERM} = sub { POSIX::_exit(0) };
$SIG{CHLD} = 'IGNORE';
my $listener = IO::Socket::INET->new(LocalAddr => '127.0.0.1', LocalPort => $port, Listen => 100, ReuseAddr => 1) or die $!;

sub echo {
	my ($socket) = @_;
	my $got = sysread($socket, my $data, 65536);
	return 0 unless $got;
	for (my $done = 0; $done < $got;) {
		my $n = syswrite($socket, $data, $got - $done, $done);
		return 0 unless $n;
		$done += $n;
	}
	return 1;
}

if ($kind eq 'fork') {
	while (1) {
		my $socket = $listener->accept or next;
		if (!fork) {
			close $listener;
			while (echo($socket)) { }
			POSIX::_exit(0);
		}
		close $socket;
	}
}
my $all = IO::Select->new($listener);
while (1) {
	for my $ready ($all->can_read) {
		if ($ready == $listener) {
			$all->add($listener->accept);
		} elsif (!echo($ready)) {
			$all->remove($ready);
			close $ready;
		}
	}
}
