# SPDX-License-Identifier: MIT
# shellcheck shell=bash
# How units start their services, for scripts that start them without systemd. Sourced.

# as_user USER: what is put before a command, as User= has it.
as_user() {
	echo "setpriv --reuid=$1 --regid=$1 --init-groups"
}

# haproxy_config CHROOT [LINE...]: a server of the word "small" at port 7001, which gives root up. LINEs are global.
haproxy_config() {
	local chroot=$1
	shift
	cat <<-END
		global
			user haproxy
			group haproxy
			chroot $chroot
			$(printf '%s\n' "$@")
		defaults
			mode http
			timeout connect 10s
			timeout client 60s
			timeout server 60s
		listen web
			bind 127.0.0.1:7001
			http-request return status 200 content-type text/plain string small
	END
}
