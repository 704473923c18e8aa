//! Changes lines of front matter and leaves all others as they are.

use super::fields;
use super::retry;
use crate::faults::Mistake;
use crate::yaml::{Node, Value};

/// The fields in the order in which they are written.
const ORDER: [&str; 6] = ["name", "description", "license", "compatibility", "allowed-tools", "metadata"];

/// Sets a field of the front matter to a scalar of YAML, or removes it.
pub(crate) fn set(front: &str, newline: &str, field: &str, value: Option<&str>) -> Result<String, Mistake> {
    let read = retry::read(front)?;
    let root = block_map(&read)?;
    let mut lines = Lines::new(front, newline);
    let found = place_of(&root, &lines, field);
    match (found, value) {
        (Some(place), None) => lines.replace(place.first, place.last, &[]),
        (Some(place), Some(value)) => {
            let entry = format!("{}: {value}{}", place.key, place.comment);
            lines.replace(place.first, place.last, &[entry]);
        }
        (None, None) => {}
        (None, Some(value)) => {
            let after = insertion(&root, &lines, field);
            lines.insert(after, &[format!("{}{field}: {value}", root.indent())]);
        }
    }
    Ok(lines.join())
}

/// Sets an entry of `metadata`, or removes it.
pub(crate) fn set_metadata(
    front: &str,
    newline: &str,
    key: &str,
    value: Option<&str>,
) -> Result<String, Mistake> {
    let read = retry::read(front)?;
    let root = block_map(&read)?;
    let written = crate::scalar::scalar(key);
    let mut lines = Lines::new(front, newline);
    let Some((_, metadata)) = root.entries.iter().find(|(name, _)| name.text() == Some("metadata")) else {
        if let Some(value) = value {
            let indent = root.indent();
            let added = [format!("{indent}metadata:"), format!("{indent}  {written}: {value}")];
            lines.insert(insertion(&root, &lines, "metadata"), &added);
        }
        return Ok(lines.join());
    };
    let inner = match &metadata.value {
        Value::Map { entries, is_flow: false } => BlockMap { entries, column: metadata.column },
        _ => return rewrite_metadata(&root, lines, metadata, (key, value)),
    };
    match (place_of(&inner, &lines, key), value) {
        (Some(_), None) if inner.entries.len() == 1 => {
            return set(front, newline, "metadata", None);
        }
        (Some(place), None) => lines.replace(place.first, place.last, &[]),
        (Some(place), Some(value)) => {
            let entry = format!("{}: {value}{}", place.key, place.comment);
            lines.replace(place.first, place.last, &[entry]);
        }
        (None, None) => {}
        (None, Some(value)) => {
            let after = inner.entries.iter().map(|(key, value)| last_line(key, value, &lines)).max();
            lines.insert(after.unwrap_or(metadata.line), &[format!("{}{written}: {value}", inner.indent())]);
        }
    }
    Ok(lines.join())
}

/// Writes `metadata` anew, one line an entry: it was written in braces, or was no map.
fn rewrite_metadata(
    root: &BlockMap<'_>,
    mut lines: Lines<'_>,
    metadata: &Node,
    (key, value): (&str, Option<&str>),
) -> Result<String, Mistake> {
    let Some(place) = place_of(root, &lines, "metadata") else { return Ok(lines.join()) };
    let mut entries: Vec<(&str, String)> = Vec::new();
    if let Value::Map { entries: old, .. } = &metadata.value {
        for (name, value) in old.iter().filter(|(name, _)| name.text() != Some(key)) {
            let (Some(name), Some(text)) = (name.text(), value.text()) else {
                return Err(Mistake::new(place.first + 1, "`metadata` has a form that cannot be changed."));
            };
            entries.push((name, crate::scalar::scalar(text)));
        }
    }
    entries.extend(value.map(|value| (key, value.to_owned())));
    let indent = root.indent();
    let mut written: Vec<String> = entries
        .iter()
        .map(|(key, value)| format!("{indent}  {}: {value}", crate::scalar::scalar(key)))
        .collect();
    if !written.is_empty() {
        written.insert(0, format!("{}:{}", place.key, place.comment));
    }
    lines.replace(place.first, place.last, &written);
    Ok(lines.join())
}

/// A map with an entry a line.
struct BlockMap<'a> {
    entries: &'a [(Node, Node)],
    column: usize,
}

impl BlockMap<'_> {
    fn indent(&self) -> String {
        " ".repeat(self.column)
    }
}

fn block_map<'a>(front: &'a retry::Front) -> Result<BlockMap<'a>, Mistake> {
    let entries = fields::entries(front)?;
    match &front.tree.root {
        Some(root) if !root.is_flow() => Ok(BlockMap { entries, column: root.column }),
        _ => Err(Mistake::new(
            2,
            "The front matter is written in braces; write one field a line to change it.",
        )),
    }
}

/// The lines of an entry, from 1, with what stays of them.
struct EntryPlace {
    first: u32,
    last: u32,
    /// The indentation and the key as written.
    key: String,
    /// A comment after the value.
    comment: String,
}

fn place_of(map: &BlockMap<'_>, lines: &Lines<'_>, field: &str) -> Option<EntryPlace> {
    let (key, value) = map.entries.iter().find(|(key, _)| key.text() == Some(field))?;
    let source = lines.get(key.line);
    Some(EntryPlace {
        first: key.line,
        last: last_line(key, value, lines),
        key: source.chars().take(key.end.1).collect(),
        comment: comment(value, lines),
    })
}

/// The comment behind a value on one line.
fn comment(value: &Node, lines: &Lines<'_>) -> String {
    let Value::Text { text, is_block: false } = &value.value else { return String::new() };
    if text.is_empty() || value.line != value.end.0 {
        return String::new();
    }
    let source = lines.get(value.line);
    let end = source.char_indices().nth(value.end.1).map_or(source.len(), |(place, _)| place);
    let (before, rest) = source.split_at(end);
    // The scanner may stop behind the spaces after a value.
    let spaces = before.len() - before.trim_end_matches([' ', '\t']).len();
    let comment = source.split_at(end - spaces).1;
    match rest.trim_start().starts_with('#') && comment.starts_with([' ', '\t']) {
        true => comment.trim_end().to_owned(),
        false => String::new(),
    }
}

/// The last line of an entry. Comments and empty lines after the value do not belong to it.
fn last_line(key: &Node, value: &Node, lines: &Lines<'_>) -> u32 {
    match &value.value {
        Value::Text { text, is_block: false } if text.is_empty() => key.line,
        Value::Text { is_block: true, .. } => block_end(key, value, lines),
        Value::Text { .. } | Value::List { is_flow: true, .. } | Value::Map { is_flow: true, .. } => {
            value.end.0
        }
        Value::List { items, .. } => {
            items.iter().map(|item| last_line(item, item, lines)).max().unwrap_or(key.line)
        }
        Value::Map { entries, .. } => {
            entries.iter().map(|(key, value)| last_line(key, value, lines)).max().unwrap_or(key.line)
        }
    }
}

/// The last line of a block scalar: of the lines that are indented deeper than its key.
fn block_end(key: &Node, value: &Node, lines: &Lines<'_>) -> u32 {
    let mut last = value.line.max(key.line);
    let mut line = last + 1;
    let least = key.column;
    while line <= lines.count() {
        let text = lines.get(line);
        let indent = text.chars().take_while(|c| *c == ' ').count();
        if !text.trim().is_empty() {
            if indent <= least {
                break;
            }
            last = line;
        }
        line += 1;
    }
    last
}

/// The line after which a new field goes: that of the last field before it in the usual order, or none.
fn insertion(map: &BlockMap<'_>, lines: &Lines<'_>, field: &str) -> u32 {
    let before = ORDER.iter().take_while(|name| **name != field);
    let last = before
        .filter_map(|name| map.entries.iter().find(|(key, _)| key.text() == Some(name)))
        .map(|(key, value)| last_line(key, value, lines))
        .max();
    let first = map.entries.first().map_or(0, |(key, _)| key.line.saturating_sub(1));
    last.unwrap_or(first)
}

/// Lines with their ends.
struct Lines<'a> {
    lines: Vec<std::borrow::Cow<'a, str>>,
    newline: &'a str,
}

impl<'a> Lines<'a> {
    fn new(text: &'a str, newline: &'a str) -> Self {
        Self { lines: text.split_inclusive('\n').map(Into::into).collect(), newline }
    }

    fn count(&self) -> u32 {
        u32::try_from(self.lines.len()).unwrap_or(u32::MAX)
    }

    /// A line without its end.
    fn get(&self, line: u32) -> &str {
        let place = usize::try_from(line.saturating_sub(1)).unwrap_or(usize::MAX);
        self.lines.get(place).map_or("", |line| line.trim_end_matches(['\r', '\n']))
    }

    /// Replaces the lines from `first` to `last`.
    fn replace(&mut self, first: u32, last: u32, with: &[String]) {
        let count = self.lines.len();
        let start = usize::try_from(first.saturating_sub(1)).unwrap_or(count).min(count);
        let end = usize::try_from(last).unwrap_or(count).clamp(start, count);
        let newline = self.newline;
        let with = with.iter().map(|line| std::borrow::Cow::Owned(format!("{line}{newline}")));
        self.lines.splice(start..end, with);
    }

    /// Inserts lines after the line `after`; 0 is the beginning.
    fn insert(&mut self, after: u32, added: &[String]) {
        self.replace(after + 1, after, added);
    }

    fn join(self) -> String {
        self.lines.concat()
    }
}
