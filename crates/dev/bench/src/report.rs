//! The report of a run, as a document.

use anyhow::{Context, Result};
use std::fmt::Write;
use std::path::Path;

const BEGIN: &str = "<!-- measured: begin (written by `make bench`) -->";
const END: &str = "<!-- measured: end -->";

/// The start of a part, before its title.
const TITLE: &str = "\n### ";

/// The results of a run.
pub struct Report {
    circumstances: String,
    sections: Vec<Section>,
}

/// The results of one part.
pub struct Section {
    title: &'static str,
    rows: Vec<[String; 4]>,
    notes: Vec<String>,
}

impl Section {
    /// Creates an empty part.
    pub fn new(title: &'static str) -> Self {
        Self { title, rows: Vec::new(), notes: Vec::new() }
    }

    pub fn title(&self) -> &'static str {
        self.title
    }

    /// Adds a number.
    pub fn state(&mut self, what: impl Into<String>, value: impl Into<String>) {
        self.rows.push([what.into(), value.into(), String::new(), String::new()]);
    }

    /// Adds a number with a target.
    pub fn against(&mut self, what: impl Into<String>, value: impl Into<String>, target: &str, met: bool) {
        let verdict = if met { "met" } else { "**not met**" };
        self.rows.push([what.into(), value.into(), target.to_owned(), verdict.to_owned()]);
    }

    /// Adds a note below the table.
    pub fn note(&mut self, text: impl Into<String>) {
        self.notes.push(text.into());
    }
}

impl Report {
    /// Creates an empty report. `circumstances` describe the run: date, version, machine and duration.
    pub fn new(circumstances: String) -> Self {
        Self { circumstances, sections: Vec::new() }
    }

    pub fn add(&mut self, section: Section) {
        self.sections.push(section);
    }

    /// Returns the text of all parts.
    pub fn text(&self) -> String {
        self.sections.iter().map(|section| self.part(section)).collect()
    }

    /// Returns the text of a part. Each states its circumstances, because a document can have parts of several runs.
    fn part(&self, section: &Section) -> String {
        let Self { circumstances, .. } = self;
        let mut text = format!(
            "{TITLE}{}\n\n{circumstances}\n\n| What | Measured | Target | |\n|---|---|---|---|\n",
            section.title
        );
        for [what, value, target, verdict] in &section.rows {
            let _ = writeln!(text, "| {what} | {value} | {target} | {verdict} |");
        }
        for note in &section.notes {
            let _ = writeln!(text, "\n{note}");
        }
        text
    }

    /// Replaces the measured parts of a document, and adds those that it does not have yet.
    ///
    /// # Errors
    /// The document cannot be read or written, or has no marks around the generated parts.
    pub fn write_into(&self, document: &Path) -> Result<()> {
        let old =
            std::fs::read_to_string(document).with_context(|| format!("reading {}", document.display()))?;
        std::fs::write(document, self.replaced_in(&old)?)?;
        Ok(())
    }

    fn replaced_in(&self, document: &str) -> Result<String> {
        let (before, rest) = document.split_once(BEGIN).context("the document has no beginning mark")?;
        let (measured, after) = rest.split_once(END).context("the document has no end mark")?;
        let old = measured.split(TITLE).skip(1);
        let mut parts: Vec<String> = old.map(|part| format!("{TITLE}{}\n", part.trim_end())).collect();
        for section in &self.sections {
            let first_line = format!("{TITLE}{}\n", section.title);
            match parts.iter_mut().find(|part| part.starts_with(&first_line)) {
                Some(part) => *part = self.part(section),
                None => parts.push(self.part(section)),
            }
        }
        Ok(format!("{before}{BEGIN}\n{}\n{END}{after}", parts.concat()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report(value: &str, titles: &[&'static str]) -> Report {
        let mut report = Report::new(format!("Measured with {value}."));
        for title in titles {
            let mut section = Section::new(title);
            section.state("rate", value);
            report.add(section);
        }
        report
    }

    #[test]
    fn parts_are_replaced_where_they_stand_and_others_stay() {
        let empty = format!("# Text\n\n{BEGIN}\n{END}\n\nMore.\n");
        let first = report("v1", &["Reads", "Reads and more"]).replaced_in(&empty).unwrap();
        let second = report("v2", &["Reads", "Writes"]).replaced_in(&first).unwrap();
        let part = |title: &str, value: &str| {
            format!(
                "\n### {title}\n\nMeasured with {value}.\n\n| What | Measured | Target | |\n|---|---|---|---|\n| rate | {value} |  |  |\n"
            )
        };
        let parts = [part("Reads", "v2"), part("Reads and more", "v1"), part("Writes", "v2")].concat();
        assert_eq!(second, format!("# Text\n\n{BEGIN}\n{parts}\n{END}\n\nMore.\n"));
        assert!(report("v1", &[]).replaced_in("# Text\n").is_err());
    }
}
