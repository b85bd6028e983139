//! Completions for bash. bash inserts candidates unchanged, so the script quotes the candidates that bash would split
//! or expand.

use clap::Command;
use clap_complete::env::{Bash, EnvCompleter};
use std::ffi::OsString;
use std::io::{self, Write};
use std::path::Path;

/// The completion function of a program. If a quote is open, bash passes the text after it as `$2`, and closes the
/// quote itself.
const SCRIPT: &str = r#"
_clap_complete_NAME() {
    local word="${COMP_WORDS[COMP_CWORD]}" words=("${COMP_WORDS[@]}") found at
    words[COMP_CWORD]="$2"
    COMPREPLY=()
    found=$(
        _CLAP_IFS=$'\v' _CLAP_COMPLETE_INDEX="$COMP_CWORD" VAR=bash COMPLETER -- "${words[@]}"
    ) || return
    [[ -n $found ]] || return
    IFS=$'\v' read -r -d '' -a COMPREPLY < <(printf '%s\v\0' "$found")
    for at in "${!COMPREPLY[@]}"; do
        found=${COMPREPLY[at]}
        if [[ $word != [\"\']* && $found == *[!a-zA-Z0-9_./:=@%+,~-]* ]]; then
            case $found in
                \~/*) printf -v found '~/%q' "${found#\~/}" ;;
                *) printf -v found '%q' "$found" ;;
            esac
            COMPREPLY[at]=$found
        fi
    done
    if [[ ${#COMPREPLY[@]} == 1 && ${COMPREPLY[0]} == *[=/:] ]]; then
        compopt -o nospace
    fi
}
complete -o bashdefault -o nosort -F _clap_complete_NAME BIN
"#;

/// The completion of bash, for names that contain blanks.
pub(super) struct QuotingBash;

impl EnvCompleter for QuotingBash {
    fn name(&self) -> &'static str {
        "bash"
    }

    fn is(&self, name: &str) -> bool {
        name == self.name()
    }

    fn write_registration(
        &self,
        var: &str,
        name: &str,
        bin: &str,
        completer: &str,
        buf: &mut dyn Write,
    ) -> io::Result<()> {
        let script = SCRIPT
            .replace("NAME", name)
            .replace("COMPLETER", completer)
            .replace("BIN", bin)
            .replace("VAR", var);
        buf.write_all(script.as_bytes())
    }

    fn write_complete(
        &self,
        command: &mut Command,
        args: Vec<OsString>,
        current_dir: Option<&Path>,
        buf: &mut dyn Write,
    ) -> io::Result<()> {
        Bash.write_complete(command, args, current_dir, buf)
    }
}
