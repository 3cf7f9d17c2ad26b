# SPDX-License-Identifier: GPL-2.0
# bash completion of memsluice(1)

_memsluice_cgroups() {
  local path
  # Slices and the units in them, but not the thousands of cgroups that a container host may have.
  while IFS= read -r path; do
    COMPREPLY+=("${path#/sys/fs/cgroup}")
  done < <(compgen -d -- "/sys/fs/cgroup$1")
}

_memsluice_nodes() {
  local path
  for path in /sys/devices/system/node/node*; do
    [[ ${path##*node} == "$1"* ]] && COMPREPLY+=("${path##*node}")
  done
}

_memsluice_requests() {
  local ids
  ids=$(memsluice request list 2>/dev/null | awk '$1 ~ /^[0-9]+$/ { print $1 }')
  mapfile -t COMPREPLY < <(compgen -W "$ids" -- "$1")
}

_memsluice_queues() {
  local queues
  queues=$(memsluice engine list 2>/dev/null | awk '$1 ~ /^[^ ]+\/[^ ]+$/ { print $1 }')
  mapfile -t COMPREPLY < <(compgen -W "$queues" -- "$1")
}

_memsluice_channels() {
  local names
  names=$(memsluice channel list 2>/dev/null | awk 'NR > 1 && NF > 4 { print $1 }')
  mapfile -t COMPREPLY < <(compgen -W "$names" -- "$1")
}

_memsluice_devices() {
  local path
  for path in /sys/bus/dsa/devices/{dsa,iax}[0-9]*; do
    [[ -e $path && ${path##*/} == "$1"* ]] && COMPREPLY+=("${path##*/}")
  done
}

# The value of the option before the cursor; false if it takes none.
_memsluice_value() {
  case $1 in
    --tiering) mapfile -t COMPREPLY < <(compgen -W 'on off' -- "$2") ;;
    --fast-limit | --channels) mapfile -t COMPREPLY < <(compgen -W none -- "$2") ;;
    --tenant) _memsluice_cgroups "$2" ;;
    --from | --to | --node) _memsluice_nodes "$2" ;;
    --for) mapfile -t COMPREPLY < <(compgen -W 'nodes devices' -- "$2") ;;
    --write) mapfile -t COMPREPLY < <(compgen -d -- "$2") ;;
    --pid) mapfile -t COMPREPLY < <(compgen -W "$(cd /proc && echo [0-9]*)" -- "$2") ;;
    --socket) mapfile -t COMPREPLY < <(compgen -f -- "$2") ;;
    --address | --start | --length | --group | --deadline | --granule | --interval | --range | --host) ;;
    --promote-mib-per-s | --demote-mib-per-s | --mib-per-s | --set | --add | --remove) ;;
    *) return 1 ;;
  esac
}

_memsluice() {
  local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD - 1]} command='' i
  COMPREPLY=()
  _memsluice_value "$before" "$word" && return
  for ((i = 1; i < COMP_CWORD; i++)); do
    case ${COMP_WORDS[i]} in
      --socket) ((i++)) ;;
      -*) ;;
      *) command+="${command:+ }${COMP_WORDS[i]}" ;;
    esac
  done
  local words='--json --socket --help'
  case $command in
    '') words+=' status tenant migrate request engine census metrics channel provision reload top doctor version --version' ;;
    tenant) words+=' list show set channels clear' ;;
    request) words+=' list show cancel' ;;
    engine) words+=' list test drain reset' ;;
    channel) words+=' list add remove' ;;
    'channel add'*) words+=' --node --start --length --group' ;;
    'channel remove') [[ $word == -* ]] || { _memsluice_channels "$word"; return; } ;;&
    'channel remove'*) words+=' --deadline' ;;
    'tenant show' | 'tenant clear') [[ $word == -* ]] || { _memsluice_cgroups "$word"; return; } ;;
    'tenant channels') [[ $word == -* ]] || { _memsluice_cgroups "$word"; return; } ;;&
    'tenant channels'*) words+=' --set --add --remove --from --mib-per-s --lazily --detach' ;;
    'tenant set') [[ $word == -* ]] || { _memsluice_cgroups "$word"; return; } ;;&
    'tenant set'*) words+=' --tiering --fast-limit --promote-mib-per-s --demote-mib-per-s --channels --granule' ;;
    'request show' | 'request cancel') [[ $word == -* ]] || { _memsluice_requests "$word"; return; } ;;
    'engine test'* | 'engine drain'*)
      [[ $word == -* ]] || { _memsluice_queues "$word"; return; }
      ;;
    'engine reset') [[ $word == -* ]] || { _memsluice_devices "$word"; return; } ;;&
    'engine reset'*) words+=' --yes' ;;
    migrate*)
      words+=' --pid --address --length --tenant --from --to --mib-per-s --all-mappings --detach'
      ;;
    census*) words+=' --node --tenants' ;;
    provision*) words+=' --channels --range --node --host --for --write' ;;
    top) words+=' --once --interval' ;;
  esac
  mapfile -t COMPREPLY < <(compgen -W "$words" -- "$word")
}

complete -F _memsluice memsluice
