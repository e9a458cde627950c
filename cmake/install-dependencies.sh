#!/bin/sh
# Installs what Lockstep needs on Debian and its relatives: sh cmake/install-dependencies.sh [example|mpi|test|benchmark|aarch64]...
# Does nothing, quickly, when all is there. Without apt, or without the rights to use it, names the packages and fails.
# LOCKSTEP_SKIP_INSTALL=1 skips it all, for machines that have these things under other names.
set -eu

library="g++ cmake ninja-build libxtensor-dev libxtensor-blas-dev libopenblas-dev zlib1g-dev"
example="libcli11-dev nlohmann-json3-dev dataset-fashion-mnist"
mpi="libopenmpi-dev openmpi-bin"
test="$example $mpi libmpich-dev mpich libgtest-dev clang-14 binutils curl iproute2"
benchmark="$example $mpi"
aarch64="g++-aarch64-linux-gnu qemu-user" # one test compiles for another processor; skipped where they cannot be had

[ "${LOCKSTEP_SKIP_INSTALL:-0}" != 1 ] || exit 0

wanted=$library
for set in "$@"; do
    case $set in
        example) wanted="$wanted $example" ;;
        mpi) wanted="$wanted $mpi" ;;
        test) wanted="$wanted $test" ;;
        benchmark) wanted="$wanted $benchmark" ;;
        aarch64) wanted="$wanted $aarch64" ;;
        *)
            echo "install-dependencies.sh: \"$set\" is none of example, mpi, test, benchmark, aarch64" >&2
            exit 2
            ;;
    esac
done

# One dpkg-query for all of them; it says nothing about those it has never heard of.
# shellcheck disable=SC2086 # a list
installed=" $(dpkg-query -W -f='${db:Status-Status}:${Package} ' $wanted 2>/dev/null || true)"
missing=""
for package in $wanted; do
    case "$installed$missing " in
        *" installed:$package "* | *" $package "*) ;;
        *) missing="$missing $package" ;;
    esac
done
[ -n "$missing" ] || exit 0

give_up() {
    echo "Lockstep needs these packages ($1):$missing" >&2
    exit 1
}

command -v apt-get >/dev/null || give_up "there is no apt-get to install them; LOCKSTEP_SKIP_INSTALL=1 if they have other names here"
as_root=""
if [ "$(id -u)" -ne 0 ]; then
    command -v sudo >/dev/null || give_up "please install them as root"
    as_root="sudo"
    # Where nobody can type a password, sudo shall not ask for one.
    [ -t 0 ] || as_root="sudo -n"
    $as_root true || give_up "please install them as root"
fi

apt() {
    $as_root env DEBIAN_FRONTEND=noninteractive apt-get -qq -y -o Acquire::Retries=3 -o DPkg::Lock::Timeout=300 "$@" </dev/null
}

install() {
    # shellcheck disable=SC2086 # a list
    apt install --no-install-recommends $missing
}

echo "Lockstep: installing$missing"
log=$(mktemp)
trap 'rm -f "$log"' EXIT
# The package lists may be missing or stale: they are fetched only when it turns out that they are.
if ! install >"$log" 2>&1 && ! { apt update && install; } >"$log" 2>&1; then
    tail -n 20 "$log" >&2
    give_up "apt-get could not install them, see above"
fi
