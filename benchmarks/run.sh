#!/bin/sh
# Builds the benchmarks and runs one of them. Run it on an otherwise idle machine.
#   sh benchmarks/run.sh training [--backend threads,mpi] [--workers 1,2] [flags]
#   sh benchmarks/run.sh micro/all_reduce [-n 2] [--backend threads] [flags]
#   sh benchmarks/run.sh micro/kernels [--rows 32,64,256] [flags]
# `--help` lists a benchmark's flags. With MPI it is started by mpirun, as many processes as there are to be workers;
# LOCKSTEP_MPI_FLAVOUR=mpich measures MPICH in place of the system's default MPI.
set -eu

fail() {
    echo "benchmarks/run.sh: $2" >&2
    exit "$1"
}

root=$(CDPATH='' cd -- "$(dirname -- "$0")/.." && pwd)
[ $# -gt 0 ] || set -- training
benchmark=$1
shift
case $benchmark in
    */*) ;;
    *) benchmark=$benchmark/$benchmark ;;
esac
[ -f "$root/benchmarks/$benchmark.cpp" ] || fail 2 "there is no benchmark \"$benchmark\""

# What the programs do by themselves.
processes=2
backend=""
largest() {
    echo "$1" | tr , '\n' | sort -n | tail -n 1
}
last=""
for word in "$@"; do
    case $word in
        --backend=* | --workers=* | --num-workers=*) last=${word%%=*} word=${word#*=} ;;
        -n?*) last=-n word=${word#-n} ;;
    esac
    case $word in
        -h | --help) backend=threads ;; # once will do
    esac
    case $last in
        --backend) backend=$word ;;
        -n | --num-workers | --workers) processes=$(largest "$word") ;;
    esac
    last=$word
done
if [ "$benchmark" = micro/kernels ]; then
    backend=threads # and no flag for it: there is one worker, without a communicator
elif [ -z "$backend" ]; then
    backend=threads
    [ "$benchmark" != micro/all_reduce ] || backend=threads,mpi
    set -- --backend "$backend" "$@"
fi
case $processes in
    '' | *[!0-9]*) fail 2 "\"$processes\" is no number of workers" ;;
esac

sh "$root/cmake/install-dependencies.sh" benchmark >&2 || fail 1 "what the benchmarks need could not be installed, see above"
build=$root/build/benchmarks
set -- "$build/benchmarks/benchmark_$(echo "$benchmark" | tr / _)" "$@"
flavour=""
case ${LOCKSTEP_MPI_FLAVOUR:-} in
    '') ;;
    openmpi | mpich)
        flavour=$LOCKSTEP_MPI_FLAVOUR
        build=$build-$flavour
        program=$build/benchmarks/${1##*/}
        shift
        set -- "$program" "$@"
        ;;
    *) fail 2 "LOCKSTEP_MPI_FLAVOUR is openmpi or mpich, not \"$LOCKSTEP_MPI_FLAVOUR\"" ;;
esac
if [ ! -f "$build/build.ninja" ] || ! grep -qxF "LOCKSTEP_MPI:BOOL=ON" "$build/CMakeCache.txt"; then
    cmake -S "$root" -B "$build" -G Ninja -DCMAKE_BUILD_TYPE=Release -DLOCKSTEP_BUILD_TESTS=OFF -DLOCKSTEP_BUILD_EXAMPLES=OFF \
        -DLOCKSTEP_MPI=ON ${flavour:+"-DMPI_CXX_COMPILER=mpicxx.$flavour" "-DMPIEXEC_EXECUTABLE=/usr/bin/mpiexec.$flavour"} >&2 ||
        fail 1 "the build could not be configured, see above"
fi
cmake --build "$build" --target "${1##*/}" >&2 || fail 1 "the benchmark could not be built, see above"

case ,$backend, in
    *,mpi,*) ;;
    *) exec "$@" ;;
esac

mpirun=$(sed -n 's/^MPIEXEC_EXECUTABLE:[A-Z]*=//p' "$build/CMakeCache.txt")
[ -x "$mpirun" ] || fail 1 "CMake has found no mpirun (\"$mpirun\")"
# A core for each process, where there are enough; otherwise they take turns.
bind=none
[ "$processes" -gt "$(nproc)" ] || bind=core
if "$mpirun" --version 2>&1 | grep -qi "open *mpi\|open-mpi\|openrte"; then
    export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_rmaps_base_oversubscribe=1
    exec "$mpirun" --bind-to "$bind" -n "$processes" "$@"
fi
exec "$mpirun" -bind-to "$bind" -n "$processes" "$@"
