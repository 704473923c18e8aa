//! `svc skill check`: checks the package of a skill as an import and a publication would.

use crate::cli::output;
use anyhow::{Context, bail};
use clap::{Args, Subcommand};
use serde_json::{Value, json};
use skill_packages::{
    Limits, Package, PackageError, PackageFile, Report, Warning, check_strict, referenced_files, report,
};
use std::fs;
use std::path::{Path, PathBuf};

#[derive(Subcommand)]
pub(in crate::cli) enum SkillCommand {
    /// Check the package of a skill: the rules of the format, the files that its instructions name, and what somebody would
    /// look at before trusting it. It needs no service and no database. Fails if a rule is broken.
    Check(Check),
}

#[derive(Args)]
pub(in crate::cli) struct Check {
    /// The folder with SKILL.md, or a zip of it.
    path: PathBuf,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

/// A line of what is printed.
struct Finding {
    kind: &'static str,
    place: String,
    message: String,
}

impl Finding {
    fn new(kind: &'static str, place: impl Into<String>, message: impl Into<String>) -> Self {
        Self { kind, place: place.into(), message: message.into() }
    }
}

pub(in crate::cli) fn run(command: SkillCommand) -> anyhow::Result<()> {
    let SkillCommand::Check(arguments) = command;
    let findings = match read(&arguments.path)? {
        Ok((package, warnings)) => findings(&package, &warnings),
        Err(fault) => vec![refusal(fault)],
    };
    let rows: Vec<Value> = findings
        .iter()
        .map(|found| json!({ "kind": found.kind, "place": found.place, "message": found.message }))
        .collect();
    output::rows(&rows, arguments.json)?;
    match findings.iter().filter(|found| found.kind == "violation").count() {
        0 => Ok(()),
        1 => bail!("1 rule is broken"),
        count => bail!("{count} rules are broken"),
    }
}

type Reading = Result<(Package, Vec<Warning>), PackageError>;

fn read(path: &Path) -> anyhow::Result<Reading> {
    let path = fs::canonicalize(path).with_context(|| format!("{} cannot be read", path.display()))?;
    let name = path.file_name().map(|name| name.to_string_lossy().into_owned());
    let limits = Limits::default();
    if path.is_dir() {
        let mut files = Vec::new();
        let mut left = limits.bytes;
        collect(&path, "", &mut files, &mut left)?;
        return Ok(Package::from_files(files, name, &limits));
    }
    let bytes = fs::read(&path).with_context(|| format!("{} cannot be read", path.display()))?;
    Ok(Package::read(&bytes, &name.unwrap_or_default(), &limits))
}

/// Reads the files below a folder.
fn collect(
    folder: &Path,
    prefix: &str,
    files: &mut Vec<PackageFile>,
    left: &mut usize,
) -> anyhow::Result<()> {
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let Ok(name) = entry.file_name().into_string() else {
            bail!("{} has a name that is not UTF-8", entry.path().display())
        };
        let path = format!("{prefix}{name}");
        let kind = entry.file_type()?;
        if kind.is_dir() {
            if name != ".git" {
                collect(&entry.path(), &format!("{path}/"), files, left)?;
            }
            continue;
        }
        if !kind.is_file() {
            bail!("{path} is a link or no file; a package cannot have it");
        }
        let size = usize::try_from(entry.metadata()?.len())?;
        *left =
            left.checked_sub(size).context("the folder has more than 10 MB, which no package may have")?;
        let bytes = fs::read(entry.path()).with_context(|| format!("{path} cannot be read"))?;
        files.push(PackageFile { path, bytes });
    }
    Ok(())
}

fn refusal(fault: PackageError) -> Finding {
    match fault {
        PackageError::TooLarge { message } => Finding::new("violation", "", message),
        PackageError::Invalid { file, line, message } => {
            Finding::new("violation", place(file.as_deref().unwrap_or_default(), line), message)
        }
    }
}

fn findings(package: &Package, warnings: &[Warning]) -> Vec<Finding> {
    let violations = check_strict(package.document.bytes(), package.folder.as_deref());
    let is_told = |warning: &Warning| {
        warning.code == "name_folder" || violations.iter().any(|found| found.line == warning.line)
    };
    let mut found: Vec<Finding> = violations
        .iter()
        .map(|violation| Finding::new("violation", place("SKILL.md", violation.line), &violation.message))
        .collect();
    for path in referenced_files(package.document.body()) {
        if !package.files.iter().any(|file| file.path == path) {
            found.push(Finding::new(
                "violation",
                path,
                "The instructions name this file, and it is not there.",
            ));
        }
    }
    let warnings = warnings.iter().filter(|warning| !is_told(warning));
    found.extend(
        warnings.map(|warning| Finding::new("warning", place(&warning.file, warning.line), &warning.message)),
    );
    found.extend(reported(report(package)));
    found
}

fn reported(report: Report) -> Vec<Finding> {
    let mut found = Vec::new();
    for script in report.scripts {
        let runs = if script.runs { "runs in the sandbox" } else { "not run here" };
        found.push(Finding::new("script", script.path, format!("{}, {runs}", script.kind.as_str())));
    }
    for host in report.hosts {
        found.push(Finding::new("host", "", host));
    }
    for hidden in report.hidden_characters {
        let message = format!("{} hidden ({}) from column {}", hidden.count, hidden.kind, hidden.column);
        found.push(Finding::new("hidden", place(&hidden.file, Some(hidden.line)), message));
    }
    for asked in report.credentials {
        found.push(Finding::new("credentials", place(&asked.file, Some(asked.line)), asked.text));
    }
    found
}

fn place(file: &str, line: Option<u32>) -> String {
    match line {
        Some(line) => format!("{file}:{line}"),
        None => file.to_owned(),
    }
}
