//! Which tools a client has chosen. The choice is part of each request and never of a connection.

use super::catalog::OperationTool;
use super::{ToolSet, Tools, discovery, workspace};
use input::{comma_list, nearest};
use model::{Error, Result};
use serde_json::json;

/// The tools that a client chose by query and headers.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Selection {
    query: Choice,
    header: Choice,
    /// Whether tools that change something are refused.
    pub read_only: bool,
    /// Whether definitions have an `outputSchema`.
    pub output_schemas: bool,
}

/// Toolsets and tools. Nothing chosen is the default list.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Choice {
    toolsets: Vec<String>,
    tools: Vec<String>,
}

/// A tool, as far as a choice is about it.
pub(super) enum Listed<'a> {
    Discovery(&'a str),
    Operation(&'a OperationTool, &'a str),
    /// A tool of the workspace's own.
    Own(&'a str),
}

/// The toolsets besides those of areas.
const TOOLSETS: [&str; 4] = ["core", "discovery", "workspace", "all"];

impl Choice {
    fn is_empty(&self) -> bool {
        self.toolsets.is_empty() && self.tools.is_empty()
    }

    fn has(&self, tool: &Listed<'_>) -> bool {
        let set = |name: &str| self.toolsets.iter().any(|set| set == name) || self.has_all();
        let named = |name: &str| self.tools.iter().any(|one| one == name);
        match tool {
            Listed::Discovery(name) => set("discovery") || set("core") || named(name),
            Listed::Operation(tool, area) => {
                set(area) || (set("core") && discovery::is_everyday(tool.meta.id)) || named(&tool.name)
            }
            Listed::Own(name) => set("workspace") || named(name),
        }
    }

    fn has_all(&self) -> bool {
        self.toolsets.iter().any(|set| set == "all")
    }
}

impl Selection {
    /// Reads `toolsets`, `tools`, `read_only` and `output_schemas` from the query, and the `X-Svc-*` headers. `header`
    /// returns a header by its name in lower case.
    ///
    /// # Errors
    /// `validation_error` for unknown names; the message has the known ones.
    pub fn parse(query: &str, header: &dyn Fn(&str) -> Option<String>, tools: &Tools) -> Result<Self> {
        let tools = tools.loaded()?;
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
                    let hint = near
                        .map(|near| format!("; did you mean `{near}`?"))
                        .unwrap_or_else(|| ".".to_owned());
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

    /// Returns whether a tool is listed. A header only narrows what the query chose.
    pub(super) fn has(&self, tool: &Listed<'_>) -> bool {
        let default = Choice { toolsets: vec!["core".to_owned(), "workspace".to_owned()], tools: Vec::new() };
        match (self.query.is_empty(), self.header.is_empty()) {
            (true, true) => default.has(tool),
            (true, false) => self.header.has(tool),
            (false, true) => self.query.has(tool),
            (false, false) => self.query.has(tool) && self.header.has(tool),
        }
    }

    /// Returns whether the list is the default one, whose size is bounded.
    pub(super) fn is_default(&self) -> bool {
        self.query.is_empty() && self.header.is_empty()
    }
}

impl ToolSet {
    fn toolsets(&self, text: &str, param: &str) -> Result<Vec<String>> {
        let mut known: Vec<String> = TOOLSETS.map(str::to_owned).to_vec();
        known.extend(self.catalog.areas());
        named(text, param, &known, |_| false)
    }

    fn names(&self, text: &str, param: &str) -> Result<Vec<String>> {
        let mut known: Vec<String> = discovery::NAMES.map(str::to_owned).to_vec();
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
        let hint = near.map(|near| format!("; did you mean `{near}`?")).unwrap_or_else(|| ".".to_owned());
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
