#!/bin/sh
# examples/fashion_mnist/run.sh in a tree of stand-ins, where nothing is installed or compiled: sh run_sh_test.sh <run.sh>
set -eu

run_sh=$1
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
tree="$folder/a tree"
mkdir -p "$tree/examples/fashion_mnist" "$tree/cmake" "$folder/bin" "$folder/cwd"
cp "$run_sh" "$tree/examples/fashion_mnist/run.sh"
echo "echo \"install \$*\" >>'$folder/calls'; [ ! -e '$folder/no-install' ]" >"$tree/cmake/install-dependencies.sh"
# The program tells its arguments and its folder; the last argument is its exit code.
cat >"$folder/program" <<'PROGRAM'
#!/bin/sh
pwd
for last in "$@"; do echo "[$last]"; done
exit "${last:-0}"
PROGRAM
cat >"$folder/bin/cmake" <<CMAKE
#!/bin/sh
case "\$*" in *LOCKSTEP_MPI=ON*) mpi=" with MPI" ;; *) mpi="" ;; esac
echo "cmake \$1\$mpi" >>'$folder/calls'
echo "chatter of cmake"
[ ! -e '$folder/no-build' ] || exit 3
mkdir -p '$tree/build/release/examples'
if [ "\$1" = --build ]; then
    cp '$folder/program' '$tree/build/release/examples/fashion_mnist'
    chmod +x '$tree/build/release/examples/fashion_mnist'
else
    echo 'CMAKE_HOME_DIRECTORY:INTERNAL=$tree' >'$tree/build/release/CMakeCache.txt'
    [ -z "\$mpi" ] || echo 'LOCKSTEP_MPI:BOOL=ON' >>'$tree/build/release/CMakeCache.txt'
    touch '$tree/build/release/build.ninja'
fi
CMAKE
chmod +x "$folder/bin/cmake"
PATH="$folder/bin:$PATH"
export PATH

fail() {
    echo "FAILED: $1" >&2
    tail -n 50 "$folder/calls" "$folder/out" "$folder/err" >&2
    exit 1
}

# call <expected exit code> <argument>...
call() {
    expected=$1
    shift
    code=0
    : >"$folder/calls"
    (cd "$folder/cwd" && sh "../a tree/examples/fashion_mnist/run.sh" "$@") >"$folder/out" 2>"$folder/err" || code=$?
    [ "$code" -eq "$expected" ] || fail "$*: exit code $code, expected $expected"
}

calls() { tr '\n' ';' <"$folder/calls"; }

call 7 --json "two words" "" 7
[ "$(cat "$folder/out")" = "$(printf '%s\n[--json]\n[two words]\n[]\n[7]' "$folder/cwd")" ] || fail "arguments or folder changed"
[ "$(calls)" = "install example;cmake -S;cmake --build;" ] || fail "the first time installs, configures and builds"
[ "$(wc -l <"$folder/err")" -eq 1 ] || fail "the first time says one line"

call 0
[ "$(calls)" = "install example;cmake --build;" ] || fail "the second time builds only"
[ "$(cat "$folder/out")" = "$folder/cwd" ] || fail "the second time says nothing itself"
[ ! -s "$folder/err" ] || fail "the second time says nothing itself"

echo "CMAKE_HOME_DIRECTORY:INTERNAL=/elsewhere" >"$tree/build/release/CMakeCache.txt"
call 0
[ "$(calls)" = "install example;cmake -S;cmake --build;" ] || fail "a moved tree is configured anew"

# A word that is another flag's value, and a flag that only looks like it, ask for nothing.
call 0 --json --backend=threads --backend threads --data mpi 0
[ "$(calls)" = "install example;cmake --build;" ] || fail "threads need no MPI"
call 0 -n 2 --backend mpi 0
[ "$(calls)" = "install example mpi;cmake -DLOCKSTEP_MPI=ON with MPI;cmake --build;" ] || fail "a tree without MPI gets it"
call 0 --address=a,b 0
[ "$(calls)" = "install example mpi;cmake --build;" ] || fail "a tree with MPI keeps it"
call 0
[ "$(calls)" = "install example;cmake --build;" ] || fail "a tree with MPI is as good as another one"
for words in "--backend=mpi" "--address a" "--preflight"; do
    rm -r "$tree/build"
    # shellcheck disable=SC2086 # words
    call 0 $words 0
    [ "$(calls)" = "install example mpi;cmake -S with MPI;cmake --build;" ] || fail "$words asks for MPI"
done

touch "$folder/no-build"
call 1
grep -q "chatter of cmake" "$folder/err" || fail "a failed build shows its output"
[ ! -s "$folder/out" ] || fail "the program ran after a failed build"
rm "$folder/no-build"

touch "$folder/no-install"
call 1
[ "$(calls)" = "install example;" ] || fail "it went on without its packages"
