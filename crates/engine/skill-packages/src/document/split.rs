//! Takes SKILL.md apart: BOM, fences, front matter, instructions.

use crate::faults::Mistake;
use crate::rules::FRONT_MATTER;

/// The parts of a document. Joined in order they are the document.
pub(crate) struct Parts<'a> {
    /// A BOM, and the line `---`.
    pub(crate) opening: &'a str,
    /// The lines of YAML, each with its end.
    pub(crate) front: &'a str,
    /// The second line `---`.
    pub(crate) closing: &'a str,
    /// All after it.
    pub(crate) body: &'a str,
}

impl Parts<'_> {
    /// The line end of the document.
    pub(crate) fn newline(&self) -> &'static str {
        if self.opening.ends_with("\r\n") { "\r\n" } else { "\n" }
    }
}

/// Reads bytes as text.
pub(crate) fn text(bytes: &[u8]) -> Result<&str, Mistake> {
    std::str::from_utf8(bytes).map_err(|fault| {
        let before = bytes.get(..fault.valid_up_to()).unwrap_or_default();
        let lines = before.iter().filter(|byte| **byte == b'\n').count();
        Mistake::new(u32::try_from(lines + 1).unwrap_or(u32::MAX), "The text is not UTF-8.")
    })
}

/// Finds the parts.
pub(crate) fn split(text: &str) -> Result<Parts<'_>, Mistake> {
    let bom = if text.starts_with('\u{feff}') { '\u{feff}'.len_utf8() } else { 0 };
    let (_, rest) = text.split_at(bom);
    let first = rest.split_inclusive('\n').next().unwrap_or_default();
    if !is_fence(first) {
        return Err(Mistake::new(
            1,
            "The first line must be `---`: SKILL.md begins with front matter in YAML.",
        ));
    }
    let (opening, rest) = text.split_at(bom + first.len());
    let mut length = 0;
    for line in rest.split_inclusive('\n') {
        if is_fence(line) {
            let (front, rest) = rest.split_at(length);
            let (closing, body) = rest.split_at(line.len());
            return Ok(Parts { opening, front, closing, body });
        }
        length += line.len();
        if length > FRONT_MATTER {
            return Err(Mistake::new(
                1,
                "The front matter is longer than 64 KB, or the line `---` that ends it is missing.",
            ));
        }
    }
    Err(Mistake::new(1, "The line `---` that ends the front matter is missing."))
}

fn is_fence(line: &str) -> bool {
    line.trim_end() == "---"
}
