//! Recorded answers to `ctx.fetch`, for tests of functions.

use crate::network::Fixture;
use async_trait::async_trait;
use sandbox::{FetchRequest, FetchResponse, Host, HostError};

/// A host without a service: fixtures answer `ctx.fetch`, and there is nothing else.
#[derive(Debug, Clone, Default)]
pub struct FixtureHost(pub Vec<Fixture>);

#[async_trait]
impl Host for FixtureHost {
    async fn fetch(&self, request: FetchRequest) -> Result<FetchResponse, HostError> {
        answer(&self.0, &request.method, &request.url).ok_or_else(no_fixture)
    }
}

/// The error of a call that no fixture answers.
pub(super) fn no_fixture() -> HostError {
    HostError::new("NoFixture", "no fixture of this test answers the call").code("no_fixture")
}

/// The first fixture that answers a request.
pub(super) fn answer(fixtures: &[Fixture], method: &str, url: &str) -> Option<FetchResponse> {
    let answers = |fixture: &&Fixture| {
        let of_method = fixture.method.as_ref().is_none_or(|wanted| wanted.eq_ignore_ascii_case(method));
        of_method && is_like(url, &fixture.url)
    };
    let fixture = fixtures.iter().find(answers)?;
    let headers = fixture.headers.iter();
    Some(FetchResponse {
        status: fixture.status,
        url: url.to_owned(),
        headers: headers.map(|(name, value)| (name.to_ascii_lowercase(), value.clone())).collect(),
        body: fixture.body.clone().into_bytes(),
    })
}

/// The answer to a call that is not made, because it might change something outside.
pub(super) fn simulated(url: &str) -> FetchResponse {
    FetchResponse {
        status: 200,
        url: url.to_owned(),
        headers: vec![
            ("content-type".to_owned(), "application/json".to_owned()),
            ("x-svc-simulated".to_owned(), "true".to_owned()),
        ],
        body: br#"{"simulated":true}"#.to_vec(),
    }
}

/// Returns whether a text is like a pattern, in which each `*` stands for any characters.
fn is_like(text: &str, pattern: &str) -> bool {
    let mut pieces = pattern.split('*');
    let Some(mut rest) = pieces.next().and_then(|first| text.strip_prefix(first)) else { return false };
    let mut pieces = pieces.peekable();
    if pieces.peek().is_none() {
        return rest.is_empty();
    }
    while let Some(piece) = pieces.next() {
        if pieces.peek().is_none() {
            return rest.ends_with(piece);
        }
        match rest.split_once(piece) {
            Some((_, after)) => rest = after,
            None => return false,
        }
    }
    true
}

#[cfg(test)]
mod tests {
    use super::is_like;

    #[test]
    fn stars_stand_for_any_characters() {
        for (text, pattern) in [
            ("abc", "abc"),
            ("abc", "*"),
            ("", "*"),
            ("abc", "a*"),
            ("abc", "*c"),
            ("abc", "a*c"),
            ("ac", "a*c"),
            ("abcabc", "a*b*c"),
            ("a/b?c=d", "a/*?c=*"),
            ("abab", "*ab"),
        ] {
            assert!(is_like(text, pattern), "{text} {pattern}");
        }
        for (text, pattern) in [
            ("abc", "ab"),
            ("abc", "bc"),
            ("abc", ""),
            ("a", "a*a"),
            ("abc", "b*"),
            ("ab", "*ab*b"),
            ("abd", "a*c"),
        ] {
            assert!(!is_like(text, pattern), "{text} {pattern}");
        }
    }
}
