//! Reading which tools a client has chosen.

use super::names;
use super::selection::Selection;
use super::set::ToolSet;
use super::workspace;
use input::{comma_list, nearest};
use model::{Error, Result};
use serde_json::json;

/// The toolsets besides those of areas.
const TOOLSETS: [&str; 4] = ["core", "discovery", "workspace", "all"];

impl Selection {
    /// Reads `toolsets`, `tools`, `read_only` and `output_schemas` from the query, and the `X-Svc-*` headers. `header`
    /// returns a header by its name in lower case.
    ///
    /// # Errors
    /// `validation_error` for unknown names; the message has the known ones.
    pub(super) fn parse(
        query: &str,
        header: &dyn Fn(&str) -> Option<String>,
        tools: &ToolSet,
    ) -> Result<Self> {
        let mut selection = Self::default();
        for (name, value) in operation::query_pairs(query) {
            match name.as_str() {
                "toolsets" => selection.query.toolsets = tools.toolsets(&value, "toolsets")?,
                "tools" => selection.query.tools = tools.names(&value, "tools")?,
                "read_only" => selection.read_only = flag(&value, "read_only")?,
                "output_schemas" => selection.output_schemas = flag(&value, "output_schemas")?,
                other => {
                    let known = ["toolsets", "tools", "read_only", "output_schemas"];
                    let near = nearest(other, known.into_iter());
                    let hint =
                        near.map_or_else(|| ".".to_owned(), |near| format!("; did you mean `{near}`?"));
                    let shown: String =
                        other.chars().filter(|letter| !letter.is_control()).take(80).collect();
                    let rule = format!(
                        "is not a parameter here{hint} Known are `toolsets`, `tools`, `read_only` and `output_schemas`"
                    );
                    return Err(Error::invalid(if shown.is_empty() { "query" } else { &shown }, rule));
                }
            }
        }
        if let Some(value) = header("x-svc-toolsets") {
            selection.header.toolsets = tools.toolsets(&value, "X-Svc-Toolsets")?;
        }
        if let Some(value) = header("x-svc-tools") {
            selection.header.tools = tools.names(&value, "X-Svc-Tools")?;
        }
        if let Some(value) = header("x-svc-read-only") {
            selection.read_only |= flag(&value, "X-Svc-Read-Only")?;
        }
        Ok(selection)
    }
}

impl ToolSet {
    fn toolsets(&self, text: &str, param: &str) -> Result<Vec<String>> {
        let mut known: Vec<String> = TOOLSETS.map(str::to_owned).to_vec();
        known.extend(self.catalog.areas());
        named(text, param, &known, |_| false)
    }

    fn names(&self, text: &str, param: &str) -> Result<Vec<String>> {
        let mut known: Vec<String> = names::NAMES.map(str::to_owned).to_vec();
        known.extend(self.catalog.operations.iter().map(|tool| tool.name.clone()));
        // Tools of the workspace's own come and go, so their names are not checked.
        named(text, param, &known, workspace::is_own)
    }
}

fn named(text: &str, param: &str, known: &[String], is_free: fn(&str) -> bool) -> Result<Vec<String>> {
    let names = comma_list(text, param)?;
    if let Some(unknown) = names.iter().find(|name| !is_free(name) && known.iter().all(|one| one != *name)) {
        let shown: String = unknown.chars().filter(|letter| !letter.is_control()).take(80).collect();
        let near = nearest(&shown, known.iter().map(String::as_str));
        let hint = near.map_or_else(|| ".".to_owned(), |near| format!("; did you mean `{near}`?"));
        let rule = format!("has the unknown name `{shown}`{hint} Known are {}", known.join(", "));
        return Err(Error::invalid(param, rule).with("details", json!({ "known": known })));
    }
    Ok(names.into_iter().map(str::to_owned).collect())
}

fn flag(text: &str, param: &str) -> Result<bool> {
    match text.trim() {
        "true" | "1" => Ok(true),
        "false" | "0" => Ok(false),
        _ => Err(Error::invalid(param, "must be `true` or `false`")),
    }
}
