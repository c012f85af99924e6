#!/bin/sh
# What CHANGELOG.md says of a version, for its release: scripts/release_notes.sh v0.1.0. Fails where the tag is not the version
# of the tree (include/tidemark/version.h), or the change log has nothing of it or still calls it unreleased.
set -eu
tag=$1
cd "$(dirname "$0")/.."
version=$(sed -n 's/^#define TIDE_VERSION "\(.*\)"$/\1/p' include/tidemark/version.h)
if [ "$tag" != "v$version" ]; then
    echo "release_notes.sh: the tag is $tag, and the tree is version $version (include/tidemark/version.h)" >&2
    exit 1
fi
head=$(sed -n "/^## $version\( \|\$\)/p" CHANGELOG.md)
case $head in
"")
    echo "release_notes.sh: CHANGELOG.md has no section '## $version'" >&2
    exit 1
    ;;
*"not yet released"*)
    echo "release_notes.sh: CHANGELOG.md says '$head': write the date there" >&2
    exit 1
    ;;
esac
notes=$(awk -v head="$head" '$0 == head { on = 1; next } /^## / { on = 0 } on' CHANGELOG.md)
if [ -z "$notes" ]; then
    echo "release_notes.sh: CHANGELOG.md has nothing below '$head'" >&2
    exit 1
fi
printf '%s\n' "$notes"
