# SPDX-License-Identifier: MIT
# shellcheck shell=bash disable=SC2154 # lab_*: of lab.sh
# The kernel of a guest and its initramfs. Sourced by lab.sh.

# What a guest loads, in this order; what these need comes before them. rxe asks for crc32 by name at run time, so
# nothing says that it needs crc32_generic, and so does libcrc32c of nf_tables with crc32c. nf_tables alone is enough for rules that drop by port, and nft_nat is for addresses that are translated; overlay is for files that are hidden.
lab_modules="virtio_pci 9pnet_virtio 9p virtio_net veth sch_netem crc32c_generic nf_tables nft_chain_nat nft_nat overlay crc32_generic rdma_rxe
	ib_uverbs rdma_ucm"

# Packages of Debian's newest kernel, or of the one asked for.
kernel_package() {
	[ -z "${LAB_KERNEL:-}" ] || { echo "$LAB_KERNEL" && return; }
	apt-cache depends linux-image-amd64 2>/dev/null |
		sed -n 's/^ *Depends: \(linux-image-[0-9].*\)/\1/p' | tail -n 1
}

# kernel_fetch PACKAGE: unpacks it into the cache, whole or not at all. No maintainer script is run.
kernel_fetch() {
	local package=$1 new version
	new=$(mktemp -d "$lab_cache/new.XXXXXX") || return
	scratch_folders+=("$new")	# goes with the script, should it end here
	if (cd "$new" && apt-get -qq -o APT::Sandbox::User=root download "$package") &&
		dpkg-deb -x "$new"/*.deb "$new/root" && rm -f "$new"/*.deb &&
		version=$(ls "$new/root/lib/modules") && busybox depmod -b "$new/root" "$version" &&
		mv "$new/root" "$lab_cache/$package"; then
		rmdir "$new"
		return
	fi
	rm -rf "$new"
	return 1
}

# Sets kernel (an image) and kernel_modules (its folder of modules). What the cache has is good enough.
kernel_find() {
	local package=${LAB_KERNEL:-} dir
	mkdir -p "$lab_cache" || return
	[ -n "$package" ] || package=$(cd "$lab_cache" && find linux-image-* -maxdepth 0 2>/dev/null | sort -V | tail -n 1)
	if [ -z "$package" ] || [ ! -d "$lab_cache/$package" ]; then
		package=$(kernel_package)
		[ -n "$package" ] || { as_root apt-get -qq update && package=$(kernel_package); } >&2
		[ -n "$package" ] && kernel_fetch "$package" >&2 || return
	fi
	dir=$lab_cache/$package
	for kernel in "$dir"/boot/vmlinuz-*; do :; done
	for kernel_modules in "$dir"/lib/modules/*; do :; done
	[ -f "$kernel" ] && [ -f "$kernel_modules/modules.dep" ]
}

# kernel_build_siw: Debian's kernel leaves out siw (soft iWARP). From Debian's sources of the same kernel it is built into
# the cache. Needs kernel_find. What it says goes to the file named.
kernel_build_siw() { # LOG
	local version=${kernel_modules##*/} folder=drivers/infiniband/sw/siw into new
	into=$kernel_modules/kernel/$folder
	[ ! -f "$into/siw.ko" ] || return 0
	[ "${LAB_INSTALL-}" != no ] && need_packages "to build siw" "linux-headers-$version" make gcc xz-utils >"$1" 2>&1 || return
	new=$(mktemp -d "$lab_cache/new.XXXXXX") || return
	scratch_folders+=("$new")
	(
		cd "$new" && apt-get -qq -o APT::Sandbox::User=root download "linux-source-${version%.*}" &&
			dpkg-deb --fsys-tarfile ./*.deb | tar -xO --wildcards './usr/src/linux-source-*.tar.xz' |
			xz -dc | tar -x --strip-components=1 --wildcards "*/$folder/*" &&
			make -C "/usr/src/linux-headers-$version" "M=$PWD/$folder" CONFIG_RDMA_SIW=m modules &&
			mkdir -p "$into" && cp "$folder/siw.ko" "$into/" &&
			busybox depmod -b "${kernel_modules%/lib/modules/*}" "$version"
	) >>"$1" 2>&1
	rm -rf "$new"
	[ -f "$into/siw.ko" ]
}

# The files of modules in the order in which they have to be loaded. What is built in has no file.
modules_ordered() {
	awk -v wanted="$1" '
		function name(path) { sub(".*/", "", path); sub("\\.ko.*", "", path); return path }
		function load(path,    i, n, need) {
			if (path in seen) return
			seen[path] = 1
			n = split(needs[path], need, " ")
			for (i = n; i > 0; i--) load(need[i])
			print path
		}
		{ path = $1; sub(":", "", path); $1 = ""; needs[path] = $0; file[name(path)] = path }
		END { n = split(wanted, want, " "); for (i = 1; i <= n; i++) if (want[i] in file) load(file[want[i]]) }
	' "$kernel_modules/modules.dep"
}

# initramfs_make FILE: busybox, the modules, and init.
initramfs_make() {
	local root=$lab_work/initramfs path
	mkdir -p "$root/bin" "$root/modules" || return
	cp "$(command -v busybox)" "$root/bin/busybox" && cp "$lab_dir/init" "$root/init" &&
		chmod +x "$root/init" || return
	while read -r path; do
		cp "$kernel_modules/$path" "$root/modules/" && echo "${path##*/}"
	done < <(modules_ordered "$lab_modules") >"$root/modules/order"
	(cd "$root" && find . | busybox cpio -o -H newc 2>/dev/null) >"$1" && rm -rf "$root"
}
