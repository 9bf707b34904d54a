"""`pdc completion`: a script for the shell. It asks `pdc __complete` for candidates, so it never goes stale.

Candidates are names that others chose: a ClusterRole may be called `$(reboot)`. No script here lets its shell expand
them (bash's `compgen -W` would), and each quotes what it puts on the command line.
"""

from __future__ import annotations

import argparse

from paddlecloud.cli.parsing import Parsers
from paddlecloud.cli.session import Session

SCRIPTS = {
    "bash": """\
# pdc completion for bash:  source <(pdc completion bash)
_pdc() {
    local line="${COMP_LINE:0:COMP_POINT}" candidate quoted
    local -a words
    IFS=$' \\t' read -r -a words <<< "$line"
    [[ "$line" == *[[:space:]] ]] && words+=("")
    local current="${words[${#words[@]}-1]}"
    local kept="${current%"${current##*[:=]}"}"  # readline completes what follows these alone
    COMPREPLY=()
    while IFS= read -r candidate; do
        printf -v quoted %q "${candidate#"$kept"}"
        COMPREPLY+=("$quoted")
    done < <(pdc __complete -- "${words[@]:1}" 2>/dev/null)
    if [[ ${#COMPREPLY[@]} -eq 0 && "${words[${#words[@]}-2]}" == -f ]]; then
        IFS=$'\\n' read -r -d '' -a COMPREPLY < <(compgen -f -- "$current")
    fi
}
complete -o default -F _pdc pdc
""",
    "zsh": """\
#compdef pdc
# pdc completion for zsh:  source <(pdc completion zsh)
_pdc() {
    local -a found
    found=("${(@f)$(pdc __complete -- "${(@)words[2,CURRENT]}" 2>/dev/null)}")
    if [[ -n "${found[1]}" ]]; then
        compadd -- "${found[@]}"
    else
        _files
    fi
}
compdef _pdc pdc
""",
    "fish": """\
# pdc completion for fish:  pdc completion fish | source
function __pdc_candidates
    set -l words (commandline -opc) (commandline -ct)
    pdc __complete -- $words[2..-1] 2>/dev/null
end
complete -c pdc -a '(__pdc_candidates)'
""",
}


def add_commands(parsers: Parsers) -> None:
    parser = parsers.add_parser("completion", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("shell", choices=tuple(SCRIPTS))
    parser.set_defaults(run=run)


def run(session: Session, args: argparse.Namespace) -> int:
    if args.output:
        from paddlecloud.cli.render.output import print_report

        print_report(session, "CompletionScript", {"shell": args.shell, "script": SCRIPTS[args.shell]})
    else:
        session.print_data(SCRIPTS[args.shell])
    return 0
