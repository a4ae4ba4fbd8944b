# SPDX-License-Identifier: MIT
# Completion of shunt(1) for fish. `shunt complete` has the candidates.
function __shunt_candidates
    set -l words (commandline -opc) (commandline -ct)
    for line in ($words[1] complete -- $words[2..-1] 2>/dev/null)
        switch $line
            case ':command *'
                # The program that is run has its own completion. Lists begin at 1.
                set -l first (math (string sub -s 10 -- $line) + 2)
                complete -C (string join ' ' -- (string escape -- $words[$first..-1]))
            case :file
                __fish_complete_path (commandline -ct)
            case :host
                __fish_print_hostnames
            case '*'
                echo $line
        end
    end
end
complete -c shunt -f -a '(__shunt_candidates)'
