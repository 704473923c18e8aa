//! Names and lists in client input.

use model::{Error, Result};

/// Returns the name that `wrong` is probably a misspelling of.
pub fn nearest<'a>(wrong: &str, names: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    names
        .map(|name| (strsim::damerau_levenshtein(wrong, name), name))
        .filter(|(distance, name)| *distance <= (name.len().max(wrong.len()) / 3).max(1))
        .min()
        .map(|(_, name)| name)
}

/// Splits a comma-separated query parameter, and trims its parts.
///
/// # Errors
/// 400 `validation_error` about `param` if a part is empty.
pub fn comma_list<'a>(text: &'a str, param: &str) -> Result<Vec<&'a str>> {
    let parts: Vec<&str> = text.split(',').map(str::trim).collect();
    if parts.iter().any(|part| part.is_empty()) {
        return Err(Error::invalid(param, "must not have an empty part before, between or after commas"));
    }
    Ok(parts)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn near_names_are_found() {
        let names = || ["price", "name", "created_at"].into_iter();
        assert_eq!(nearest("prize", names()), Some("price"));
        assert_eq!(nearest("create_at", names()), Some("created_at"));
        assert_eq!(nearest("colour", names()), None);
    }
}
