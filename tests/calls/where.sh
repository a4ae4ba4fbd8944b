# SPDX-License-Identifier: MIT
# Where the build is, and how to run something shunted. Sourced.
# shellcheck shell=bash disable=SC2034

# With its whole path: some commands run in another directory, such as those that nsenter starts.
builddir=$(cd "${SHUNT_BUILD:-${top_builddir:-.}}" && pwd) || exit 99
# The names SHUNT_* are the product's; this one is only for the person who calls.
unset SHUNT_BUILD
export top_builddir=$builddir
shunt_run=${RUN_SHUNT:-$builddir/tools/shunt run}
