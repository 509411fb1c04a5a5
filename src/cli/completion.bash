# Completion of attnas' programs for bash. In zsh: autoload -U bashcompinit && bashcompinit, then source this file.

_attnas() {
  local program=$1 word=$2 name=${1##*/} first=${COMP_WORDS[1]} words=''
  local beside=${program%"$name"} # the folder of the programs, where it was written
  local -a command=("$program")
  [[ $name != attnas || $COMP_CWORD -eq 1 ]] || command+=("$first") # whose options are its own
  if [[ $word == -* ]]; then
    words=$("${command[@]}" --help | grep -oE -- '--[a-z][a-z-]+' | sort -u)
  elif [[ $COMP_CWORD -eq 2 && $name == nas-run && $first == list ]]; then
    words=$("$program" list | grep '^[a-z]')
  elif [[ $COMP_CWORD -eq 2 && $name == nas-run && $first == describe ]]; then
    words=$("$program" list | awk '/^[a-z]/ {kind = $1; next} kind != "configurations" {print kind == "components" ? $2 : $1}')
  elif [[ $name == attnas && $3 == --error ]]; then
    words='fwer fdr'
  elif [[ $COMP_CWORD -eq 2 && $name == nas-data && ($first == get || $first == info) ]]; then
    words=$("$program" list | grep '^[a-z]')
  else
    if [[ $COMP_CWORD -eq 1 ]]; then
      words=$("$program" --help | awk '/^Commands:/ {on = 1; next} /^$/ {on = 0} on && /^  [a-z]/ {print $1}')
    fi
    case $name in
      nas-run | nas-compare | nas-train) words+=" $("${beside}nas-run" list configurations | awk '{print $1}')" ;;
    esac
    compopt -o filenames 2>/dev/null || true # outside of a completion there are no options
    mapfile -t COMPREPLY < <(compgen -f -X '!*.y*ml' -- "$word"; compgen -d -- "$word")
  fi
  mapfile -t -O "${#COMPREPLY[@]}" COMPREPLY < <(compgen -W "$words" -- "$word")
}

complete -F _attnas attnas nas-run nas-train nas-compare nas-data nas-export nas-model nas-analyse nas-convert nas-watch nas-work
