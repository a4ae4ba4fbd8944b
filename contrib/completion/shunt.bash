# SPDX-License-Identifier: MIT
# Completion of shunt(1) for bash. `shunt complete` has the candidates.
_shunt() {
	local line first
	COMPREPLY=()
	while IFS= read -r line; do
		case $line in
		:command*)
			# The program that is run has its own completion.
			first=$((${line#:command } + 1))
			if declare -F _command_offset >/dev/null; then
				_command_offset "$first"
			else
				mapfile -t COMPREPLY < <(compgen -c -- "${COMP_WORDS[COMP_CWORD]}")
			fi
			return
			;;
		:file)
			compopt -o default
			return
			;;
		:host) mapfile -t -O "${#COMPREPLY[@]}" COMPREPLY < <(compgen -A hostname -- "${COMP_WORDS[COMP_CWORD]}") ;;
		*) COMPREPLY+=("${line%%$'\t'*}") ;;
		esac
	done < <("${COMP_WORDS[0]}" complete -- "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null)
}
complete -F _shunt shunt
