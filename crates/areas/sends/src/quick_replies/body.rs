//! The text of a quick reply and what stands in it for values: `{{contact.$name|there}}`.

use expressions::placeholder::{Piece, pieces, variable_key};
use model::{Code, Error, Result};

/// A part of a text.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Part<'a> {
    /// As it is.
    Text(&'a str),
    /// What is replaced by a value.
    Value {
        /// Where the value is.
        source: Source<'a>,
        /// What stands there without a value.
        fallback: Option<&'a str>,
    },
}

/// Where a value is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Source<'a> {
    /// The contact's field with this key.
    Contact(&'a str),
    /// The workspace's variable with this key.
    Variable(&'a str),
    /// What is asked for when the answer is sent.
    Ask(&'a str),
}

/// Takes a text apart.
///
/// # Errors
/// `unknown_variable` for what names no value, `validation_error` for a placeholder without an end; both with `body`.
pub(super) fn parts(text: &str) -> Result<Vec<Part<'_>>> {
    pieces(text).map(part).collect()
}

fn part(piece: Piece<'_>) -> Result<Part<'_>> {
    let inside = match piece {
        Piece::Text(text) => return Ok(Part::Text(text)),
        Piece::Open(behind) => {
            let inside = behind.split_once("}}").map(|(inside, _)| inside.trim());
            return Err(inside.map_or_else(|| Error::invalid("body", "has a `{{` without `}}`"), unknown));
        }
        Piece::Braces(inside) => inside,
    };
    let (path, fallback) = match inside.split_once('|') {
        Some((path, fallback)) => (path, Some(fallback.trim())),
        None => (inside, None),
    };
    let source = source(path.trim()).ok_or_else(|| unknown(inside.trim()))?;
    Ok(Part::Value { source, fallback })
}

/// The error for a placeholder that names no value.
pub(super) fn unknown(placeholder: &str) -> Error {
    let message = format!(
        "`{{{{{placeholder}}}}}` is no field of contacts (`contact.`), no variable (`vars.`) and no text to ask for (`ask.`)."
    );
    Error::new(Code::UnknownVariable, message).param("body")
}

fn source(path: &str) -> Option<Source<'_>> {
    let path = path.strip_prefix('$').unwrap_or(path);
    let (kind, key) = path.split_once('.')?;
    let is_key = |extra: &str| {
        key.chars().all(|letter| letter.is_alphanumeric() || extra.contains(letter)) && !key.is_empty()
    };
    match kind {
        "contact" if is_key("$_-") => Some(Source::Contact(key)),
        "vars" if !key.is_empty() && variable_key(key) == key => Some(Source::Variable(key)),
        "ask" if is_key("_- ") && key.chars().count() <= 64 => Some(Source::Ask(key)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::{Part, Source, parts};

    #[test]
    fn a_text_is_taken_apart() {
        let found = parts("Hi {{contact.$name|there}}, {{ $vars.shop.phone }}{{ask.Order id}}!").unwrap();
        assert_eq!(
            found,
            [
                Part::Text("Hi "),
                Part::Value { source: Source::Contact("$name"), fallback: Some("there") },
                Part::Text(", "),
                Part::Value { source: Source::Variable("shop.phone"), fallback: None },
                Part::Value { source: Source::Ask("Order id"), fallback: None },
                Part::Text("!"),
            ]
        );
        assert_eq!(parts("}} no {placeholder}").unwrap(), [Part::Text("}} no {placeholder}")]);
    }

    #[test]
    fn what_names_no_value_is_refused() {
        for text in
            ["{{name}}", "{{contact.}}", "{{vars.A}}", "{{ask.}}", "{{}}", "{{{{vars.a}}}}", "{{other.x}}"]
        {
            let error = parts(text).unwrap_err();
            assert_eq!(error.code().as_str(), "unknown_variable", "{text}");
            assert_eq!(error.param_name(), Some("body"));
        }
        assert_eq!(parts("{{contact.$name").unwrap_err().code().as_str(), "validation_error");
    }
}
