//! The files of a package that its instructions refer to.

use regex::Regex;
use std::collections::BTreeSet;
use std::sync::LazyLock;

/// The target of a link or picture of Markdown.
static LINK: LazyLock<Option<Regex>> =
    LazyLock::new(|| Regex::new(r#"\]\(\s*<?([^()\s<>]+)>?(?:\s+["'][^)]*)?\s*\)"#).ok());

/// A path in one of the usual folders, with an ending.
static PATH: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(r"(?:^|[^\w./~$}\\-])(?:\./)?((?:scripts|references|assets)/(?:[\w-][\w.-]*/)*[\w-]+(?:\.[\w-]+)*\.[A-Za-z][A-Za-z0-9]{0,7})(?:$|[^\w/*<{-])").ok()
});

/// The files of the package that instructions refer to: relative links of Markdown, and paths below `scripts/`, `references/`
/// and `assets/` that have an ending. Sorted, each once. Links in code are examples and not taken.
pub fn referenced_files(body: &str) -> Vec<String> {
    let mut files = BTreeSet::new();
    let mut fence: Option<&str> = None;
    for line in body.lines() {
        let start = line.trim_start();
        let mark = ["```", "~~~"].into_iter().find(|mark| start.starts_with(mark));
        match (fence, mark) {
            (Some(open), Some(mark)) if open == mark => fence = None,
            (None, Some(mark)) => fence = Some(mark),
            _ => {}
        }
        if fence.is_none() {
            files.extend(links(&without_code(line)));
        }
        files.extend(paths(line));
    }
    files.into_iter().collect()
}

/// A line without its code in backticks.
fn without_code(line: &str) -> String {
    line.split('`').step_by(2).collect::<Vec<_>>().join(" ")
}

fn links(line: &str) -> Vec<String> {
    let Some(link) = LINK.as_ref() else { return Vec::new() };
    link.captures_iter(line)
        .filter_map(|found| found.get(1))
        .filter_map(|target| file(target.as_str()))
        .collect()
}

/// The file of a link's target, if it is one of the package.
fn file(target: &str) -> Option<String> {
    let path = target.split(['#', '?']).next().unwrap_or_default();
    let path = decoded(path.trim_start_matches("./"));
    let is_placeholder = path.contains(['{', '}', '<', '>', '*', '$', ':', '@']);
    let is_file = !path.starts_with('/') && !path.ends_with('/') && crate::check_path(&path).is_ok();
    (is_file && !is_placeholder && path.contains(['.', '/'])).then_some(path)
}

/// A path without `%20` and its like.
fn decoded(path: &str) -> String {
    let mut bytes = Vec::new();
    let mut rest = path.as_bytes();
    while let [first, tail @ ..] = rest {
        let pair = tail.get(..2).and_then(|pair| std::str::from_utf8(pair).ok());
        let byte = pair.filter(|_| *first == b'%').and_then(|pair| u8::from_str_radix(pair, 16).ok());
        bytes.push(byte.unwrap_or(*first));
        rest = if byte.is_some() { tail.get(2..).unwrap_or_default() } else { tail };
    }
    String::from_utf8(bytes).unwrap_or_else(|_| path.to_owned())
}

fn paths(line: &str) -> Vec<String> {
    let Some(pattern) = PATH.as_ref() else { return Vec::new() };
    let mut found = Vec::new();
    let mut from = 0;
    // The character after one path may be the one before the next.
    while let Some(path) = pattern.captures_at(line, from).and_then(|captures| captures.get(1)) {
        found.push(path.as_str().to_owned());
        from = path.end();
    }
    found
}
