#!/bin/sh
# Checks the rules of the house that a compiler does not see, over all headers of a tree (and what they include several times, *.inc): sh check.sh <include directory>
# Prints one line per violation and fails if there is any.
set -eu
cd "$1"
LC_ALL=C
export LC_ALL

# shellcheck disable=SC2046 # no header has a space in its name
awk '
BEGIN {
    # Which rooms the files of a room may include.
    sees["core"] = " core "
    sees["engine"] = " core engine "
    sees["nn"] = " core engine nn "
    sees["optim"] = " core optim "
    sees["comm"] = " core comm "
    sees["io"] = " core io "
    sees["data"] = " core io data "
    sees["train"] = " core engine nn optim comm io data train "
    sees["core.hpp"] = sees["train"]
    sees["lockstep.hpp"] = " core.hpp engine "
    leaf = "^lockstep/(comm|engine)/(mpi|device)"
    # CpuEngine and what it stands on: all that needs BLAS and xtensor.
    blas = "^lockstep/engine/(cpu|cpu_kernels|products|self_test|blas|xtensor)[.]hpp$"
    core_umbrella = "lockstep/core.hpp"
    umbrella = "lockstep/lockstep.hpp"
}

function violation(text) { print FILENAME ":" FNR ": " text; violations++ }

function check_own_include(name,    parts, other) {
    split(name, parts, "/")
    other = parts[2]
    if (name !~ /^lockstep\//) { violation("write \"lockstep/<room>/<file>.hpp\" instead of \"" name "\""); return }
    if (name == umbrella || (name == core_umbrella && FILENAME != umbrella)) { violation("the umbrellas are for users only"); return }
    if (room in sees && index(sees[room], " " other " ") == 0) { violation(room " does not see " other " (" name ")") }
    if (name ~ leaf && FILENAME !~ leaf) { violation("only users and leaves include a leaf (" name ")") }
    if (name ~ blas && FILENAME !~ blas && FILENAME != umbrella) { violation("only CpuEngine and " umbrella " include what needs BLAS (" name ")") }
    edges[FILENAME] = edges[FILENAME] " " name
}

function check_foreign_include(name) {
    if (name ~ /^lockstep\//) { violation("write \"" name "\" instead of <" name ">") }
    if (name ~ /^(xtensor|xtensor-blas|xtl|xsimd|xflens)\/|^cblas/ && FILENAME !~ blas) { violation("only CpuEngine sees <" name ">") }
    if (name == "mpi.h" && FILENAME != "lockstep/comm/mpi_environment.hpp") { violation("only lockstep/comm/mpi_environment.hpp includes <mpi.h>") }
    if (name == "iostream" && room != "train") { violation("the library does not print: no <iostream> outside train") }
    if (name ~ /^(CLI|nlohmann|gtest|gmock|benchmark)\//) { violation("the library does not need <" name ">") }
}

FNR == 1 {
    split(FILENAME, path, "/")
    room = path[2]
    files[FILENAME] = 1
    in_comment = 0
    if (!(room in sees)) { violation("there is no room \"" room "\"") }
    if ($0 !~ /^#pragma once/ && FILENAME !~ /[.]inc$/) { violation("the first line is not #pragma once") }
}

{
    line = $0
    if (in_comment) {
        if (!match(line, /\*\//)) { next }
        line = substr(line, RSTART + 2)
        in_comment = 0
    }
    sub(/\/\/.*/, "", line)
    gsub(/\/\*[^*]*\*\//, "", line)
    if (match(line, /\/\*/)) { line = substr(line, 1, RSTART - 1); in_comment = 1 }
}

line ~ /^[ \t]*#[ \t]*include[ \t]*"/ { split(line, quoted, "\""); check_own_include(quoted[2]); next }
line ~ /^[ \t]*#[ \t]*include[ \t]*</ { split(line, angled, /[<>]/); check_foreign_include(angled[2]); next }
line ~ /^[ \t]*#[ \t]*define[ \t]/ && line !~ /define[ \t]+LOCKSTEP_/ && !(FILENAME ~ blas && line ~ /define[ \t]+HAVE_CBLAS/) && !(FILENAME ~ leaf && line ~ /define[ \t]+(OMPI|MPICH)_SKIP_MPICXX/) {
    violation("macros begin with LOCKSTEP_")
}
line ~ /using[ \t]+namespace/ { violation("no `using namespace` in headers") }
line ~ /std::(cout|cerr|clog)|(^|[^a-z_])v?f?printf[ \t]*\(|(^|[^a-z_])(f?puts|putchar)[ \t]*\(/ && room != "train" {
    violation("the library does not print; reporters in train do")
}
line ~ /(^|[^a-zA-Z_.>])(exit|quick_exit|_Exit|_exit|abort)[ \t]*\(/ { violation("the library does not end the process") }

# An umbrella reaches every header but the leaves and those that match `others`, and these it does not reach.
function check_umbrella(from, others,    reached, queue, last, i, j, count, next_files, file) {
    if (!(from in files)) { return }
    queue[1] = from
    reached[from] = 1
    last = 1
    for (i = 1; i <= last; i++) {
        count = split(edges[queue[i]], next_files, " ")
        for (j = 1; j <= count; j++) {
            if (!(next_files[j] in reached)) { reached[next_files[j]] = 1; queue[++last] = next_files[j] }
        }
    }
    for (file in files) {
        if (file ~ others) {
            if (file in reached) { print from ": includes " file; violations++ }
        } else if (!(file in reached) && file !~ leaf) {
            print from ": does not include " file
            violations++
        }
    }
}

END {
    check_umbrella(core_umbrella, blas "|^" umbrella "$")
    check_umbrella(umbrella, "^$")
    exit violations > 0
}
' $(find lockstep -name '*.hpp' -o -name '*.inc' | sort)
