# Completion of tidemark for fish, written by `tidemark help --format fish`.

# Whether the command is the given one; without one, whether there is none yet.
function __tidemark_is
    set -l words (commandline -opc)
    set -e words[1]
    for word in $words
        if not string match -q -- '-*' $word
            test "$word" = "$argv[1]"
            return
        end
    end
    test (count $argv) -eq 0
end

# The words of a list with commas between them, behind those that are there.
function __tidemark_list
    set -l head (string match -r '.*,' -- (commandline -ct | string replace -r '^--[^=]*=' ''))
    printf '%s\n' $head$argv
end

# The command line of the other program, behind "--".
function __tidemark_program
    set -l words (commandline -opc) (commandline -ct)
    set -l at (contains -i -- -- $words)
    or return
    set -e words[1..$at]
    complete -C (string join -- ' ' (string escape -- $words[1..-2]) $words[-1])
end

complete -c tidemark -f
complete -c tidemark -n __tidemark_is -s h -l help -d 'options of one command'
complete -c tidemark -n __tidemark_is -s V -l version -d 'which version this is'
@commands@
@options@
