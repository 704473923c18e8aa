//! Decoding of text in the charset that its sender declares.

use std::borrow::Cow;

use encoding_rs::{Encoding, UTF_8};

/// Returns the `charset` of a content type such as `text/plain; charset="ISO-8859-1"`.
pub fn label(content_type: &str) -> Option<&str> {
    let parameters = content_type.split(';').skip(1);
    let mut charsets = parameters.filter_map(|parameter| {
        let (name, value) = parameter.split_once('=')?;
        let value = value.trim().trim_matches(['"', '\'']).trim();
        (name.trim().eq_ignore_ascii_case("charset") && !value.is_empty()).then_some(value)
    });
    charsets.next()
}

/// Decodes text in the `charset` of its content type. Uses UTF-8 if the charset is missing or unknown. Bytes that are
/// invalid in the charset become U+FFFD. A byte order mark takes precedence over the content type.
pub fn decode<'a>(content_type: Option<&str>, bytes: &'a [u8]) -> Cow<'a, str> {
    decode_as(content_type.and_then(label), bytes)
}

/// Decodes text in the charset with this name (see [`decode`]).
pub fn decode_as<'a>(label: Option<&str>, bytes: &'a [u8]) -> Cow<'a, str> {
    named(label).decode(bytes).0
}

/// Decodes a part of a text without looking for a byte order mark, such as a field of a form.
pub fn decode_part<'a>(label: Option<&str>, bytes: &'a [u8]) -> Cow<'a, str> {
    named(label).decode_without_bom_handling(bytes).0
}

fn named(label: Option<&str>) -> &'static Encoding {
    label.and_then(|label| Encoding::for_label_no_replacement(label.as_bytes())).unwrap_or(UTF_8)
}

/// Returns whether the charset is known.
pub fn is_known(label: &str) -> bool {
    Encoding::for_label_no_replacement(label.as_bytes()).is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_read_in_its_charset() {
        for (content_type, bytes, text) in [
            (Some("text/plain; charset=ISO-8859-1"), &b"Mu\xf1oz"[..], "Muñoz"),
            (Some("text/plain;CharSet=\"windows-1252\"; x=y"), b"\x80 5", "€ 5"),
            (Some("text/plain; x=1; charset='latin1'"), b"\xe9", "é"),
            (Some("text/plain; charset=Shift_JIS"), b"\x93\xfa\x96\x7b", "日本"),
            (Some("text/plain; charset=utf-8"), "ñ".as_bytes(), "ñ"),
            (Some("text/plain; charset=nonsense"), "ñ".as_bytes(), "ñ"),
            (Some("text/plain; charset="), b"a\xff", "a\u{fffd}"),
            (Some("text/plain"), b"a\xf1", "a\u{fffd}"),
            (None, b"", ""),
            // The byte order mark is more reliable than the header, which is often a server's default.
            (Some("text/plain; charset=latin1"), b"\xef\xbb\xbf\xc3\xb1", "ñ"),
            (Some("text/plain; charset=utf-16"), b"\xff\xfea\x00", "a"),
            (Some("text/plain; charset=utf-16be"), b"\x00a", "a"),
            (Some("text/plain; charset=iso-2022-kr"), b"a", "a"),
        ] {
            assert_eq!(decode(content_type, bytes), text, "{content_type:?}");
        }
    }
}
