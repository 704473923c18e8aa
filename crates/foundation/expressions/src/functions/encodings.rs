//! Functions that write values for programs, and read them.

use super::function::{Arguments, Given, functions};
use super::wanted::Wanted as W;
use crate::values::failure::Failure;
use crate::values::types::Type;
use crate::values::value::Value;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use ring::digest;

use Given::Always;

/// What RFC 3986 calls unreserved stays.
const RESERVED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

functions! {
    "json"(W::Anything) gives Always(Type::Text),
        "The value as JSON.", "json($order.items[1])" => r#""{\"sku\":\"B2\",\"price\":3}""#,
        Plain json;
    "parse_json"(W::Text) gives Always(Type::Any),
        "The value that a JSON text shows.", r#"parse_json("[1, 2]")[1]"# => "2",
        Plain parse_json;
    "url_encode"(W::Text) gives Always(Type::Text),
        "The text for a part of a URL.", r#"url_encode("a b/ü")"# => r#""a%20b%2F%C3%BC""#,
        Plain |a| a.of_text(|text| utf8_percent_encode(text, RESERVED).to_string());
    "base64"(W::Text) gives Always(Type::Text),
        "The UTF-8 bytes of the text in Base64.", r#"base64("Red Shoe")"# => r#""UmVkIFNob2U=""#,
        Plain |a| a.of_text(|text| STANDARD.encode(text));
    "hash"(W::Text, W::Text) least 1 gives Always(Type::Text),
        "The hexadecimal digest of the text: SHA-256, or `sha384` or `sha512`.", r#"left(hash("a"), 8)"# => r#""ca978112""#,
        Plain hash;
}

fn json<'a>(arguments: &Arguments<'_, 'a>) -> Result<Value<'a>, Failure> {
    let mut text = String::new();
    match arguments.at(0) {
        Value::Object(members) => arguments.environment.append_json(&mut text, &**members)?,
        Value::List(elements) => arguments.environment.append_json(&mut text, &**elements)?,
        plain => arguments.environment.append_json(&mut text, &plain.clone().into_json()?)?,
    }
    arguments.environment.expect_short(text.len())?;
    Ok(Value::text(text))
}

fn parse_json<'a>(arguments: &Arguments<'_, 'a>) -> Result<Value<'a>, Failure> {
    if !arguments.has(0) {
        return Ok(Value::Null);
    }
    let text = arguments.text(0);
    arguments.environment.expect_short(text.len())?;
    // A number that would lose digits is a text, which has all of them.
    input::numbers::lossless(text.as_bytes())
        .map(Value::of_owned)
        .map_err(|_| Failure::InvalidArgument("has a text that is not JSON".to_owned()))
}

fn hash<'a>(arguments: &Arguments<'_, 'a>) -> Result<Value<'a>, Failure> {
    let algorithm = match &*arguments.text(1) {
        "" | "sha256" => &digest::SHA256,
        "sha384" => &digest::SHA384,
        "sha512" => &digest::SHA512,
        other => {
            return Err(Failure::InvalidArgument(format!(
                "has the algorithm {other:?}: there are sha256, sha384 and sha512"
            )));
        }
    };
    arguments.of_text(|text| {
        let digest = digest::digest(algorithm, text.as_bytes());
        digest.as_ref().iter().map(|byte| format!("{byte:02x}")).collect()
    })
}
