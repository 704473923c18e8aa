//! Which tools a client has chosen. The choice is part of each request and never of a connection.

use super::catalog::OperationTool;
use super::names::is_everyday;

/// The tools that a client chose by query and headers.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Selection {
    pub(super) query: Choice,
    pub(super) header: Choice,
    /// Whether tools that change something are refused.
    pub read_only: bool,
    /// Whether definitions have an `outputSchema`.
    pub output_schemas: bool,
}

/// Toolsets and tools. Nothing chosen is the default list.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Choice {
    pub(super) toolsets: Vec<String>,
    pub(super) tools: Vec<String>,
}

/// A tool, as far as a choice is about it.
pub(super) enum Listed<'a> {
    Discovery(&'a str),
    Operation(&'a OperationTool, &'a str),
    /// A tool of the workspace's own.
    Own(&'a str),
}

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
                set(area) || (set("core") && is_everyday(tool.meta.id)) || named(&tool.name)
            }
            Listed::Own(name) => set("workspace") || named(name),
        }
    }

    fn has_all(&self) -> bool {
        self.toolsets.iter().any(|set| set == "all")
    }
}

impl Selection {
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
