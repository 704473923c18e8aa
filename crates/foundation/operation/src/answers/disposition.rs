//! Names in `Content-Disposition` headers of form parts (RFC 7578) and of responses (RFC 6266).

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use encoding_rs::{Encoding, WINDOWS_1252};
use percent_encoding::percent_decode;
use std::borrow::Cow;

/// The names in a `Content-Disposition` header.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Disposition {
    /// The parameter `name`: the form field.
    pub name: Option<String>,
    /// The parameter `filename*`, or else `filename`: the sender's name of the file, perhaps with a path.
    pub file_name: Option<String>,
}

/// The way in which a sender escapes characters that cannot stand between quotes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Escapes {
    /// A form part: browsers write `%22`, `%0D` and `%0A` and leave every other `%` alone (HTML, 4.10.21.8).
    Form,
    /// A response: servers that do not support `filename*` percent-encode the whole name, and browsers decode it.
    Answer,
}

impl Disposition {
    /// Parses the header of a form part.
    pub fn of_part(header: &[u8]) -> Self {
        Self::parse(header, Escapes::Form)
    }

    /// Parses the header of a response.
    pub fn of_answer(header: &[u8]) -> Self {
        Self::parse(header, Escapes::Answer)
    }

    fn parse(header: &[u8], escapes: Escapes) -> Self {
        let parameters = parameters(header);
        let named = |wanted: &str| {
            let extended = format!("{wanted}*");
            let of =
                |wanted: &str| parameters.iter().find(|(name, _)| name == wanted).map(|(_, value)| value);
            // RFC 6266, 4.3: the extended form wins, unless it is invalid.
            let found = of(&extended).and_then(|value| decode_extended(value));
            found.or_else(|| of(wanted).map(|value| decode(value, escapes)))
        };
        Self { name: named("name"), file_name: named("filename").filter(|name| !name.is_empty()) }
    }
}

/// Returns the parameters of a header, with names in lower case and values without quotes. Skips words without `=`.
fn parameters(header: &[u8]) -> Vec<(String, Vec<u8>)> {
    let mut found = Vec::new();
    // The first word is the disposition type, which some servers leave out.
    let begins_with_type =
        header.split(|byte| *byte == b';').next().is_some_and(|word| !word.contains(&b'='));
    let mut rest = match header.iter().position(|byte| *byte == b';') {
        Some(end) if begins_with_type => header.get(end + 1..).unwrap_or_default(),
        _ if begins_with_type => &[],
        _ => header,
    };
    while !rest.is_empty() {
        let end = rest.iter().position(|byte| matches!(byte, b'=' | b';')).unwrap_or(rest.len());
        let (name, behind) = rest.split_at(end);
        rest = behind.get(1..).unwrap_or_default();
        if behind.first() != Some(&b'=') {
            continue;
        }
        rest = rest.trim_ascii_start();
        let (value, behind) = match rest.strip_prefix(b"\"") {
            Some(quoted) => unquote(quoted),
            None => {
                let end = rest.iter().position(|byte| *byte == b';').unwrap_or(rest.len());
                let (value, behind) = rest.split_at(end);
                (value.trim_ascii().to_vec(), behind)
            }
        };
        let next = behind.iter().position(|byte| *byte == b';').map_or(behind.len(), |place| place + 1);
        rest = behind.get(next..).unwrap_or_default();
        found.push((String::from_utf8_lossy(name.trim_ascii()).to_ascii_lowercase(), value));
    }
    found
}

/// Splits the text after an opening quote into the quoted value and the rest. A backslash escapes only a quote or a
/// backslash: before any other character it belongs to a Windows path.
fn unquote(text: &[u8]) -> (Vec<u8>, &[u8]) {
    let mut value = Vec::new();
    let mut at = 0;
    while let Some(byte) = text.get(at) {
        match (byte, text.get(at + 1)) {
            (b'"', _) => return (value, text.get(at + 1..).unwrap_or_default()),
            (b'\\', Some(quoted @ (b'"' | b'\\'))) => {
                value.push(*quoted);
                at += 1;
            }
            (byte, _) => value.push(*byte),
        }
        at += 1;
    }
    (value, &[])
}

/// Decodes a value such as `UTF-8'en'pre%C3%A7os.csv` (RFC 8187). Returns `None` for a value of another form.
fn decode_extended(value: &[u8]) -> Option<String> {
    let mut parts = value.splitn(3, |byte| *byte == b'\'');
    let (charset, _language, encoded) = (parts.next()?, parts.next()?, parts.next()?);
    let encoding = Encoding::for_label_no_replacement(charset)?;
    let bytes: Vec<u8> = percent_decode(encoded).collect();
    let (text, has_errors) = encoding.decode_without_bom_handling(&bytes);
    (!has_errors).then(|| text.into_owned())
}

/// Decodes a plain value: UTF-8 or Windows-1252, with RFC 2047 words or the sender's escapes.
fn decode(value: &[u8], escapes: Escapes) -> String {
    let text = readable(value);
    if let Some(decoded) = decode_words(&text) {
        return decoded;
    }
    match escapes {
        Escapes::Form => text.replace("%22", "\"").replace("%0D", "\r").replace("%0A", "\n"),
        Escapes::Answer => {
            let decoded = percent_decode(text.as_bytes()).decode_utf8();
            decoded.map_or_else(|_| text.to_string(), Cow::into_owned)
        }
    }
}

fn readable(bytes: &[u8]) -> Cow<'_, str> {
    std::str::from_utf8(bytes)
        .map_or_else(|_| WINDOWS_1252.decode_without_bom_handling(bytes).0, Cow::Borrowed)
}

/// Decodes words such as `=?utf-8?B?cHJlw6dvcy5jc3Y=?=` (RFC 2047), which mail programs write. Returns `None` if a
/// word has another form.
fn decode_words(text: &str) -> Option<String> {
    let mut decoded = String::new();
    for word in text.split_whitespace() {
        let mut parts = word.strip_prefix("=?")?.strip_suffix("?=")?.splitn(3, '?');
        let (charset, form, encoded) = (parts.next()?, parts.next()?, parts.next()?);
        let bytes = match form {
            "B" | "b" => STANDARD.decode(encoded).ok()?,
            "Q" | "q" => {
                percent_decode(encoded.replace('%', "%25").replace('_', " ").replace('=', "%").as_bytes())
                    .collect()
            }
            _ => return None,
        };
        let encoding = Encoding::for_label_no_replacement(charset.as_bytes())?;
        decoded.push_str(&encoding.decode_without_bom_handling(&bytes).0);
    }
    (!decoded.is_empty()).then_some(decoded)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn part(header: &[u8]) -> String {
        Disposition::of_part(header).file_name.unwrap_or_default()
    }

    fn answer(header: &str) -> String {
        Disposition::of_answer(header.as_bytes()).file_name.unwrap_or_default()
    }

    #[test]
    fn parts_of_forms_name_their_files() {
        for (header, name) in [
            (&b"form-data; name=\"file\"; filename=\"a b.csv\""[..], "a b.csv"),
            (b"form-data; name=file; filename=a.csv ; x=y", "a.csv"),
            (b"form-data; name=\"file\"; filename*=utf-8''precios%20ni%C3%B1o.csv", "precios niño.csv"),
            (b"form-data; filename=\"x.csv\"; filename*=UTF-8'es'ni%C3%B1o.csv", "niño.csv"),
            (b"form-data; filename*=UTF-8''ni%C3%B1o.csv; filename=\"x.csv\"", "niño.csv"),
            (b"form-data; FileName*=iso-8859-1'en'ni%F1o.csv", "niño.csv"),
            (b"form-data; filename*=\"utf-8''ni%C3%B1o.csv\"", "niño.csv"),
            // The plain form is used if the extended form is invalid.
            (b"form-data; filename=\"x.csv\"; filename*=nonsense''a", "x.csv"),
            (b"form-data; filename=\"x.csv\"; filename*=utf-8''%ff", "x.csv"),
            (b"form-data; filename=\"x.csv\"; filename*=a.csv", "x.csv"),
            ("form-data; filename=\"niño.csv\"".as_bytes(), "niño.csv"),
            (b"form-data; filename=\"ni\xf1o.csv\"", "niño.csv"),
            (b"form-data; filename=\"a \\\"b\\\" \\\\ c.csv\"; x", "a \"b\" \\ c.csv"),
            (b"form-data; filename=\"C:\\x\\y.csv\"", "C:\\x\\y.csv"),
            (b"form-data; filename=\"a%22b%22.csv\"", "a\"b\".csv"),
            (b"form-data; filename=\"100%25 %C3.csv\"", "100%25 %C3.csv"),
            (b"form-data; filename=\"a;b.csv\"; name=\"x;filename=z\"", "a;b.csv"),
            (b"form-data; filename=\"=?utf-8?B?bmnDsW8uY3N2?=\"", "niño.csv"),
            (b"form-data; filename=\"=?iso-8859-1?Q?ni=F1o_1.csv?=\"", "niño 1.csv"),
            (b"form-data; filename=\"open.csv", "open.csv"),
            (b"form-data; filename=\"\"", ""),
            (b"form-data; filename", ""),
            (b"form-data", ""),
            (b"", ""),
        ] {
            assert_eq!(part(header), name, "{}", String::from_utf8_lossy(header));
        }
        let both =
            Disposition::of_part(b"form-data; filename=\"name=x\"; name*=utf-8''ni%C3%B1o; name=\"nino\"");
        assert_eq!((both.name.as_deref(), both.file_name.as_deref()), (Some("niño"), Some("name=x")));
    }

    #[test]
    fn answers_name_their_files() {
        for (header, name) in [
            ("attachment; filename=\"prices.csv\"", "prices.csv"),
            ("inline;filename=prices.csv", "prices.csv"),
            ("filename=prices.csv", "prices.csv"),
            (
                "attachment; filename=\"prices.csv\"; filename*=UTF-8''precios%20ni%C3%B1o.csv",
                "precios niño.csv",
            ),
            ("attachment; filename=\"precios%20ni%C3%B1o.csv\"", "precios niño.csv"),
            ("attachment; filename=\"100%.csv\"", "100%.csv"),
            ("attachment; filename=\"%ff.csv\"", "%ff.csv"),
            ("attachment", ""),
        ] {
            assert_eq!(answer(header), name, "{header}");
        }
    }

    proptest::proptest! {
        #[test]
        fn nothing_panics_and_names_come_back(bytes in proptest::collection::vec(proptest::num::u8::ANY, 0..60), name in "\\PC{1,20}") {
            let _ = (Disposition::of_part(&bytes), Disposition::of_answer(&bytes));
            let encoded = percent_encoding::utf8_percent_encode(&name, percent_encoding::NON_ALPHANUMERIC);
            let header = format!("attachment; filename*=UTF-8''{encoded}");
            proptest::prop_assert_eq!(answer(&header), name);
        }
    }
}
