#!/bin/sh
# Installs what is missing, then builds and runs every test: sh tests/run.sh [gcc|mpich|clang|asan|tsan]...
# Each preset has its own tree, build/<preset>; called again, only what changed is built.
set -u
cd "$(dirname "$0")/.." && cd "$(pwd -P)" || exit 1

presets=${*:-gcc mpich clang asan tsan}
for preset in $presets; do
    case $preset in
        gcc | mpich | clang | asan | tsan) ;;
        *)
            echo "tests/run.sh: \"$preset\" is none of gcc, mpich, clang, asan, tsan" >&2
            exit 2
            ;;
    esac
done

sh cmake/install-dependencies.sh test || exit 1
sh cmake/install-dependencies.sh aarch64 || echo "tests/run.sh: the test on another processor will be skipped"

# Builds on after an error and tests what there is, so that one run tells all; `broken` lists the steps that failed.
run_preset() {
    broken=""
    # A tree that was made elsewhere and then moved here cannot be built.
    cache=build/$1/CMakeCache.txt
    if [ -f "$cache" ] && ! grep -qxF "CMAKE_HOME_DIRECTORY:INTERNAL=$(pwd -P)" "$cache"; then
        rm -rf "build/$1"
    fi
    cmake --preset "$1" || { broken=" configure" && return; }
    cmake --build --preset "$1" -- -k 0 || broken=" build"
    ctest --preset "$1" || broken="$broken test"
}

summary=""
failed=0
for preset in $presets; do
    echo "== $preset"
    begin=$(date +%s)
    run_preset "$preset" </dev/null
    result=" passed"
    [ -z "$broken" ] || { result=" FAILED:$broken" && failed=1; }
    summary="$summary$(printf '%-5s%s in %d s' "$preset" "$result" $(($(date +%s) - begin)))
"
done

echo "== summary"
printf '%s' "$summary"
exit "$failed"
