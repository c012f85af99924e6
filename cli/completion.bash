# Completion of tidemark for bash, written by `tidemark help --format bash`.

_tidemark_words() { # WORDS
    mapfile -t COMPREPLY < <(compgen -W "$1" -- "$cur")
    COMPREPLY=("${COMPREPLY[@]#"$before"}")
    compopt +o default
}

_tidemark_list() { # WORDS, of which several may stand with commas between them
    local head=
    [[ $cur == *,* ]] && head=${cur%,*},
    mapfile -t COMPREPLY < <(compgen -P "$head" -W "$1" -- "${cur##*,}")
    COMPREPLY=("${COMPREPLY[@]#"$before"}")
    compopt +o default
}

_tidemark_program() { # INDEX of another program's name among the words
    if ((COMP_CWORD == $1)); then
        mapfile -t COMPREPLY < <(compgen -c -- "$cur")
    elif declare -F _command_offset > /dev/null; then
        _command_offset "$1"
    fi
}

_tidemark() {
    local at=$COMP_CWORD k typed=${COMP_WORDS[COMP_CWORD]} cur before option command= equals= options=
    local commands='@commands@'
    COMPREPLY=()
    # readline makes several words of "--allocator=cpu:align=64": here they are one again, and `cur` is its value.
    while ((at > 1)) && [[ ${COMP_WORDS[at]} == [:=] || ${COMP_WORDS[at - 1]} == [:=] ]]; do
        typed=${COMP_WORDS[at - 1]}$typed at=$((at - 1))
    done
    option=${COMP_WORDS[at - 1]} cur=$typed
    if [[ $typed == --*=* ]]; then
        option=${typed%%=*} cur=${typed#*=} equals==
    fi
    # What readline replaces begins behind the last of them.
    before=${cur%"${cur##*[:=]}"}
    for ((k = 1; k < COMP_CWORD; k++)); do
        if [[ ${COMP_WORDS[k]} == -- && $command == record ]]; then
            _tidemark_program $((k + 1))
            return
        fi
        [[ ${COMP_WORDS[k]} == -- ]] && return
        [[ -z $command && ${COMP_WORDS[k]} != -* ]] && command=${COMP_WORDS[k]}
    done
    if [[ -z $command ]]; then
        _tidemark_words "$commands --help --version"
        return
    fi
    case "$command $option$equals" in
@values@
    *)
        option=
        ;;
    esac
    [[ -n $option ]] && return
    case $command in
@options@
    esac
    if [[ $cur == -* ]]; then
        _tidemark_words "$options"
        return
    fi
    case $command in
@operands@
    esac
}

complete -o default -F _tidemark tidemark
