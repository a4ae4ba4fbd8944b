# SPDX-License-Identifier: MIT
# shellcheck shell=bash
# For tools/quickstart and tools/check: what a fresh machine lacks, and a build directory.

# shellcheck disable=SC2034 # these are used by the scripts that source this one
build_packages="build-essential autoconf automake libtool pkg-config libibverbs-dev librdmacm-dev libjansson-dev systemtap-sdt-dev libmicrohttpd-dev libncurses-dev"
# shellcheck disable=SC2034
compare_packages="redis-server redis-tools iperf3"
# shellcheck disable=SC2034
check_packages="libcmocka-dev shellcheck cppcheck jq iproute2 python3 python3-yaml tcpdump tmux"
# shellcheck disable=SC2034 # libFuzzer is clang's, and its compiler-rt is recommended by it
fuzz_packages="clang libclang-rt-dev"
# shellcheck disable=SC2034
format_packages="clang-format clang"
# shellcheck disable=SC2034
package_packages="libcmocka-dev debhelper dpkg-dev fakeroot lintian blhc rpm rpmlint mmdebstrap zsh fish man-db"
# shellcheck disable=SC2034 # to boot a system with Debian's services
units_packages="libcmocka-dev debhelper dpkg-dev fakeroot mmdebstrap systemd-container systemtap-sdt-dev"
# shellcheck disable=SC2034 # to run guests with RDMA devices, and what runs in them
lab_packages="qemu-system-x86 busybox-static iproute2 rdma-core rdmacm-utils ibverbs-utils ibverbs-providers nftables jq strace redis-server redis-tools iperf3 perftest"

say() {
	printf '\n== %s\n' "$*"
}

as_root() {
	if [ "$(id -u)" = 0 ]; then
		"$@"
	elif command -v sudo >/dev/null; then
		sudo "$@"
	else
		printf 'This needs root, and there is no sudo. As root, run:\n    %s\n' "$*" >&2
		return 1
	fi
}

is_installed() {
	[[ "$(dpkg-query -W -f '${db:Status-Status}' "$1" 2>/dev/null)" == installed* ]]	# once for each architecture
}

# need_packages WHY PACKAGE…: installs those that are missing, saying so.
need_packages() {
	local why=$1 missing=() package
	shift
	if ! command -v dpkg-query >/dev/null; then
		echo "Not a Debian system: taking it that the counterparts of these are installed: $*"
		return 0
	fi
	for package; do
		is_installed "$package" || missing+=("$package")
	done
	[ ${#missing[@]} = 0 ] && return 0
	say "Installing what is missing $why: ${missing[*]}"
	as_root apt-get -qq update || return
	as_root env DEBIAN_FRONTEND=noninteractive apt-get -qq install -y --no-install-recommends \
		"${missing[@]}"
}

need_configure() {
	local file
	[ -x configure ] && [ -f Makefile.in ] && [ -f build-aux/ltmain.sh ] || return 0
	for file in configure.ac Makefile.am ./*/local.mk ./*/*/local.mk ./*/*/*/local.mk; do
		[ "$file" -nt Makefile.in ] && return 0
	done
	return 1
}

# Run quietly; show what was said only if it went wrong. quietly LOG COMMAND…
quietly() {
	local log=$1
	shift
	"$@" >"$log" 2>&1 && return
	tail -n 60 "$log" >&2
	echo "(all of it is in $log)" >&2
	return 1
}

# One at a time in a tree, whose directory is the lock.
generate() { # DIR
	local tree status=0
	exec {tree}<. && flock "$tree" || return
	if need_configure; then
		say "Generating configure"
		quietly "$1/autoreconf.log" autoreconf -fi || status=1
	fi
	exec {tree}<&-
	return $status
}

# In dash configure, make and libtool take a quarter less time than in bash, which configure would choose.
if [ -x /bin/dash ]; then export CONFIG_SHELL=${CONFIG_SHELL:-/bin/dash}; fi

# configure_in DIR [CONFIGURE OPTION…]: where it is needed.
configure_in() {
	local dir=$1
	shift
	mkdir -p "$dir" || return
	generate "$dir" || return
	[ ! -f "$dir/Makefile" ] || [ "$(cat "$dir/configured-with" 2>/dev/null)" != "$*" ] || return 0
	say "Configuring in $dir/ $*"
	(cd "$dir" && quietly configure.log ../configure "$@") || return
	echo "$*" >"$dir/configured-with"
}

# build_in DIR [CONFIGURE OPTION…]: configures where needed, and builds the products.
build_in() {
	configure_in "$@" || return
	say "Building in $1/"
	make -C "$1" --no-print-directory -j"$(nproc)"
}
