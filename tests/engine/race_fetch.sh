#!/bin/sh
# SPDX-License-Identifier: MIT
# The same threads on a device that carries little inline, and fetches the rest when it comes to it: from the
# staging buffers, and, from 2000 bytes on, from the senders' own buffers, which are written again at once.
set -u
export SHUNT_TUNE="${SHUNT_TUNE-},inline=300,mr_threshold=2000" SHUNT_SOFT_MODEL=wqe=500,delay=3000
exec tests/engine/race
