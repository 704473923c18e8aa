//! Validation of `http` tools: URL, fixed arguments and headers.

use crate::placeholders::{check_header, is_placeholder};
use egress::{Connector, UrlRules};
use expressions::placeholder::{UrlPiece, url_pieces};
use fields::json_schema::Schema;
use model::{Error, Result};
use serde_json::{Map, Value};
use std::collections::{BTreeMap, BTreeSet};

/// Checks the URL as far as possible without arguments. The connector checks it again at every call.
pub(crate) fn check_url(url: &str, connector: &Connector) -> Result<()> {
    let authority_end = url.find("://").map_or(0, |place| place + 3);
    let (head, rest) = url.split_at_checked(authority_end).unwrap_or(("", url));
    if url.contains('#') {
        return Err(Error::invalid("http.url", "must not have a fragment"));
    }
    let host = rest.split(['/', '?']).next().unwrap_or_default();
    if host.contains(['{', '}']) || head.contains(['{', '}']) {
        return Err(Error::invalid("http.url", "must not have placeholders before its path"));
    }
    let sample = url.replace(['{', '}'], "");
    connector
        .check_url(&sample, &UrlRules::default())
        .map(drop)
        .map_err(|error| Error::invalid("http.url", format_args!("cannot be called: {error}")))
}

/// The most bytes of fixed arguments, as JSON.
const MOST_FIXED: usize = 16 * 1024;

/// Checks that fixed arguments are not too large, and match the schemas of `parameters`.
pub(crate) fn check_fixed(fixed: &Map<String, Value>, parameters: &Value) -> Result<()> {
    if serde_json::to_string(fixed).map_err(Error::internal)?.len() > MOST_FIXED {
        let rule = format!("must not be larger than {MOST_FIXED} bytes");
        return Err(Error::invalid("fixed_arguments", rule));
    }
    for (name, value) in fixed.iter().filter(|(_, value)| !is_placeholder(value)) {
        let Some(property) = parameters.get("properties").and_then(|all| all.get(name)) else { continue };
        if let Some(problem) = Schema::new(property.clone()).mismatch(value) {
            let rule = format!("does not match its schema in `parameters`: {problem}");
            return Err(Error::invalid(format!("fixed_arguments.{name}"), rule));
        }
    }
    Ok(())
}

/// Checks that each `{placeholder}` of the URL is a parameter or a fixed argument.
pub(crate) fn check_places(url: &str, fixed: &Map<String, Value>, parameters: &Value) -> Result<()> {
    let declared = |name: &str| {
        let property = parameters.get("properties").and_then(|all| all.get(name));
        property.is_some() || fixed.contains_key(name)
    };
    for piece in url_pieces(url) {
        match piece {
            UrlPiece::Place(name) if !declared(name) => {
                let name = name.escape_debug();
                let rule = format!(
                    "has the placeholder `{{{name}}}`, which is neither in `parameters.properties` nor in `fixed_arguments`"
                );
                return Err(Error::invalid("http.url", rule));
            }
            UrlPiece::Stray("{") => {
                let rule = "must have a `}` for each `{`, and must not nest them";
                return Err(Error::invalid("http.url", rule));
            }
            UrlPiece::Stray(_) => return Err(Error::invalid("http.url", "must have a `{` for each `}`")),
            UrlPiece::Place(_) | UrlPiece::Text(_) => {}
        }
    }
    Ok(())
}

/// Checks the names and values of headers.
pub(crate) fn check_headers(headers: &BTreeMap<String, String>) -> Result<()> {
    if headers.len() > 10 {
        return Err(Error::invalid("http.headers", "must have at most 10 headers"));
    }
    let mut seen = BTreeSet::new();
    for (name, value) in headers {
        let wrong = |rule: &str| Err(Error::invalid(format!("http.headers.{name}"), rule));
        let lower = name.to_ascii_lowercase();
        if !egress::HeaderName::from_bytes(name.as_bytes()).is_ok_and(|name| !egress::frames_message(&name)) {
            return wrong("is not a header that can be set");
        }
        if ["x-svc-", "webhook-", "proxy-"].iter().any(|prefix| lower.starts_with(prefix)) {
            return wrong("is set by the service or belongs to the connection");
        }
        if !seen.insert(lower) {
            return wrong("stands there twice: letter case makes no other header");
        }
        check_header(name, value)?;
        if value.len() > 4096 || !value.bytes().all(|byte| (0x20..0x7f).contains(&byte)) {
            return wrong("must be visible ASCII of at most 4096 bytes");
        }
    }
    Ok(())
}
