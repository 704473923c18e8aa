//! Regular expressions, which take time linear in the text.

use crate::values::failure::Failure;
use regex::{Regex, RegexBuilder};

/// The most bytes of a compiled regular expression: more than any has that a person writes.
const LARGEST: usize = 256 * 1024;

/// A compiled regular expression.
#[derive(Debug, Clone)]
pub(crate) struct Pattern(Regex);

impl PartialEq for Pattern {
    fn eq(&self, other: &Self) -> bool {
        self.0.as_str() == other.0.as_str()
    }
}

impl Pattern {
    /// Compiles a regular expression, or says what is wrong with it.
    pub(crate) fn new(source: &str) -> Result<Self, String> {
        let compiled = RegexBuilder::new(source)
            .size_limit(LARGEST)
            .dfa_size_limit(LARGEST)
            .nest_limit(20)
            .build()
            .map_err(|error| match error {
                regex::Error::CompiledTooBig(_) => "has a regular expression that is too large".to_owned(),
                _ => "has a regular expression that cannot be understood".to_owned(),
            })?;
        Ok(Self(compiled))
    }

    /// Compiles what was computed.
    pub(crate) fn computed(source: &str) -> Result<Self, Failure> {
        Self::new(source).map_err(Failure::InvalidArgument)
    }

    pub(crate) fn regex(&self) -> &Regex {
        &self.0
    }
}
