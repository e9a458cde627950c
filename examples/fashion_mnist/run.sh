#!/bin/sh
# The reference job, from nothing: sh examples/fashion_mnist/run.sh [flags of the program]
# Installs what is missing, builds what has changed, then runs the program; its exit code is the program's. `--help` lists its flags.
set -eu

root=$(CDPATH='' cd -- "$(dirname -- "$0")/../.." && pwd)
build=$root/build/release

# MPI comes in when it is asked for, and stays.
mpi=""
last=""
for word in "$@"; do
    case $last$word in
        --backendmpi | *--backend=mpi | *--address | *--address=* | *--preflight) mpi="mpi" ;;
    esac
    [ "$word" = --backend ] && last=$word || last=""
done

# shellcheck disable=SC2086 # nothing or one word
sh "$root/cmake/install-dependencies.sh" example $mpi >&2

log=$(mktemp)
trap 'rm -f "$log"' EXIT
trap 'exit 130' INT TERM

configure() {
    # A tree that was made elsewhere and then moved here cannot be built.
    if [ -f "$build/CMakeCache.txt" ] && ! grep -qxF "CMAKE_HOME_DIRECTORY:INTERNAL=$root" "$build/CMakeCache.txt"; then
        rm -rf "$build"
    fi
    # Once there is something to build with, it configures again by itself when it has to.
    if [ -f "$build/build.ninja" ] || [ -f "$build/Makefile" ]; then
        if [ -n "$mpi" ] && ! grep -qxF "LOCKSTEP_MPI:BOOL=ON" "$build/CMakeCache.txt"; then
            cmake -DLOCKSTEP_MPI=ON "$build"
        fi
        return
    fi
    if [ -z "${CMAKE_GENERATOR:-}" ] && command -v ninja >/dev/null; then
        export CMAKE_GENERATOR=Ninja
    fi
    cmake -S "$root" -B "$build" -DCMAKE_BUILD_TYPE=Release -DLOCKSTEP_BUILD_TESTS=OFF -DLOCKSTEP_BUILD_BENCHMARKS=OFF \
        ${mpi:+-DLOCKSTEP_MPI=ON}
}

[ -x "$build/examples/fashion_mnist" ] || echo "Building the example: about a minute, the first time" >&2
if ! { configure && cmake --build "$build" --target example_fashion_mnist --parallel 4; } >"$log" 2>&1; then
    cat "$log" >&2
    echo "run.sh: the example could not be built, see above" >&2
    exit 1
fi

rm -f "$log"
exec "$build/examples/fashion_mnist" "$@"
