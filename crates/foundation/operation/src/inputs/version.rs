//! Optimistic concurrency: the version that a change is based on, and the error if the object has another version.

use crate::Describe;
use crate::inputs::input::{FromInput, Input};
use model::{Code, Error, Result, whole_number};
use serde_json::{Map, Value};
use utoipa::openapi::path::{ParameterBuilder, ParameterIn};
use utoipa::openapi::{ObjectBuilder, Type};

/// The name of the header, as errors have it.
const HEADER: &str = "If-Match";

/// The pattern of the header's value.
const TAG: &str = r#"^(\*|(W/)?(0|[1-9][0-9]{0,17}|"(0|[1-9][0-9]{0,17})"))$"#;

/// The header `If-Match`: the version that the caller expects, as `"7"`, `7` or `W/"7"`. `None` if the header is
/// missing, and for `*`, which matches every version.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct IfMatch(pub Option<i64>);

impl FromInput for IfMatch {
    fn from_input(input: &Input<'_>, _: &'static str) -> Result<Self> {
        input.if_match.map_or(Ok(None), version_of_tag).map(Self)
    }

    fn describe(describe: &mut Describe, _: &'static str) {
        let parameter = ParameterBuilder::new()
            .name(HEADER)
            .parameter_in(ParameterIn::Header)
            .description(Some(
                "The expected version, such as `\"7\"`. If the object has another version, the request is rejected with 409 `version_conflict`.",
            ))
            .schema(Some(ObjectBuilder::new().schema_type(Type::String).pattern(Some(TAG)).build()));
        describe.parameter(parameter.build());
    }
}

fn version_of_tag(tag: &str) -> Result<Option<i64>> {
    let tag = tag.trim();
    if tag == "*" {
        return Ok(None);
    }
    let bare = tag.strip_prefix("W/").unwrap_or(tag);
    let bare = bare.strip_prefix('"').and_then(|rest| rest.strip_suffix('"')).unwrap_or(bare);
    let version = whole_number(bare).filter(|version| *version >= 0);
    version.map(Some).ok_or_else(|| Error::invalid(HEADER, "must be a version such as \"7\", or *"))
}

/// The version that a request expects an object to have, and the place in the request that states it. Without one,
/// every version matches.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ExpectedVersion(Option<(i64, &'static str)>);

impl From<IfMatch> for ExpectedVersion {
    fn from(IfMatch(version): IfMatch) -> Self {
        Self(version.map(|version| (version, HEADER)))
    }
}

impl ExpectedVersion {
    /// Combines the header with the body's field `version`.
    ///
    /// # Errors
    /// `validation_error` if they differ.
    pub fn new(if_match: IfMatch, version: Option<i64>) -> Result<Self> {
        Self::from(if_match).and("version", version)
    }

    /// Takes the version from a field `version` alone, such as that of a row in a bulk request.
    pub fn of_body(version: Option<i64>) -> Self {
        Self(version.map(|version| (version, "version")))
    }

    /// Combines the version with the body's field `expected_version`, the deprecated name of `version`.
    ///
    /// # Errors
    /// `validation_error` if it differs from the version elsewhere in the request.
    pub fn or_deprecated(self, expected_version: Option<i64>) -> Result<Self> {
        self.and("expected_version", expected_version)
    }

    fn and(self, param: &'static str, version: Option<i64>) -> Result<Self> {
        match (self.0, version) {
            (_, None) => Ok(self),
            (None, Some(version)) => Ok(Self(Some((version, param)))),
            (Some((first, _)), Some(version)) if first == version => Ok(self),
            (Some((_, place)), Some(_)) => {
                Err(Error::invalid(param, format_args!("must be the same as in {place}")))
            }
        }
    }

    /// Refuses a change that is based on another version than `current`.
    pub fn check(self, current: i64) -> Result<()> {
        self.conflict(current).map_or(Ok(()), |(param, details)| Err(refusal(param, details)))
    }

    /// Does the same as [`Self::check`], and adds the object as callers see it as `details.current`.
    ///
    /// # Errors
    /// `version_conflict`, or those of `object`.
    pub fn check_showing(self, current: i64, object: impl FnOnce() -> Result<Value>) -> Result<()> {
        let Some((param, mut details)) = self.conflict(current) else { return Ok(()) };
        details.insert("current".to_owned(), object()?);
        Err(refusal(param, details))
    }

    /// Returns the place where the request expects another version, and the details of the error.
    fn conflict(self, current: i64) -> Option<(&'static str, Map<String, Value>)> {
        let (_, param) = self.0.filter(|(expected, _)| *expected != current)?;
        Some((param, Map::from_iter([("current_version".to_owned(), current.into())])))
    }
}

fn refusal(param: &str, details: Map<String, Value>) -> Error {
    Error::new(
        Code::VersionConflict,
        "The object was changed since that version. Get it and repeat the change.",
    )
    .param(param)
    .with("details", details)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn versions_are_read_from_tags() {
        for (tag, version) in
            [("\"7\"", Some(7)), ("7", Some(7)), ("W/\"7\"", Some(7)), (" 0 ", Some(0)), ("*", None)]
        {
            assert_eq!(version_of_tag(tag).unwrap(), version, "{tag}");
        }
        for tag in [
            "",
            "\"\"",
            "x",
            "-1",
            "+1",
            "7.0",
            "07",
            "\"7",
            "7,8",
            "\"7\", \"8\"",
            "W/",
            "99999999999999999999",
            "\u{fffd}",
        ] {
            assert_eq!(version_of_tag(tag).unwrap_err().param_name(), Some("If-Match"), "{tag}");
        }
    }

    #[test]
    fn a_conflict_names_the_place_and_the_version_that_there_is() {
        let expected = |header, version, deprecated| {
            ExpectedVersion::new(IfMatch(header), version).and_then(|it| it.or_deprecated(deprecated))
        };
        for (header, version, deprecated, param) in [
            (Some(7), None, None, "If-Match"),
            (None, Some(7), None, "version"),
            (None, None, Some(7), "expected_version"),
            (Some(7), Some(7), Some(7), "If-Match"),
        ] {
            let expected = expected(header, version, deprecated).unwrap();
            expected.check(7).unwrap();
            let refused = expected.check_showing(8, || Ok(json!({ "id": 1 }))).unwrap_err();
            assert_eq!((refused.code(), refused.param_name()), (Code::VersionConflict, Some(param)));
            assert_eq!(refused.body()["details"], json!({ "current_version": 8, "current": { "id": 1 } }));
        }
        for (header, version, deprecated, param) in [
            (Some(7), Some(8), None, "version"),
            (Some(7), None, Some(8), "expected_version"),
            (None, Some(7), Some(8), "expected_version"),
        ] {
            let refused = expected(header, version, deprecated).unwrap_err();
            assert_eq!((refused.code(), refused.param_name()), (Code::ValidationError, Some(param)));
        }
        ExpectedVersion::default().check(7).unwrap();
    }
}
