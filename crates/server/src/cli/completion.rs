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
    Ok(super::output::bytes(&script)?)
}
