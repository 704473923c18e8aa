//! `svc completion`.

use super::Cli;
use clap::{Args, CommandFactory, ValueEnum};
use clap_complete::{Shell, generate};

#[derive(Args)]
pub(super) struct Completion {
    /// The shell.
    shell: Completed,
}

/// The shells that there are scripts for.
#[derive(Clone, Copy, ValueEnum)]
enum Completed {
    Bash,
    Zsh,
    Fish,
}

pub(super) fn print(arguments: &Completion) -> anyhow::Result<()> {
    let shell = match arguments.shell {
        Completed::Bash => Shell::Bash,
        Completed::Zsh => Shell::Zsh,
        Completed::Fish => Shell::Fish,
    };
    let mut script = Vec::new();
    generate(shell, &mut super::command(Cli::command(), false), "svc", &mut script);
    if matches!(arguments.shell, Completed::Bash) {
        script = commands_first(&String::from_utf8(script)?).into_bytes();
    }
    Ok(super::output::bytes(&script)?)
}

/// Puts commands before flags in each list of words of the script for bash, which offers them in that order. The other shells
/// offer flags only after a hyphen.
fn commands_first(script: &str) -> String {
    let mut ordered = String::with_capacity(script.len());
    for line in script.lines() {
        match line.split_once("opts=\"").and_then(|(indent, words)| Some((indent, words.strip_suffix('"')?)))
        {
            Some((indent, words)) => {
                let (flags, commands): (Vec<&str>, Vec<&str>) =
                    words.split_whitespace().partition(|word| word.starts_with('-'));
                ordered.push_str(indent);
                ordered.push_str("opts=\"");
                ordered.push_str(&[commands, flags].concat().join(" "));
                ordered.push('"');
            }
            None => ordered.push_str(line),
        }
        ordered.push('\n');
    }
    ordered
}
