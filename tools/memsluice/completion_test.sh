#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# completion_test.sh MEMSLUICE: what --help shows is what the shell completes.
set -euo pipefail
memsluice=$1
# shellcheck source=/dev/null
source "$(dirname "$0")/completion.bash"
failed=0

# check WORD... EXPECTED: completing the last WORD offers EXPECTED.
check() {
  local expected=${*: -1}
  COMP_WORDS=("${@:1:$#-1}")
  COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
  COMPREPLY=()
  _memsluice
  [[ " ${COMPREPLY[*]} " == *" $expected "* ]] && return
  echo "${COMP_WORDS[*]}: offers \"${COMPREPLY[*]}\", not $expected"
  failed=1
}

# The names at the start of the lines of a section of the help.
listed() {
  "$memsluice" "${@:2}" --help |
    awk -v section="$1:" '/^[A-Z]/ { on = $0 == section } /^$/ { on = 0 } on && /^  / { print $1 }'
}

check_command() {
  local option
  for option in $(listed Options "$@" | grep -o -- '--[a-z-]*'); do
    check memsluice "$@" -- "$option"
  done
}

check_command
for command in $(listed Subcommands); do
  check memsluice '' "$command"
  check_command "$command"
  for verb in $(listed Subcommands "$command"); do
    check memsluice "$command" '' "$verb"
    check_command "$command" "$verb"
  done
done
check memsluice tenant set /x --tiering o on
check memsluice --socket /dev/null tenant '' list
check memsluice migrate --to '' 0
check memsluice provision --for d devices
check memsluice engine reset dsa0 -- --yes
exit $failed
