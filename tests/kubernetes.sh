#!/bin/bash
# SPDX-License-Identifier: MIT
# contrib/kubernetes: the example's pods are as the policy makes them. The manifests are what the API's models allow, and the
# policy's expressions are CEL. npm has both, from its cache or a registry; under `make check` there is no network, so only
# what a run by hand has left in the cache. podman runs the example, as root and with crun and redis: both pods of one host
# have 95 % of their bytes on the link. The containers' files are this machine's, and their network is the test's own. TAP.
# shellcheck source-path=SCRIPTDIR source=calls/lib.sh disable=SC2317
set -u
. "$(dirname "$0")/calls/lib.sh"
manifests=$(cd "$here/../../contrib/kubernetes" && pwd)

# --- two pods ---

# A tree with programs of this machine and their libraries.
tree() { # FOLDER PROGRAM...
	local folder=$1 path
	shift
	mkdir -p "$folder"/{bin,usr/bin,tmp,proc,sys,dev,etc}
	for path; do
		path=$(command -v "$path") || return
		cp -L "$path" "$folder/usr/bin/" && ln -sf "/usr/bin/${path##*/}" "$folder/bin/${path##*/}"
		ldd "$path" | grep -o '/[^ ]*' | while read -r path; do
			mkdir -p "$folder${path%/*}" && cp -Ln "$path" "$folder$path"
		done
	done
}

# A runtime without those of podman's wishes that a container, such as this machine may be, cannot grant: limits of devices and
# memory, and a cgroup below one with such limits.
write_runtime() { # FILE
	cat >"$1" <<-'end'
		#!/bin/bash
		for word; do
			case ${before-} in --bundle | -b)
				jq 'del(.linux.resources) | .linux.cgroupsPath |= sub("libpod_parent"; "shunt_test")' \
					"$word/config.json" >"$word/config.new" && mv "$word/config.new" "$word/config.json" ;;
			esac
			before=$word
		done
		exec crun "$@"
	end
	chmod +x "$1"
}

configure_podman() {
	export HOME=$work/home CONTAINERS_CONF=$work/home/containers.conf
	mkdir -p "$HOME/.config/containers"
	echo '{"default":[{"type":"insecureAcceptAnything"}]}' >"$HOME/.config/containers/policy.json"
	cat >"$CONTAINERS_CONF" <<-end
		[containers]
		default_ulimits = ["nofile=$(ulimit -Hn):$(ulimit -Hn)", "nproc=4096:4096"]
		[engine]
		cgroup_manager = "cgroupfs"
		events_logger = "none"
		tmp_dir = "$work/libpod"
		runtime = "plain"
		[engine.runtimes]
		plain = ["$work/runtime"]
	end
	write_runtime "$work/runtime"
}

run_podman() {
	timeout 100 podman --root "$work/store" --runroot "$work/run" --storage-driver vfs "$@"
}

images() {
	mkdir "$work/context" && cp "$builddir/.libs/libshunt.so" "$work/context/" &&
		tree "$work/tree" redis-server redis-benchmark sh cp mv &&
		tar -C "$work/tree" -c . | run_podman import --change 'ENV PATH=/usr/bin:/bin' - localhost/redis &&
		run_podman build --target init --build-arg BASE=localhost/redis -t localhost/shunt-init \
			-f "$manifests/Containerfile" "$work/context" &&
		run_podman run --rm --network=host localhost/redis redis-server --version
}

# Bytes on the link and over TCP of all streams of all processes here.
bytes() {
	"$builddir/tools/shunt" stat --json 2>/dev/null |
		jq -r '[.[].streams[]? | .tx, .rx] | "\(map(.link) | add // 0) \(map(.tcp) | add // 0)"'
}

have_moved() {
	read -r link tcp < <(bytes)
	[ "${link:-0}" -gt 100000000 ]
}

no_cgroups_are_left() {
	find /sys/fs/cgroup/{libpod_parent,shunt_test} -depth -type d -exec rmdir {} + 2>/dev/null
	[ ! -d /sys/fs/cgroup/libpod_parent ]
}

play() {
	sed 's,registry.example/,localhost/,; s,docker.io/library/redis:bookworm,localhost/redis,' \
		"$manifests/example.yaml" >"$work/example.yaml"
	run_podman play kube "$work/example.yaml"
}

pods() {
	local link=0 tcp=0 moved
	ip link set lo up || return 3
	[ "$(stat -f -c %T /sys/fs/cgroup)" = cgroup2fs ] || mount -t cgroup2 none /sys/fs/cgroup || return 3
	configure_podman
	images >"$work/podman.log" 2>&1 || return 3
	play >>"$work/podman.log" 2>&1 || return 3
	WITHIN=60 within have_moved
	moved=$?
	echo "# bytes of both ends: $link on the link, $tcp over TCP; $(run_podman ps --format '{{.Names}} {{.Status}}' | grep -c ' Up') containers run"
	run_podman play kube --down "$work/example.yaml" >/dev/null 2>&1
	WITHIN=10 within no_cgroups_are_left
	return $((moved || tcp * 19 > link))
}

why_no_pods() {
	local program
	[ "$(id -u)" = 0 ] || { echo "only root's containers are tried" && return; }
	for program in podman crun jq redis-server redis-benchmark ip unshare; do
		command -v $program >/dev/null || { echo "$program is missing" && return; }
	done
	grep -q '^CFLAGS = .*-fsanitize=' "$builddir/Makefile" && echo "a sanitizer's library is not in the image"
}

if [ "${1-}" = pods ]; then	# see the end
	work=$2
	pods
	exit
fi

# --- what is written ---

as_json() { # FILE...
	python3 -c 'import json, sys, yaml
print(json.dumps([one for name in sys.argv[1:] for one in yaml.safe_load_all(open(name))]))' "$@"
}

# Names, paths and images of the policy's expression are those of each pod of the example.
is_as_the_policy() { # OBJECTS
	python3 - "$1" <<-'end'
		import json, re, sys
		objects = json.load(open(sys.argv[1]))
		policy = next(o for o in objects if o["kind"] == "MutatingAdmissionPolicy")["spec"]
		binding = next(o for o in objects if o["kind"] == "MutatingAdmissionPolicyBinding")["spec"]
		text = policy["mutations"][0]["applyConfiguration"]["expression"]
		image = re.search(r'image: "([^"]+)"', text)[1]
		paths = set(re.findall(r'mountPath: "([^"]+)"', text))
		volumes = set(re.findall(r'\bname: "(?!LD_PRELOAD)([^"]+)"', text))
		preload = re.search(r'name: "LD_PRELOAD", value: "([^"]+)"', text)[1]
		assert binding["policyName"] == "shunt" and policy["failurePolicy"] == "Ignore"
		assert paths == {preload.rpartition("/")[0]} and volumes == {"shunt"}, (paths, volumes)
		assert re.search(r'mountPath: "[^"]+", readOnly: true', text)
		pods = [o for o in objects if o["kind"] == "Pod"]
		assert len(pods) == 2
		for pod in pods:
		    spec = pod["spec"]
		    labels = policy["matchConstraints"]["objectSelector"]["matchLabels"]
		    assert labels.items() <= pod["metadata"]["labels"].items()
		    assert spec["volumes"] == [{"name": "shunt", "emptyDir": {}}]
		    assert spec["initContainers"] == [{"name": "shunt", "image": image, "volumeMounts": [
		        {"name": "shunt", "mountPath": path} for path in paths]}]
		    for one in spec["containers"]:
		        assert {"name": "LD_PRELOAD", "value": preload} in one["env"]
		        assert {"name": "shunt", "mountPath": min(paths), "readOnly": True} in one["volumeMounts"]
	end
}

# Each image copies what the pods preload.
copies_the_library() {
	grep -q '^COPY libshunt.so' "$manifests/Containerfile" &&
		grep -q '^CMD .* /opt/shunt/libshunt.so"' "$manifests/Containerfile"
}

if ! python3 -c 'import yaml' 2>/dev/null; then
	echo "1..0 # SKIP python3-yaml is missing"
	exit 77
fi
as_json "$manifests"/{policy,example,monitor}.yaml >"$work/objects"
check "the example is as the policy makes it" is_as_the_policy "$work/objects"
check "the image copies the library to where pods preload it" copies_the_library

# --- what the API takes ---

schema() { # OBJECTS
	node "$here/../kubernetes.mjs" "$work/npm/node_modules/@kubernetes/client-node/dist/gen/models" \
		"$work/npm/node_modules/@bufbuild/cel/dist/esm/index.js" <"$1" | sed 's/^/# /'
	return "${PIPESTATUS[0]}"
}

if command -v npm >/dev/null && timeout 60 npm install --prefer-offline --fetch-retries=0 --no-audit \
	--no-fund --ignore-scripts --prefix "$work/npm" @kubernetes/client-node@2 @bufbuild/cel@0.6 >"$work/npm.log" 2>&1; then
	check "the API knows all that the manifests have" schema "$work/objects"
	sed 's,admissionregistration.k8s.io/v1",admissionregistration.k8s.io/v1beta1",g' "$work/objects" >"$work/beta"
	check "the policy is the same as v1beta1" schema "$work/beta"
	sed 's/"emptyDir"/"emptydir"/' "$work/objects" >"$work/wrong"
	check "a member that the API does not know is found" eval "! schema '$work/wrong' >/dev/null"
	sed 's/exists(c, /exists(c; /' "$work/objects" >"$work/wrong"
	check "an expression that is no CEL is found" eval "! schema '$work/wrong' >/dev/null"
else
	skip "the API's models" "no npm, or no registry: $(tail -1 "$work/npm.log" 2>/dev/null)"
fi

# --- two pods, in namespaces of their own ---

why=$(why_no_pods)
if [ -n "$why" ]; then
	skip "redis and its client, two pods" "$why"
else
	unshare --mount --net --pid --fork --kill-child --mount-proc bash "$0" pods "$work"	# what podman leaves ends with it
	case $? in
	0) ok "redis and its client, two pods: 95 % of the bytes on the link" ;;
	3) skip "redis and its client, two pods" "podman cannot run them here: $(tail -1 "$work/podman.log")" ;;
	*) not_ok "redis and its client, two pods: 95 % of the bytes on the link" ;;
	esac
fi
plan
