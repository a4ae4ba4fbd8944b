#!/bin/bash
# SPDX-License-Identifier: MIT
# shunt service: what it adds to units, in a folder of an image. Lists of a unit are added to, and none is made. What others
# have written stays.
set -u
. "${top_srcdir:?}/tests/lib.sh"
library=$top_builddir/.libs/libshunt.so
image=$work/image
own=$image/etc/systemd/system shipped=$image/usr/lib/systemd/system

unit() { # NAME LINE...: as a package ships it
	mkdir -p "$shipped" "$own"
	printf '[Unit]\nDescription=test\n[Service]\nExecStart=/usr/sbin/%s -d\n' "${1%.*}" > "$shipped/$1"
	printf '%s\n' "${@:2}" >> "$shipped/$1"
}

# What is added, without the mark, the section and the comments.
added() { # UNIT LINE...
	expect 0 "$shunt" service show --root "$image" "$1"
	[ "$(grep -v '^[#[]' <<<"$out")" = "$(printf '%s\n' "${@:2}")" ] || problem "$1: $out"
}

preload="Environment=\"LD_PRELOAD=$library\""
unit plain.service
added plain "$preload"
added plain.service "$preload"

# Lists.
unit strict.service 'RestrictAddressFamilies=AF_INET AF_INET6' 'NoExecPaths=/' 'ExecPaths=/usr/bin' 'ProtectSystem=strict'
added strict "$preload" RestrictAddressFamilies=AF_UNIX RestrictAddressFamilies=AF_NETLINK "ExecPaths=-${library%/*}" ReadWritePaths=-/run/shunt
unit meets.service $'RestrictAddressFamilies=AF_INET \\\n  AF_UNIX' 'ReadOnlyPaths=-/'
added meets "$preload" RestrictAddressFamilies=AF_NETLINK ReadWritePaths=-/run/shunt
unit denies.service 'RestrictAddressFamilies=~AF_NETLINK AF_PACKET'
added denies "$preload" RestrictAddressFamilies=AF_NETLINK
unit cleared.service 'RestrictAddressFamilies=AF_INET' 'RestrictAddressFamilies=' 'NoExecPaths=/' 'NoExecPaths='
added cleared "$preload"
unit elsewhere.service '[Install]' 'NoExecPaths=/'
added elsewhere "$preload"

# A library that the unit preloads stays; drop-ins of others count, and ours does not.
unit allocator.service 'Environment=A=1 "LD_PRELOAD=/usr/lib/libjemalloc.so.2 /usr/lib/b.so" B=2'
added allocator "Environment=\"LD_PRELOAD=$library:/usr/lib/libjemalloc.so.2:/usr/lib/b.so\""
unit dropped.service
mkdir -p "$own/dropped.service.d"
printf '[Service]\nNoExecPaths=/\n' > "$own/dropped.service.d/hard.conf"
added dropped "$preload" "ExecPaths=-${library%/*}"

# Names: a template's instance has the template's unit and its own drop-in; an alias has what it stands for.
unit many@.service 'ProtectSystem=strict'
added many@one "$preload" ReadWritePaths=-/run/shunt
ln -s ../../../usr/lib/systemd/system/plain.service "$own/alias.service"
expect 0 "$shunt" service enable --root "$image" alias many@one dropped
[ "$out" = "$(printf '%s\n' "$own/plain.service.d/shunt.conf" "$own/many@one.service.d/shunt.conf" "$own/dropped.service.d/shunt.conf")" ] ||
	problem "other files: $out"
added dropped "$preload" "ExecPaths=-${library%/*}"
expect 0 "$shunt" service list --root "$image" --json
python3 -c 'import json, sys; assert [row["unit"] for row in json.load(sys.stdin)] == ["dropped.service", "many@one.service", "plain.service"]' <<<"$out" ||
	problem "not the three units: $out"

# squid's worker takes no library.
unit squid.service
added squid "$preload" ExecStart= 'ExecStart=/usr/sbin/squid -N -d' Restart=on-failure

# What stays, and what is refused.
expect 1 "$shunt" service enable --root "$image" nosuch plain
has "$err" '^shunt service: nosuch: there is no such unit'
has "$out" '/plain.service.d/shunt.conf$'
ln -s /dev/null "$own/masked.service"
expect 1 "$shunt" service enable --root "$image" masked
has "$err" 'masked'
expect 1 "$shunt" service enable --root "$image" a/b
expect 1 "$shunt" service enable --root "$image" plain.socket
mkdir -p "$own/strict.service.d"
echo '# mine' > "$own/strict.service.d/shunt.conf"
expect 1 "$shunt" service enable --root "$image" strict
expect 1 "$shunt" service disable --root "$image" strict
[ "$(cat "$own/strict.service.d/shunt.conf")" = '# mine' ] || problem "another's file was written"
expect 2 "$shunt" service
expect 2 "$shunt" service enable
expect 2 "$shunt" service show --root "$image" plain strict
expect 2 "$shunt" service disable --all plain

# A unit that Shunt cannot help is told.
unit alone.service PrivateNetwork=yes LimitAS=1G RootDirectory=/srv/root
expect 0 "$shunt" service enable --root "$image" alone
has "$err" 'PrivateNetwork=yes'
has "$err" 'LimitAS=1G'
has "$err" 'RootDirectory=/srv/root'

# A cluster of PostgreSQL.
unit postgresql@.service
sed -i 's|^ExecStart=.*|ExecStart=-/usr/bin/pg_ctlcluster --skip-systemctl-redirect %i start|' "$shipped/postgresql@.service"
variables=$image/etc/postgresql/15/main/environment
mkdir -p "${variables%/*}"
printf '# of the cluster\nTZ = '\''UTC'\''\n' > "$variables"
chmod 640 "$variables"
echo secret > "$work/victim"
ln -s "$work/victim" "$variables.new"	# the folder is not root's
cp "$variables" "$work/before"
expect 0 "$shunt" service enable --root "$image" postgresql@15-main
expect 0 "$shunt" service enable --root "$image" postgresql@15-main
[ "$(cat "$work/victim")" = secret ] || problem "a link was followed"
[ "$(grep -c LD_PRELOAD "$variables")" = 1 ] || problem "not one line: $(cat "$variables")"
expect 0 "$shunt" service list --root "$image"
has "$out" '^postgresql@15-main.service '
expect 0 "$shunt" service disable --root "$image" postgresql@15-main
[ "$(stat -c %a "$variables")" = 640 ] || problem "the cluster's file has another mode"
cmp -s "$variables" "$work/before" || problem "the cluster's file is not as it was"
expect 1 "$shunt" service disable --root "$image" postgresql@15-main
printf "A = 'b'" >> "$variables"
expect 0 "$shunt" service enable --root "$image" postgresql@15-main
grep -qx "A = 'b'" "$variables" || problem "two lines are one: $(cat "$variables")"
expect 0 "$shunt" service disable --root "$image" postgresql@15-main
rm "$variables"
ln -s "$work/victim" "$variables"
expect 1 "$shunt" service enable --root "$image" postgresql@15-main
rm "$variables"
echo "LD_PRELOAD = '/x.so'" > "$variables"
expect 1 "$shunt" service enable --root "$image" postgresql@15-main
has "$err" 'it preloads a library already'

# All go, also of a unit that is gone.
rm "$shipped/dropped.service"
expect 0 "$shunt" service disable --root "$image" --all
expect 0 "$shunt" service list --root "$image"
[ ! "$out" ] || problem "left: $out"
[ ! -e "$own/plain.service.d" ] || problem "an empty folder is left"
[ -e "$own/dropped.service.d/hard.conf" ] || problem "another's drop-in is gone"
finish
