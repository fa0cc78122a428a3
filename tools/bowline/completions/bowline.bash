# SPDX-License-Identifier: Apache-2.0 OR MIT
# Completion of bowline for bash: commands, options, files, and a server's methods, which are asked for
# only when a method is to be completed.

_bowline_options() {
    bowline "$1" --help 2>/dev/null | sed -n 's/^  ... \(--[a-z-]*\).*/\1/p'
}

_bowline_methods() {
    local service
    for service in $(timeout 2 bowline list "$1" 2>/dev/null); do
        timeout 2 bowline list "$1" "$service" 2>/dev/null
    done
}

_bowline() {
    local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD - 1]}
    local commands='call list describe ping health bench watch new'

    if ((COMP_CWORD == 1)); then
        mapfile -t COMPREPLY < <(compgen -W "$commands --help --version" -- "$word")
        return
    fi
    case $before in
    --ca | --cert | --key | --token-file | --proto | --protoset | --html)
        mapfile -t COMPREPLY < <(compgen -f -- "$word")
        return
        ;;
    --sort)
        mapfile -t COMPREPLY < <(compgen -W 'rate errors p99 in-flight name' -- "$word")
        return
        ;;
    --import | -I)
        mapfile -t COMPREPLY < <(compgen -d -- "$word")
        return
        ;;
    esac
    if [[ $word == -* ]]; then
        mapfile -t COMPREPLY < <(compgen -W "$(_bowline_options "${COMP_WORDS[1]}")" -- "$word")
    elif ((COMP_CWORD == 3)) && [[ ${COMP_WORDS[1]} == @(call|bench) ]]; then
        mapfile -t COMPREPLY < <(compgen -W "$(_bowline_methods "${COMP_WORDS[2]}")" -- "$word")
    elif ((COMP_CWORD == 3)) && [[ ${COMP_WORDS[1]} == @(list|describe|health) ]]; then
        mapfile -t COMPREPLY < <(compgen -W "$(timeout 2 bowline list "${COMP_WORDS[2]}" 2>/dev/null)" -- "$word")
    fi
}

complete -o bashdefault -F _bowline bowline
