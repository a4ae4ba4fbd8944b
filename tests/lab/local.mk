# Tests that need RDMA devices, in a guest under QEMU: not part of make check. tests/lab/README.md tells more.
EXTRA_DIST += tests/lab/README.md tests/lab/lab.sh tests/lab/kernel.sh tests/lab/machine.sh tests/lab/init \
	tests/lab/inside.sh tests/lab/guest/lib.sh tests/lab/guest/conform.sh tests/lab/guest/devices.sh tests/lab/guest/harmless.sh \
	tests/lab/guest/pingpong.sh tests/lab/guest/soft.sh tests/lab/pair/lib.sh tests/lab/pair/faults.sh tests/lab/pair/bites.sh tests/lab/pair/wire.sh
