#!/bin/sh
# Builds the benchmarks and runs one: sh benchmarks/run.sh training [flags]; `--help` lists its flags. Run it on an otherwise idle machine.
set -eu

root=$(CDPATH='' cd -- "$(dirname -- "$0")/.." && pwd)
[ $# -gt 0 ] || set -- training
benchmark=$1
shift
if [ ! -f "$root/benchmarks/$benchmark/$benchmark.cpp" ]; then
    echo "benchmarks/run.sh: there is no benchmark \"$benchmark\"" >&2
    exit 2
fi

sh "$root/cmake/install-dependencies.sh" benchmark >&2
build=$root/build/benchmarks
if [ ! -f "$build/build.ninja" ]; then
    cmake -S "$root" -B "$build" -G Ninja -DCMAKE_BUILD_TYPE=Release -DLOCKSTEP_BUILD_TESTS=OFF -DLOCKSTEP_BUILD_EXAMPLES=OFF >&2
fi
cmake --build "$build" --target "benchmark_${benchmark}_$benchmark" >&2
exec "$build/benchmarks/benchmark_${benchmark}_$benchmark" "$@"
