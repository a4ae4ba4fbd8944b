# SPDX-License-Identifier: MIT
# Where the build is, and how to run something shunted. Sourced.
# shellcheck shell=bash disable=SC2034

builddir=${SHUNT_BUILD:-${top_builddir:-$PWD}}
# The names SHUNT_* are the product's; this one is only for the person who calls.
unset SHUNT_BUILD
export top_builddir=$builddir
shunt_run=${RUN_SHUNT:-$builddir/tools/shunt run}
