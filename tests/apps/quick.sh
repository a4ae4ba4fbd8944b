#!/bin/bash
# SPDX-License-Identifier: MIT
# The programs that people use most, both ends shunted, for make check-all.
TABLE='' CONFIGURATIONS=${CONFIGURATIONS:-bare both} PATIENCE=${PATIENCE:-100} exec "$(dirname "$0")/run.sh" redis nginx memcached curl python
