//! The fenced blocks of a page: ```` ```LANGUAGE [MARK: TEXT] ````.

use std::path::{Path, PathBuf};

/// A fenced block.
#[derive(Debug)]
pub(crate) struct Fence {
    /// The line of the page on which it begins.
    pub(crate) line: usize,
    /// Such as `sh`.
    pub(crate) language: String,
    /// What follows the language: `no_run: why it cannot be run`, `drill: the step that it is`, or nothing.
    pub(crate) mark: Option<(String, String)>,
    /// What is in it, without the indentation of the fence.
    pub(crate) text: String,
}

impl Fence {
    /// Whether it has this mark. A mark without a text is no mark.
    pub(crate) fn is_marked(&self, mark: &str) -> bool {
        self.mark.as_ref().is_some_and(|(name, text)| name == mark && !text.is_empty())
    }

    /// The statuses that the comments of its commands promise, such as `# 201`.
    pub(crate) fn statuses(&self) -> Vec<String> {
        let comments =
            self.text.lines().filter_map(|line| line.rsplit_once("# ").map(|(_, comment)| comment));
        let status =
            |comment: &&str| comment.len() == 3 && comment.bytes().all(|letter| letter.is_ascii_digit());
        comments.filter(status).map(str::to_owned).collect()
    }
}

/// The folder that README.md is in.
pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// README.md and the pages of `docs/`, as paths below the [`root`].
pub(crate) fn all() -> Vec<String> {
    let files = std::fs::read_dir(root().join("docs")).unwrap();
    let names = files.map(|file| file.unwrap().file_name().into_string().unwrap());
    let mut pages: Vec<String> =
        names.filter(|name| name.ends_with(".md")).map(|name| format!("docs/{name}")).collect();
    pages.push("README.md".to_owned());
    pages.sort();
    pages
}

/// The blocks of a page.
pub(crate) fn fences(path: &str) -> Vec<Fence> {
    let page = std::fs::read_to_string(root().join(path)).unwrap();
    let mut lines = page.lines().enumerate();
    let mut fences = Vec::new();
    while let Some((number, line)) = lines.next() {
        let opening = line.trim_start();
        let Some(info) = opening.strip_prefix("```") else { continue };
        let indentation = line.len() - opening.len();
        let inside = lines.by_ref().map(|(_, line)| line).take_while(|line| line.trim() != "```");
        let inside: Vec<&str> = inside.map(|line| line.get(indentation..).unwrap_or_default()).collect();
        let (language, mark) = info.split_once(' ').unwrap_or((info, ""));
        let (name, text) = mark.split_once(':').unwrap_or((mark, ""));
        fences.push(Fence {
            line: number + 1,
            language: language.to_owned(),
            mark: (!name.is_empty()).then(|| (name.to_owned(), text.trim().to_owned())),
            text: inside.join("\n"),
        });
    }
    fences
}

/// The text of the block that is this step of a drill.
pub(crate) fn step(path: &str, name: &str) -> String {
    let steps = fences(path).into_iter();
    let mut steps = steps
        .filter(|fence| fence.is_marked("drill"))
        .filter(|fence| fence.mark.as_ref().is_some_and(|(_, step)| step == name));
    let step = steps.next().unwrap_or_else(|| panic!("{path} has no block `drill: {name}`"));
    assert!(steps.next().is_none(), "{path} has `drill: {name}` twice");
    step.text
}
