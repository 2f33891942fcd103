#!/usr/bin/env bash
# No binary searches the current directory for libraries: RPATH and RUNPATH have only absolute folders and $ORIGIN.
# An empty element ("/usr/lib:") stands for the current directory, so a library lying there would be loaded.
# runpath_test.sh BUILD CXX
set -euo pipefail
build=$1 compiler=$2
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

# unsafe_in FILE: the elements that are neither absolute nor relative to $ORIGIN.
unsafe_in() {
  readelf --dynamic --wide "$1" 2>/dev/null | sed -n 's/.*(R\(UN\)\?PATH).*\[\(.*\)\]$/\2/p' | tr ':' '\n' |
    grep -vE '^(/|(\$ORIGIN|\$\{ORIGIN\})(/|$))' | sed 's/^$/(empty)/' || true
}

# The check itself: it must refuse what the linker accepts, and accept the safe forms.
echo 'int main() {}' >"$folder/main.cc"
expect() {
  local wanted=$1 path=$2 found=safe
  "$compiler" "$folder/main.cc" -o "$folder/planted" -Wl,--enable-new-dtags "-Wl,-rpath,$path"
  [ -z "$(unsafe_in "$folder/planted")" ] || found=unsafe
  [ "$found" = "$wanted" ] || { echo "RUNPATH \"$path\": wanted $wanted, found $found" >&2; exit 1; }
}
expect safe '/usr/local/cuda/lib64'
expect safe '$ORIGIN'
expect safe '$ORIGIN/../lib:/opt/lib'
expect unsafe '/usr/local/cuda/lib64:'
expect unsafe ':/opt/lib'
expect unsafe '/opt/a::/opt/b'
expect unsafe 'lib'
expect unsafe '/opt/lib:./lib'

code=0 checked=0
while IFS= read -r file; do
  checked=$((checked + 1))
  unsafe=$(unsafe_in "$file")
  [ -z "$unsafe" ] || { echo "$file: RUNPATH has the element $unsafe; only absolute folders and \$ORIGIN are safe" >&2; code=1; }
done < <(find "$build" -path "$build/tests/package" -prune -o -type f \( -path "$build/bin/*" -o -path "$build/lib/*" -o -name '*.so*' \) -print)
[ "$checked" -gt 0 ] || { echo "no binaries in $build" >&2; exit 1; }
exit $code
