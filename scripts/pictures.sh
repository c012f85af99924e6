#!/bin/sh
# The pictures of README.md, of the demo's U-Net: the terminal view as a real terminal shows it, and the page as a browser
# shows it, each dark and light. Usage: scripts/pictures.sh PATH_TO_TIDEMARK [FOLDER]. Wants tmux, chromium and python3.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
tidemark=$(cd "$(dirname "$1")" && pwd)/$(basename "$1")
mkdir -p "${2:-$here/../docs/images}"
out=$(cd "${2:-$here/../docs/images}" && pwd)
work=$(mktemp -d)
trap 'for socket in "$work"/tmux-*; do tmux -S "$socket" kill-server 2>/dev/null || true; done; rm -rf "$work"' EXIT
"$tidemark" demo --once "$work/demo" >/dev/null
cd "$work/demo"

# frame dark|light COLORFGBG: the view at the peak, once nothing changes any more.
frame() {
    printf 'set -g status off\nset -g default-terminal tmux-256color\nset -ga terminal-overrides ",*:Tc"\n' >"$work/conf"
    tmux -f "$work/conf" -S "$work/tmux-$1" new-session -d -x 100 -y 34 env -u NO_COLOR COLORTERM=truecolor COLORFGBG="$2" \
        LC_ALL=C.UTF-8 HOME="$work" "$tidemark" tui unet.json --view peak --no-state
    tries=0 same=0 before=
    while [ "$same" -lt 20 ]; do
        now=$(tmux -S "$work/tmux-$1" capture-pane -p)
        case $now in
        "$before") same=$((same + 1)) ;;
        *) same=0 ;;
        esac
        case $now in
        *EXPLAIN*whatif*"? help"*) before=$now ;;
        *) same=0 ;;
        esac
        tries=$((tries + 1))
        [ "$tries" -lt 1200 ] || { echo "pictures.sh: the view never comes to rest" >&2; exit 1; }
        sleep 0.05
    done
    tmux -S "$work/tmux-$1" capture-pane -ep | python3 "$here/frame_to_svg.py" "$1" >"$out/tui-$1.svg"
    tmux -S "$work/tmux-$1" kill-server
}
frame dark '15;0'
frame light '0;15'

# The first screen of the page. A browser takes its colours from the system: both are forced here.
for theme in dark light; do
    if [ "$theme" = dark ]; then scheme=0; else scheme=1; fi
    chromium --headless --no-sandbox --disable-gpu --hide-scrollbars --window-size=1400,930 --user-data-dir="$work/chromium" \
        --blink-settings=preferredColorScheme=$scheme --screenshot="$work/page.png" "file://$work/demo/unet.html" >/dev/null 2>&1
    python3 "$here/png_palette.py" "$work/page.png" "$out/report-$theme.png" 48
done
ls -l "$out"
