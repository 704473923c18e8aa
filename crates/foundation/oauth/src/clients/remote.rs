//! What is fetched from the servers of clients: their metadata documents and their key sets. Anybody can name any URL, so
//! fetches are bounded in size, time and number, and their results are cached, failures too.

use egress::{Connector, HeaderMap, Limits, Request, UrlRules};
use model::Timestamp;
use std::collections::HashMap;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::Semaphore;

/// The time for a fetch.
const TIME: Duration = Duration::from_secs(3);
/// Fetches at once of one kind.
const FETCHES: usize = 16;
/// How long a result is cached: at least, and at most.
const CACHED_SECONDS: (i64, i64) = (300, 24 * 3600);
/// How long a failure is cached.
const FAILED_SECONDS: i64 = 60;
/// Cached results. Beyond, expired ones are dropped, and then any.
const MOST: usize = 2000;

/// Why there is nothing acceptable at a URL.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RemoteError {
    /// The URL is not acceptable.
    Url(&'static str),
    /// Nothing was received, for a reason that may pass.
    Fetch(String),
    /// The response is not acceptable.
    Content(String),
}

/// A response with JSON.
pub(super) struct Fetched {
    /// The body.
    pub(super) body: Vec<u8>,
    /// For how many seconds it may be cached.
    pub(super) seconds: i64,
}

/// Fetches JSON from the server of a client: 200 only, without redirects.
pub(super) async fn fetch(connector: &Connector, url: &str, largest: usize) -> Result<Fetched, RemoteError> {
    // What the operator lists may be http, such as a client on a developer's machine.
    let rules = UrlRules { https_only: true, operator_first: true, ..UrlRules::default() };
    let limits = Limits {
        connect: TIME,
        total: TIME,
        max_response_bytes: largest,
        max_redirects: 0,
        url: rules,
        ..Limits::default()
    };
    let request = Request::get(url).header("accept", "application/json").limits(limits);
    let response = connector.send(request).await.map_err(|error| RemoteError::Fetch(error.to_string()))?;
    if response.status != 200 {
        let text = format!("the server answered with the status {} instead of 200", response.status);
        let is_passing = response.status == 429 || response.status >= 500;
        return Err(if is_passing { RemoteError::Fetch(text) } else { RemoteError::Content(text) });
    }
    if !is_json(&response.headers) {
        return Err(RemoteError::Content("the server's Content-Type is not application/json".to_owned()));
    }
    Ok(Fetched { body: response.body.to_vec(), seconds: cached_seconds(&response.headers) })
}

/// The state of one URL. The lock is held during a fetch, so that there is one at a time.
struct Slot<T> {
    state: tokio::sync::Mutex<Option<State<T>>>,
    /// When the result expires, readable without the lock. 0 before the first fetch.
    until_ms: AtomicI64,
}

struct State<T> {
    result: Result<Arc<T>, RemoteError>,
    fetched_at: Timestamp,
    until: Timestamp,
}

/// Results of one kind, by URL.
pub(super) struct Remote<T> {
    slots: Mutex<HashMap<String, Arc<Slot<T>>>>,
    fetches: Semaphore,
}

impl<T> Remote<T> {
    pub(super) fn new() -> Self {
        Self { slots: Mutex::default(), fetches: Semaphore::new(FETCHES) }
    }

    /// Returns the cached result of a URL, or fetches it. `fetch` returns for how many seconds it may be cached.
    pub(super) async fn get(
        &self,
        url: &str,
        now: Timestamp,
        fetch: impl Future<Output = Result<(T, i64), RemoteError>>,
    ) -> Result<Arc<T>, RemoteError> {
        self.get_newer(url, now, now.plus_seconds(-CACHED_SECONDS.1), fetch).await
    }

    /// As [`get`](Self::get), but ignores a result that was fetched before `after`.
    pub(super) async fn get_newer(
        &self,
        url: &str,
        now: Timestamp,
        after: Timestamp,
        fetch: impl Future<Output = Result<(T, i64), RemoteError>>,
    ) -> Result<Arc<T>, RemoteError> {
        let slot = self.slot(url, now);
        let mut state = slot.state.lock().await;
        if let Some(state) = &*state
            && state.until > now
            && state.fetched_at >= after
        {
            return state.result.clone();
        }
        // Never closed.
        let _permit = self.fetches.acquire().await;
        let (result, seconds) = match fetch.await {
            Ok((value, seconds)) => (Ok(Arc::new(value)), seconds),
            Err(error) => (Err(error), FAILED_SECONDS),
        };
        let until = now.plus_seconds(seconds);
        slot.until_ms.store(until.millis(), Ordering::Relaxed);
        *state = Some(State { result: result.clone(), fetched_at: now, until });
        result
    }

    fn slot(&self, url: &str, now: Timestamp) -> Arc<Slot<T>> {
        let mut slots = self.slots.lock().unwrap_or_else(PoisonError::into_inner);
        if slots.len() >= MOST && !slots.contains_key(url) {
            slots.retain(|_, slot| slot.until_ms.load(Ordering::Relaxed) > now.millis());
            let surplus = (slots.len() + 1).saturating_sub(MOST);
            let surplus: Vec<String> = slots.keys().take(surplus).cloned().collect();
            for url in surplus {
                slots.remove(&url);
            }
        }
        let slot = || Arc::new(Slot { state: tokio::sync::Mutex::new(None), until_ms: AtomicI64::new(0) });
        slots.entry(url.to_owned()).or_insert_with(slot).clone()
    }
}

fn is_json(headers: &HeaderMap) -> bool {
    let kind = headers.get("content-type").and_then(|value| value.to_str().ok()).unwrap_or_default();
    let kind = kind.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    kind == "application/json" || (kind.starts_with("application/") && kind.ends_with("+json"))
}

/// Returns how long a response may be cached, by its `Cache-Control` and `Age`.
fn cached_seconds(headers: &HeaderMap) -> i64 {
    let (least, most) = CACHED_SECONDS;
    let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let directives: Vec<String> =
        text("cache-control").split(',').map(|word| word.trim().to_ascii_lowercase()).collect();
    if directives.iter().any(|word| word == "no-store" || word == "no-cache") {
        return least;
    }
    let seconds = |word: &String| word.strip_prefix("max-age=")?.trim_matches('"').parse::<i64>().ok();
    let age = text("age").trim().parse::<i64>().unwrap_or(0).max(0);
    let max_age = directives.iter().find_map(seconds);
    max_age.map_or(least, |seconds| seconds.saturating_sub(age).clamp(least, most))
}

#[cfg(test)]
mod tests {
    use super::*;
    use egress::{HeaderName, HeaderValue};
    use std::sync::atomic::AtomicUsize;

    #[test]
    fn a_response_is_cached_as_long_as_it_says_within_bounds() {
        for (cache_control, age, seconds) in [
            (None, None, 300),
            (Some("max-age=3600"), None, 3600),
            (Some("public, Max-Age=\"3600\""), Some("600"), 3000),
            (Some("max-age=10"), None, 300),
            (Some("max-age=99999999999999"), None, 86_400),
            (Some("max-age=3600, no-store"), None, 300),
            (Some("no-cache"), None, 300),
            (Some("max-age=x"), Some("-5"), 300),
            (Some("max-age=3600"), Some("9223372036854775807"), 300),
        ] {
            let mut headers = HeaderMap::new();
            for (name, value) in [("cache-control", cache_control), ("age", age)] {
                if let Some(value) = value {
                    headers.insert(HeaderName::from_static(name), HeaderValue::from_static(value));
                }
            }
            assert_eq!(cached_seconds(&headers), seconds, "{cache_control:?} {age:?}");
        }
    }

    fn at(seconds: i64) -> Timestamp {
        Timestamp::parse("2026-01-15T12:00:00Z").unwrap().plus_seconds(seconds)
    }

    #[tokio::test]
    async fn there_is_one_fetch_at_a_time_and_failures_are_cached_for_a_minute() {
        let remote = Remote::<usize>::new();
        let fetches = AtomicUsize::new(0);
        let fetch = |result: Result<i64, RemoteError>| {
            let fetches = &fetches;
            async move {
                tokio::task::yield_now().await;
                let number = fetches.fetch_add(1, Ordering::Relaxed) + 1;
                result.map(|seconds| (number, seconds))
            }
        };
        let (one, two) =
            tokio::join!(remote.get("a", at(0), fetch(Ok(300))), remote.get("a", at(0), fetch(Ok(300))));
        assert_eq!((*one.unwrap(), *two.unwrap()), (1, 1));
        assert_eq!(*remote.get("a", at(299), fetch(Ok(300))).await.unwrap(), 1);
        assert_eq!(*remote.get("a", at(300), fetch(Ok(300))).await.unwrap(), 2);
        assert_eq!(*remote.get_newer("a", at(310), at(305), fetch(Ok(300))).await.unwrap(), 3);
        let error = RemoteError::Url("no");
        assert_eq!(remote.get("b", at(0), fetch(Err(error.clone()))).await, Err(error.clone()));
        assert_eq!(remote.get("b", at(59), fetch(Ok(300))).await, Err(error));
        assert_eq!(*remote.get("b", at(60), fetch(Ok(300))).await.unwrap(), 5);
    }

    #[tokio::test]
    async fn the_cache_does_not_grow_without_end() {
        let remote = Remote::<()>::new();
        for number in 0..MOST + 50 {
            remote.get(&number.to_string(), at(0), async { Ok(((), 300)) }).await.unwrap();
        }
        assert_eq!(remote.slots.lock().unwrap().len(), MOST);
    }
}
