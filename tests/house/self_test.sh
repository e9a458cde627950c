#!/bin/sh
# Plants one violation after the other in a copy of the headers and sees check.sh name it: sh self_test.sh <include directory> <scratch>
set -eu
here=$(cd "$(dirname "$0")" && pwd)
include=$1
scratch=$2
failures=0

# plant <file> <line> <what check.sh shall say>
plant() {
    rm -rf "$scratch"
    mkdir -p "$scratch"
    cp -R "$include/lockstep" "$scratch/"
    mkdir -p "$scratch/$(dirname "$1")"
    [ -e "$scratch/$1" ] || echo '#pragma once' >"$scratch/$1"
    printf '%s\n' "$2" >>"$scratch/$1"
    if sh "$here/check.sh" "$scratch" >"$scratch/output"; then
        echo "not noticed: $2 in $1"
        failures=$((failures + 1))
    elif ! grep -F -- "$3" "$scratch/output" | grep -q -F -- "${4-$1}"; then
        echo "not named: $2 in $1; the output was"
        cat "$scratch/output"
        failures=$((failures + 1))
    fi
}

# accept <file> <line>
accept() {
    rm -rf "$scratch"
    mkdir -p "$scratch/$(dirname "$1")"
    printf '#pragma once\n%s\n' "$2" >"$scratch/$1"
    if ! sh "$here/check.sh" "$scratch"; then
        echo "wrongly refused: $2 in $1"
        failures=$((failures + 1))
    fi
}

plant lockstep/core/planted.hpp '#include "lockstep/nn/layer.hpp"' 'core does not see nn'
plant lockstep/comm/planted.hpp '#include "lockstep/data/dataset.hpp"' 'comm does not see data'
plant lockstep/io/planted.hpp '#  include "lockstep/data/dataset.hpp"' 'io does not see data'
plant lockstep/engine/planted.hpp '#include "lockstep/nn/layer.hpp"' 'engine does not see nn'
plant lockstep/engine/planted.inc '#include "lockstep/nn/layer.hpp"' 'engine does not see nn'
plant lockstep/nn/planted.hpp '#include <xtensor/xtensor.hpp>' 'only CpuEngine sees'
plant lockstep/engine/simd.hpp '#include <cblas.h>' 'only CpuEngine sees'
plant lockstep/nn/model.hpp '#include "lockstep/engine/cpu.hpp"' 'what needs BLAS'
plant lockstep/engine/simd.hpp '#include "lockstep/engine/xtensor.hpp"' 'what needs BLAS'
plant lockstep/core.hpp '#include "lockstep/engine/cpu.hpp"' 'what needs BLAS'
plant lockstep/core.hpp '#include "lockstep/engine/cpu.hpp"' 'includes lockstep/engine/blas.hpp'
plant lockstep/comm/planted.hpp '#include <mpi.h>' 'includes <mpi.h>'
plant lockstep/comm/planted.hpp '#include "communicator.hpp"' 'write "lockstep/'
plant lockstep/comm/planted.hpp '#include <lockstep/comm/communicator.hpp>' 'write "lockstep/'
plant lockstep/train/planted.hpp '#include "lockstep/lockstep.hpp"' 'umbrella'
plant lockstep/train/planted.hpp '#include "lockstep/core.hpp"' 'umbrella'
plant lockstep/train/planted.hpp '#include "lockstep/comm/mpi.hpp"' 'leaf'
plant lockstep/train/planted.hpp '#include <nlohmann/json.hpp>' 'does not need'
plant lockstep/attic/planted.hpp 'struct Old {};' 'no room "attic"'
plant lockstep/core/error.hpp '/* one */ using namespace std; // two' 'using namespace'
plant lockstep/data/planted.hpp 'inline void f() { std::cout << 1; }' 'does not print'
plant lockstep/data/planted.hpp 'inline void f() { std::printf("1"); }' 'does not print'
plant lockstep/train/planted.hpp 'inline void f() { std::exit(1); }' 'end the process'
plant lockstep/core/planted.hpp '#define ASSERT(x)' 'macros begin with'
[ ! -e "$include/lockstep/lockstep.hpp" ] ||
    plant lockstep/core/planted.hpp 'struct Forgotten {};' 'lockstep/lockstep.hpp: does not include' lockstep/core/planted.hpp
[ ! -e "$include/lockstep/core.hpp" ] ||
    plant lockstep/core/planted.hpp 'struct Forgotten {};' 'lockstep/core.hpp: does not include' lockstep/core/planted.hpp

accept lockstep/train/accepted.hpp 'inline void f() { std::cout << 1; }'
accept lockstep/core/accepted.hpp '/// std::cout and std::exit(1) are not for us; using namespace neither'
accept lockstep/core/accepted.hpp 'inline void f(char* s) { std::snprintf(s, 1, "1"); on_exit_of(s); comm.abort(); }'
accept lockstep/comm/mpi_environment.hpp '#include <mpi.h>'
accept lockstep/engine/xtensor.hpp '#include <xtensor/xtensor.hpp>'

rm -rf "$scratch"
[ "$failures" -eq 0 ]
