//! The place in a chain of causes, as calls over HTTP to the service's own address carry it: a tool or an endpoint that calls the
//! service back goes on with the chain, so that a loop through the network is found as well.
//!
//! The header is signed and expires. What cannot be verified is ignored, and the request then starts a chain.

use auth::Seal;
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use model::{Chain, Timestamp};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::sync::Arc;
use url::{Origin, Url};

/// For how long a header is valid, in seconds: longer than a request may take.
const VALID_SECONDS: i64 = 120;
/// More than any header that was made here, in bytes.
const LONGEST: usize = 2048;
/// The context of signatures: one that was made for something else is not valid here.
const PLACE: &str = "cause";

/// Makes the header for requests to the service's own address.
#[derive(Clone)]
pub struct CauseHeader {
    seal: Arc<Seal>,
    origin: Option<Origin>,
}

/// Without the key.
impl fmt::Debug for CauseHeader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CauseHeader").field("origin", &self.origin).finish_non_exhaustive()
    }
}

/// What the header says.
#[derive(Serialize, Deserialize)]
struct Content {
    chain: Chain,
    until: i64,
}

impl CauseHeader {
    /// The name of the header.
    pub const NAME: &'static str = "x-svc-cause";

    /// The header of a service that the world reaches under `base_url`.
    pub fn new(seal: Arc<Seal>, base_url: &str) -> Self {
        Self { seal, origin: Url::parse(base_url).ok().map(|url| url.origin()) }
    }

    /// Whether a URL is one of the service itself.
    pub fn is_own(&self, url: &str) -> bool {
        let origin = || Url::parse(url).ok().map(|url| url.origin());
        self.origin.as_ref().is_some_and(|own| origin().as_ref() == Some(own))
    }

    /// The header of a request to `url`, whose effects have this place in their chain. `None` for URLs of others.
    pub fn of(&self, url: &str, chain: &Chain, now: Timestamp) -> Option<(String, String)> {
        if !self.is_own(url) {
            return None;
        }
        let content = Content { chain: chain.clone(), until: now.plus_seconds(VALID_SECONDS).seconds() };
        let text = URL_SAFE_NO_PAD.encode(serde_json::to_string(&content).ok()?);
        let signature = URL_SAFE_NO_PAD.encode(self.seal.sign(PLACE, &text));
        Some((Self::NAME.to_owned(), format!("{text}.{signature}")))
    }

    /// Reads the header of a request. `None` for all that this service did not make, or made long ago.
    pub fn read(seal: &Seal, value: &str, now: Timestamp) -> Option<Chain> {
        let (text, signature) = value.split_once('.').filter(|_| value.len() <= LONGEST)?;
        let signature = URL_SAFE_NO_PAD.decode(signature).ok()?;
        if !seal.is_signed(PLACE, text, &signature) {
            return None;
        }
        let content: Content = serde_json::from_slice(&URL_SAFE_NO_PAD.decode(text).ok()?).ok()?;
        (now.seconds() <= content.until).then_some(content.chain)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::{AutomationId, EventId, SeededRandom};

    #[test]
    fn a_header_is_read_where_and_while_it_is_valid() {
        let now = Timestamp::from_millis(1_800_000_000_000);
        let (seal, other) = (Arc::new(Seal::new(&[1; 32]).unwrap()), Seal::new(&[2; 32]).unwrap());
        let mut chain = Chain::after(&EventId::new(now, &SeededRandom::new(1)), None);
        for id in 1..=20 {
            chain = chain.through(AutomationId(i64::MAX - id));
        }
        let header = CauseHeader::new(seal.clone(), "https://svc.example.com");
        for url in [
            "https://svc.example.com.evil.example/",
            "http://svc.example.com/",
            "https://svc.example.com:8443/",
            "no URL",
        ] {
            assert_eq!(header.of(url, &chain, now), None, "{url}");
        }
        let (name, value) = header.of("https://SVC.example.com:443/hooks/a?b", &chain, now).unwrap();
        assert_eq!(name, CauseHeader::NAME);
        let read = |seal, value: &str, seconds| CauseHeader::read(seal, value, now.plus_seconds(seconds));
        assert_eq!(read(&seal, &value, VALID_SECONDS), Some(chain));
        assert_eq!(read(&seal, &value, VALID_SECONDS + 1), None);
        assert_eq!(read(&other, &value, 0), None);
        for wrong in [&value[1..], &value[..value.len() - 1], "", ".", "a.b", &value.replace('.', "")] {
            assert_eq!(read(&seal, wrong, 0), None, "{wrong}");
        }
    }
}
