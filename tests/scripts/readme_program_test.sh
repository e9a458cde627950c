#!/bin/sh
# The program on README's first screen compiles as it stands there.
set -eu
root=$(CDPATH='' cd -- "$(dirname -- "$0")/../.." && pwd)
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
awk '/^```cpp$/ { inside = 1; next } /^```$/ { if (inside) exit } inside' "$root/README.md" >"$folder/program.cpp"
grep -q 'int main()' "$folder/program.cpp" || { echo "README.md has no program" >&2 && exit 1; }
"${CXX:-g++}" -std=c++20 -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Werror -fsyntax-only "-I$root/include" "$folder/program.cpp"
