//! What was measured, as a document.

use anyhow::{Context, Result};
use std::fmt::Write;
use std::path::Path;

const BEGIN: &str = "<!-- measured: begin (written by `make bench`) -->";
const END: &str = "<!-- measured: end -->";

/// Everything that was measured.
#[derive(Default)]
pub struct Report {
    head: Vec<String>,
    sections: Vec<Section>,
}

/// One part.
pub struct Section {
    title: &'static str,
    rows: Vec<[String; 4]>,
    notes: Vec<String>,
}

impl Section {
    /// An empty one.
    pub fn new(title: &'static str) -> Self {
        Self { title, rows: Vec::new(), notes: Vec::new() }
    }

    /// Its title.
    pub fn title(&self) -> &'static str {
        self.title
    }

    /// States a number.
    pub fn state(&mut self, what: impl Into<String>, value: impl Into<String>) {
        self.rows.push([what.into(), value.into(), String::new(), String::new()]);
    }

    /// States a number that has a target.
    pub fn against(&mut self, what: impl Into<String>, value: impl Into<String>, target: &str, met: bool) {
        let verdict = if met { "met" } else { "**not met**" };
        self.rows.push([what.into(), value.into(), target.to_owned(), verdict.to_owned()]);
    }

    /// Says something below the table.
    pub fn note(&mut self, text: impl Into<String>) {
        self.notes.push(text.into());
    }
}

impl Report {
    /// Says something at the top.
    pub fn head(&mut self, text: impl Into<String>) {
        self.head.push(text.into());
    }

    /// Adds a part.
    pub fn add(&mut self, section: Section) {
        self.sections.push(section);
    }

    /// The document's generated part.
    pub fn text(&self) -> String {
        let mut text = String::new();
        for line in &self.head {
            let _ = writeln!(text, "- {line}");
        }
        for section in &self.sections {
            let _ = writeln!(
                text,
                "\n### {}\n\n| What | Measured | Target | |\n|---|---|---|---|",
                section.title
            );
            for [what, value, target, verdict] in &section.rows {
                let _ = writeln!(text, "| {what} | {value} | {target} | {verdict} |");
            }
            for note in &section.notes {
                let _ = writeln!(text, "\n{note}");
            }
        }
        text
    }

    /// Replaces the generated part of a document.
    pub fn write_into(&self, document: &Path) -> Result<()> {
        let old =
            std::fs::read_to_string(document).with_context(|| format!("reading {}", document.display()))?;
        let (before, rest) = old.split_once(BEGIN).context("the document has no beginning mark")?;
        let (_, after) = rest.split_once(END).context("the document has no end mark")?;
        std::fs::write(document, format!("{before}{BEGIN}\n\n{}\n{END}{after}", self.text()))?;
        Ok(())
    }
}
