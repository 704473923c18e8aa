//! Placeholders in texts: `{{contact.$name}}` stands for a value.

/// A placeholder in a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Placeholder<'a> {
    /// The word that it begins with, such as `contact`.
    pub root: &'a str,
    /// What follows the first dot, such as `$name`. Empty if there is none.
    pub key: &'a str,
    /// The text that stands there if there is no value.
    pub fallback: Option<&'a str>,
}

impl<'a> Placeholder<'a> {
    /// Reads what stands in the braces, with spaces and filters as one likes. `None` for what does not begin with a letter,
    /// as in `{{1}}`: that is text.
    fn read(inside: &'a str) -> Option<Self> {
        let path = inside.split('|').next().unwrap_or_default().trim();
        let path = path.strip_prefix('$').unwrap_or(path);
        if !path.starts_with(|letter: char| letter.is_alphabetic()) {
            return None;
        }
        let (root, key) = path.split_once('.').unwrap_or((path, ""));
        let (key, is_variable) = if root == "vars" { (variable_key(key), true) } else { (key, false) };
        Some(Self { root, key, fallback: fallback(inside, is_variable) })
    }

    /// What it stands for, as it is written: `contact.$name`.
    pub fn path(&self) -> String {
        if self.key.is_empty() { self.root.to_owned() } else { format!("{}.{}", self.root, self.key) }
    }
}

/// The key of a variable at the beginning of a text.
fn variable_key(text: &str) -> &str {
    let is_of_key =
        |letter: char| letter.is_ascii_lowercase() || letter.is_ascii_digit() || "_.".contains(letter);
    text.split(|letter| !is_of_key(letter)).next().unwrap_or_default().trim_end_matches('.')
}

/// What the filter `default:"…"` says, or what stands behind `|` as in `{{contact.$name|there}}`. Other filters of variables
/// are passed over.
fn fallback(inside: &str, is_variable: bool) -> Option<&str> {
    let mut filters = inside.split('|').skip(1).map(str::trim);
    let named = filters.clone().find_map(|filter| filter.strip_prefix("default:"));
    let named = named.map(|text| text.trim().trim_matches(['"', '\'']));
    named.or_else(|| filters.next().filter(|_| !is_variable))
}

/// The text with values in the place of its placeholders. `value` gives the text of one; `None` leaves it as it is. What was
/// put in is not looked at again.
pub fn with_values<'a>(text: &'a str, mut value: impl FnMut(Placeholder<'a>) -> Option<String>) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, behind)) = rest.split_once("{{") {
        out.push_str(before);
        let inside = behind.split_once("}}").filter(|(inside, _)| !inside.contains("{{"));
        let filled = inside.and_then(|(inside, after)| Some((value(Placeholder::read(inside)?)?, after)));
        match filled {
            Some((value, after)) => {
                out.push_str(&value);
                rest = after;
            }
            None => {
                out.push_str("{{");
                rest = behind;
            }
        }
    }
    out.push_str(rest);
    out
}

/// The placeholders of a text, in its order.
pub fn placeholders(text: &str) -> Vec<Placeholder<'_>> {
    let mut all = Vec::new();
    with_values(text, |placeholder| {
        all.push(placeholder);
        None
    });
    all
}

/// The placeholder that is the whole text.
pub fn whole_placeholder(text: &str) -> Option<Placeholder<'_>> {
    let inside = text.trim().strip_prefix("{{")?.strip_suffix("}}")?;
    if inside.contains("{{") || inside.contains("}}") { None } else { Placeholder::read(inside) }
}

#[cfg(test)]
mod tests {
    use super::{placeholders, whole_placeholder, with_values};

    #[test]
    fn placeholders_are_read() {
        let read = |text| {
            let all = placeholders(text).into_iter();
            all.map(|it| (it.path(), it.fallback.map(str::to_owned))).collect::<Vec<_>>()
        };
        let named = |path: &str, fallback: Option<&str>| (path.to_owned(), fallback.map(str::to_owned));
        assert_eq!(
            read("Hi {{contact.$name|there}}, {{ $contact.id }} {{now}} {{business.name | default:\"we\"}}"),
            [
                named("contact.$name", Some("there")),
                named("contact.id", None),
                named("now", None),
                named("business.name", Some("we")),
            ]
        );
        assert_eq!(
            read("{{vars.a.b | upper}} {{vars.c | upper | default:'x'}}"),
            [named("vars.a.b", None), named("vars.c", Some("x"))]
        );
        assert_eq!(
            read("{{1}} {{ \"a\": 1 }} {{}} {{contact.id {x}} {{{{name}}}}"),
            [named("contact.id {x", None), named("name", None)]
        );
    }

    #[test]
    fn values_are_put_in_once() {
        let filled = with_values("{{contact.$name}} and {{other}} {{1}}", |placeholder| {
            (placeholder.root == "contact").then(|| "{{vars.secret}}".to_owned())
        });
        assert_eq!(filled, "{{vars.secret}} and {{other}} {{1}}");
        assert_eq!(whole_placeholder(" {{ contact.id }} ").unwrap().path(), "contact.id");
        for text in ["{{contact.id}}{{now}}", "id {{contact.id}}", "{{1}}", ""] {
            assert_eq!(whole_placeholder(text), None, "{text}");
        }
    }
}
