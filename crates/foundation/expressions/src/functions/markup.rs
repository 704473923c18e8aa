//! Functions that make plain text of markup. Each looks at a character once or twice.

use super::function::{Given, functions};
use super::wanted::Wanted as W;
use crate::values::types::Type;

use Given::Always;

functions! {
    "strip_html"(W::Text) gives Always(Type::Text),
        "The text of an HTML document, without its tags, scripts and styles. Paragraphs and line breaks are new lines.", r#"strip_html("<p>Red &amp; <b>blue</b></p>")"# => r#""Red & blue""#,
        Plain |a| a.of_text(strip_html);
    "strip_markdown"(W::Text) gives Always(Type::Text),
        "The text of a Markdown document, without its marks. Links are their texts.", r#"strip_markdown("**Red** [shoe](https://example.com)")"# => r#""Red shoe""#,
        Plain |a| a.of_text(strip_markdown);
}

/// Tags after which a new line begins.
const BREAKS: [&str; 14] =
    ["br", "p", "div", "li", "tr", "h1", "h2", "h3", "h4", "h5", "h6", "ul", "ol", "table"];

fn strip_html(html: &str) -> String {
    let mut out = String::with_capacity(html.len());
    let mut rest = html;
    while let Some((before, behind)) = rest.split_once('<') {
        push_unescaped(before, &mut out);
        // A sign that begins no tag is text.
        if !behind.starts_with(|letter: char| letter.is_ascii_alphabetic() || "/!?".contains(letter)) {
            out.push('<');
            rest = behind;
            continue;
        }
        let after_comment = behind.strip_prefix("!--").map(|comment| behind_of(comment, "-->"));
        rest = after_comment.unwrap_or_else(|| {
            let (tag, after) = behind.split_once('>').unwrap_or((behind, ""));
            let name: String =
                tag.trim_start_matches('/').chars().take_while(char::is_ascii_alphanumeric).collect();
            let name = name.to_ascii_lowercase();
            let is_end = tag.starts_with('/');
            if (is_end || name == "br") && BREAKS.contains(&name.as_str()) {
                out.push('\n');
            }
            match name.as_str() {
                "script" | "style" if !is_end => behind_element(after, &name),
                _ => after,
            }
        });
    }
    push_unescaped(rest, &mut out);
    tidy(&out)
}

/// What follows a mark; nothing where there is none.
fn behind_of<'a>(text: &'a str, mark: &str) -> &'a str {
    text.split_once(mark).map_or("", |(_, after)| after)
}

/// What follows the end of a script or a style.
fn behind_element<'a>(text: &'a str, name: &str) -> &'a str {
    let mut rest = text;
    while let Some((_, after)) = rest.split_once("</") {
        rest = after;
        if rest.get(..name.len()).is_some_and(|found| found.eq_ignore_ascii_case(name)) {
            return behind_of(rest, ">");
        }
    }
    ""
}

/// Appends text with its character references resolved.
fn push_unescaped(text: &str, out: &mut String) {
    /// The most characters of a reference.
    const LONGEST: usize = 10;
    let mut rest = text;
    while let Some((before, behind)) = rest.split_once('&') {
        out.push_str(before);
        let end =
            behind.char_indices().take(LONGEST).find(|(_, letter)| *letter == ';').map(|(place, _)| place);
        let resolved = end.and_then(|end| Some((referenced(behind.get(..end)?)?, behind.get(end + 1..)?)));
        match resolved {
            Some((letter, after)) => {
                out.push(letter);
                rest = after;
            }
            None => {
                out.push('&');
                rest = behind;
            }
        }
    }
    out.push_str(rest);
}

fn referenced(name: &str) -> Option<char> {
    Some(match name {
        "amp" => '&',
        "lt" => '<',
        "gt" => '>',
        "quot" => '"',
        "apos" => '\'',
        "nbsp" => ' ',
        _ => {
            let number = name.strip_prefix('#')?;
            let code = match number.strip_prefix(['x', 'X']) {
                Some(hex) => u32::from_str_radix(hex, 16).ok()?,
                None => number.parse().ok()?,
            };
            char::from_u32(code).filter(|letter| *letter != '\0')?
        }
    })
}

/// Text with single spaces, and at most one empty line in a row.
fn tidy(text: &str) -> String {
    let mut lines: Vec<String> = Vec::new();
    for line in text.lines() {
        let line = line.split_whitespace().collect::<Vec<_>>().join(" ");
        if !line.is_empty() || lines.last().is_some_and(|last| !last.is_empty()) {
            lines.push(line);
        }
    }
    lines.join("\n").trim().to_owned()
}

fn strip_markdown(text: &str) -> String {
    let mut lines = Vec::new();
    let mut is_code = false;
    for line in text.lines() {
        if line.trim_start().starts_with("```") || line.trim_start().starts_with("~~~") {
            is_code = !is_code;
        } else if is_code {
            lines.push(line.to_owned());
        } else {
            lines.push(strip_line(line));
        }
    }
    lines.join("\n").trim().to_owned()
}

fn strip_line(line: &str) -> String {
    let content = line.trim_start().trim_start_matches(['>', ' ']);
    let hashes = content.chars().take_while(|letter| *letter == '#').count();
    let content = match content.get(hashes..) {
        Some(heading) if (1..=6).contains(&hashes) && heading.starts_with(' ') => heading.trim(),
        _ => content,
    };
    // A line of signs is a rule, or underlines a heading.
    let is_rule = content.len() >= 3
        && ['-', '*', '_', '='].iter().any(|sign| content.chars().all(|letter| letter == *sign));
    if is_rule { String::new() } else { strip_inline(content) }
}

/// A line without marks of emphasis, code, links and images.
fn strip_inline(line: &str) -> String {
    let letters: Vec<char> = line.chars().collect();
    let mut out = String::with_capacity(line.len());
    let mut place = 0;
    let at = |place: usize| letters.get(place).copied().unwrap_or_default();
    while let Some(&letter) = letters.get(place) {
        let (previous, next) = (place.checked_sub(1).map_or(' ', at), at(place + 1));
        match letter {
            '\\' if next.is_ascii_punctuation() => {
                out.push(next);
                place += 1;
            }
            '`' => {}
            '*' if next != ' ' || previous != ' ' => {}
            '~' if next == '~' || previous == '~' => {}
            // Within a word it is a letter.
            '_' if !(previous.is_alphanumeric() && next.is_alphanumeric()) => {}
            '!' if next == '[' && link(&letters, place + 1).is_some() => {}
            '[' => match link(&letters, place) {
                Some((text, end)) => {
                    out.extend(text);
                    place = end;
                }
                None => out.push(letter),
            },
            _ => out.push(letter),
        }
        place += 1;
    }
    out
}

/// The text of a link whose bracket is at `place`, and the place of its last parenthesis. Links do not nest, so that the search
/// ends at the next bracket.
fn link(letters: &[char], place: usize) -> Option<(Vec<char>, usize)> {
    let text = letters.get(place + 1..)?;
    let length = text.iter().position(|letter| matches!(letter, '[' | ']'))?;
    let target = text.get(length..)?.strip_prefix(&[']', '('])?;
    let end = target.iter().position(|letter| matches!(letter, '(' | ')'))?;
    (target.get(end) == Some(&')'))
        .then(|| (text.get(..length).unwrap_or_default().to_vec(), place + 3 + length + end))
}
