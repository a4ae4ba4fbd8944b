#!/bin/bash
# SPDX-License-Identifier: MIT
# Conformance again, with every WR held back by a cost model: what holds for the device holds for a slow one.
exec "${top_builddir:?}/tests/soft/conform" -m doorbell=100,wqe=50,gbit=56,delay=1000,cache=8,miss=200,queue=64K,pause=300 "$@"
