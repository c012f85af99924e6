#!/bin/sh
# Stands for the program while a test runs: keeps each small file that it is given, then is the program
# ($TIDE_COLLECT_FOR). One file for each content, in $TIDE_CORPUS.
for word; do
    if [ -f "$word" ] && [ "$(stat -c %s "$word")" -le 65536 ]; then
        name=$(sha1sum <"$word" | cut -c 1-40)
        [ -f "$TIDE_CORPUS/$name" ] || cp "$word" "$TIDE_CORPUS/$name"
    fi
done
exec "$TIDE_COLLECT_FOR" "$@"
