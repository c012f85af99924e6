#compdef tidemark
# Completion of tidemark for zsh, written by `tidemark help --format zsh`.

_tidemark_commands() {
  local -a commands
  commands=(
@commands@
  )
  _describe -t commands 'command' commands
}

_tidemark() {
  local curcontext=$curcontext ret=1
  local -a state line
  typeset -A opt_args
  _arguments -C '(- *)'{-h,--help}'[options of one command]' '(- *)'{-V,--version}'[which version this is]' \
    '1: :_tidemark_commands' '*::argument:->argument' && ret=0
  [[ $state == argument ]] || return ret
  case $words[1] in
@options@
  esac
  return ret
}

_tidemark "$@"
