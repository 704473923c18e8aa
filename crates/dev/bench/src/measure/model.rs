//! The embedded model, and llama.cpp on the same file where it is installed.

use super::{Bench, target};
use crate::report::Section;
use anyhow::{Context, Result, ensure};
use std::process::Command;

pub fn measure(bench: &Bench<'_>) -> Result<Section> {
    let mut section = Section::new("The embedded model");
    let file = bench.plan.model.display().to_string();
    if !bench.plan.model.is_file() {
        section.note(format!("{file} is not there: not measured."));
        return Ok(section);
    }
    let rounds = if bench.plan.quick { "1" } else { "7" };
    let python = &bench.plan.llama_python;
    let has_llama = Command::new(python)
        .args(["-c", "import llama_cpp"])
        .output()
        .is_ok_and(|done| done.status.success());
    let speed = target()?.join("svc-bench-speed").display().to_string();
    for (threads, how) in [("1", "1 thread"), ("2", "2 threads")] {
        let ours = numbers(&speed, &[&file, threads, rounds])?;
        section.state(format!("prompt, {how}, tokens/s"), ours.prompt.clone());
        section.state(format!("answer, {how}, tokens/s"), ours.generation.clone());
        if has_llama {
            let theirs = numbers(python, &["scripts/bench-llama-cpp", &file, threads, rounds])?;
            section.state(format!("llama.cpp: prompt, {how}, tokens/s"), theirs.prompt);
            section.state(format!("llama.cpp: answer, {how}, tokens/s"), theirs.generation);
        }
    }
    if !has_llama {
        section.note(
            "llama-cpp-python is not installed here: see scripts/bench-llama-cpp, then set `LLAMA_PYTHON`.",
        );
    }
    Ok(section)
}

struct Numbers {
    prompt: String,
    generation: String,
}

/// Runs a program that prints `prompt … tokens/s` and `generation … tokens/s`.
fn numbers(program: &str, arguments: &[&str]) -> Result<Numbers> {
    let done =
        Command::new(program).args(arguments).output().with_context(|| format!("running {program}"))?;
    ensure!(done.status.success(), "{program} failed: {}", String::from_utf8_lossy(&done.stderr));
    let text = String::from_utf8_lossy(&done.stdout).into_owned();
    let number = |name: &str| {
        let line = text
            .lines()
            .find_map(|line| line.strip_prefix(name))
            .with_context(|| format!("no {name} in {text}"))?;
        Ok::<_, anyhow::Error>(line.split_whitespace().next().unwrap_or_default().to_owned())
    };
    Ok(Numbers { prompt: number("prompt ")?, generation: number("generation ")? })
}
