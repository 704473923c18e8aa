//! Placeholders in texts, in the spelling that instructions, tools, quick replies and broadcasts publish: `{{contact.$name}}`
//! stands for a value, and `{{contact.$name|there}}` or `{{vars.shop.phone | default:"none"}}` has a text for the case that
//! there is none. Braces around anything else are text. New texts are [templates](crate::Template).

/// A placeholder in a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Placeholder<'a> {
    /// The word that it begins with, such as `contact`.
    pub root: &'a str,
    /// The text behind the first dot, such as `$name`. Empty if there is none.
    pub key: &'a str,
    /// The text for the case that there is no value.
    pub fallback: Option<&'a str>,
}

/// A piece of a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Piece<'a> {
    /// Text, with braces that begin nothing.
    Text(&'a str),
    /// The text between `{{` and the next `}}`, which has no `{{` in it.
    Braces(&'a str),
    /// `{{` without `}}` before the next `{{`, and the whole text behind it.
    Open(&'a str),
}

/// The pieces of a text, in its order. Together they are the whole text.
pub fn pieces(text: &str) -> impl Iterator<Item = Piece<'_>> {
    let mut rest = text;
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let Some(behind) = rest.strip_prefix("{{") else {
            let (before, from) = rest.split_at(rest.find("{{").unwrap_or(rest.len()));
            rest = from;
            return Some(Piece::Text(before));
        };
        let inside = behind.split_once("}}").filter(|(inside, _)| !inside.contains("{{"));
        rest = inside.map_or(behind, |(_, after)| after);
        Some(inside.map_or(Piece::Open(behind), |(inside, _)| Piece::Braces(inside)))
    })
}

impl<'a> Placeholder<'a> {
    /// Reads what stands in the braces, with spaces and filters as one likes. `None` for what does not begin with a letter,
    /// as in `{{1}}`: that is text.
    pub fn read(inside: &'a str) -> Option<Self> {
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
pub fn variable_key(text: &str) -> &str {
    let is_of_key =
        |letter: char| letter.is_ascii_lowercase() || letter.is_ascii_digit() || "_.".contains(letter);
    text.split(|letter| !is_of_key(letter)).next().unwrap_or_default().trim_end_matches('.')
}

/// The text of the filter `default:"…"`, or the one behind `|` as in `{{contact.$name|there}}`. Other filters of variables are
/// passed over.
fn fallback(inside: &str, is_variable: bool) -> Option<&str> {
    let mut filters = inside.split('|').skip(1).map(str::trim);
    let named = filters.clone().find_map(|filter| filter.strip_prefix("default:"));
    let named = named.map(|text| text.trim().trim_matches(['"', '\'']));
    named.or_else(|| filters.next().filter(|_| !is_variable))
}

/// The text with values in the place of its placeholders. `value` gives the text of one; `None` leaves it as it is. A value
/// that was put in is not searched for placeholders.
pub fn with_values<'a>(text: &'a str, mut value: impl FnMut(Placeholder<'a>) -> Option<String>) -> String {
    let mut out = String::with_capacity(text.len());
    for piece in pieces(text) {
        match piece {
            Piece::Text(text) => out.push_str(text),
            Piece::Open(_) => out.push_str("{{"),
            Piece::Braces(inside) => match Placeholder::read(inside).and_then(&mut value) {
                Some(value) => out.push_str(&value),
                None => out.extend(["{{", inside, "}}"]),
            },
        }
    }
    out
}

/// The placeholders of a text, in its order.
pub fn placeholders(text: &str) -> Vec<Placeholder<'_>> {
    let inside = |piece| match piece {
        Piece::Braces(inside) => Placeholder::read(inside),
        _ => None,
    };
    pieces(text).filter_map(inside).collect()
}

/// The placeholder that is the whole text.
pub fn whole_placeholder(text: &str) -> Option<Placeholder<'_>> {
    let inside = text.trim().strip_prefix("{{")?.strip_suffix("}}")?;
    if inside.contains("{{") || inside.contains("}}") { None } else { Placeholder::read(inside) }
}

/// A piece of a URL with places for arguments: `https://example.com/orders/{id}`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UrlPiece<'a> {
    /// Text.
    Text(&'a str),
    /// The name of the argument in a place.
    Place(&'a str),
    /// A brace without its other one, or around another place.
    Stray(&'a str),
}

/// The pieces of a URL, in its order.
pub fn url_pieces(url: &str) -> impl Iterator<Item = UrlPiece<'_>> {
    let mut rest = url;
    std::iter::from_fn(move || {
        let first = rest.chars().next()?;
        if !"{}".contains(first) {
            let (text, from) = rest.split_at(rest.find(['{', '}']).unwrap_or(rest.len()));
            rest = from;
            return Some(UrlPiece::Text(text));
        }
        let (brace, behind) = rest.split_at(1);
        let place = behind.split_once('}').filter(|(name, _)| first == '{' && !name.contains('{'));
        rest = place.map_or(behind, |(_, after)| after);
        Some(place.map_or(UrlPiece::Stray(brace), |(name, _)| UrlPiece::Place(name)))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

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

    #[test]
    fn the_pieces_of_a_text_are_the_text() {
        for (text, expected) in [
            ("", vec![]),
            ("a {{b}}", vec![Piece::Text("a "), Piece::Braces("b")]),
            ("{{{{b}}}}", vec![Piece::Open("{{b}}}}"), Piece::Braces("b"), Piece::Text("}}")]),
            ("{{{b}}", vec![Piece::Braces("{b")]),
            ("}} {{ a", vec![Piece::Text("}} "), Piece::Open(" a"), Piece::Text(" a")]),
        ] {
            assert_eq!(pieces(text).collect::<Vec<_>>(), expected, "{text}");
        }
    }

    #[test]
    fn places_of_urls_are_read() {
        use UrlPiece::{Place, Stray, Text};
        for (url, expected) in [
            ("https://a/{b}/c?d={e}", vec![Text("https://a/"), Place("b"), Text("/c?d="), Place("e")]),
            ("{}", vec![Place("")]),
            ("a{b", vec![Text("a"), Stray("{"), Text("b")]),
            ("a}b", vec![Text("a"), Stray("}"), Text("b")]),
            ("{a{b}}", vec![Stray("{"), Text("a"), Place("b"), Stray("}")]),
        ] {
            assert_eq!(url_pieces(url).collect::<Vec<_>>(), expected, "{url}");
        }
    }

    proptest::proptest! {
        #[test]
        fn nothing_is_lost(text in "[{}a|.$ é]{0,30}") {
            let together: String = pieces(&text)
                .map(|piece| match piece {
                    Piece::Text(text) => text.to_owned(),
                    Piece::Braces(inside) => format!("{{{{{inside}}}}}"),
                    Piece::Open(_) => "{{".to_owned(),
                })
                .collect();
            proptest::prop_assert_eq!(&together, &text);
            proptest::prop_assert_eq!(with_values(&text, |_| None), text);
        }
    }
}
