//! The next request of a redirect (RFC 9110 §15.4, with the method changes that all clients make).

use bytes::Bytes;
use http::{HeaderMap, Method, StatusCode, header};
use url::Url;

use crate::error::Error;
use crate::message::{Request, Response, header_map, is_harmless};

/// One request of a redirect chain, already checked.
pub(crate) struct Hop {
    pub(crate) method: Method,
    pub(crate) url: Url,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
}

/// Returns the target of a response, if it is a redirect. The target is not yet checked.
pub(crate) fn target(from: &Url, status: StatusCode, headers: &HeaderMap) -> Result<Option<Url>, Error> {
    if !matches!(status.as_u16(), 301 | 302 | 303 | 307 | 308) {
        return Ok(None);
    }
    let Some(location) = headers.get(header::LOCATION) else { return Ok(None) };
    let invalid = Error::Http { reason: "the redirect's Location is not a URL" };
    let location = std::str::from_utf8(location.as_bytes()).map_err(|_| invalid)?;
    from.join(location).map(Some).map_err(|_| invalid)
}

/// For callers that follow redirects themselves, because they have rules of their own for each hop.
impl Request {
    /// Returns the request that follows if `response`, the answer to this one, is a redirect. Like the connector's own, it loses
    /// all headers that may be credentials if it leaves the origin. Its URL is not yet checked.
    ///
    /// # Errors
    /// [`Error::Http`] if the redirect's target is not a URL, and [`Error::InvalidRequest`] for malformed headers.
    pub fn redirected(&self, response: &Response) -> Result<Option<Self>, Error> {
        let status = StatusCode::from_u16(response.status)
            .map_err(|_| Error::Http { reason: "the status is malformed" })?;
        let Some(to) = target(&response.final_url, status, &response.headers)? else { return Ok(None) };
        let mut hop = Hop {
            method: self.method.clone(),
            url: response.final_url.clone(),
            headers: header_map(&self.headers)?,
            body: self.body.clone(),
        };
        hop.follow(status, to);
        let headers = hop
            .headers
            .iter()
            .filter_map(|(name, value)| Some((name.as_str().to_owned(), value.to_str().ok()?.to_owned())));
        Ok(Some(Self {
            method: hop.method,
            headers: headers.collect(),
            url: hop.url.into(),
            body: hop.body,
            limits: self.limits.clone(),
        }))
    }
}

impl Hop {
    /// Changes this request into the next one, for a checked target.
    pub(crate) fn follow(&mut self, status: StatusCode, to: Url) {
        // All clients turn a POST into a GET on 301 and 302, although the RFC allows to keep it.
        let becomes_get = match status.as_u16() {
            301 | 302 => self.method == Method::POST,
            303 => self.method != Method::HEAD && self.method != Method::GET,
            _ => false,
        };
        if becomes_get {
            self.method = Method::GET;
            self.body = Bytes::new();
            self.retain(|name| !name.as_str().starts_with("content-"));
        }
        // Other headers may be credentials of the first origin.
        if self.url.origin() != to.origin() {
            self.retain(is_harmless);
        }
        self.url = to;
    }

    fn retain(&mut self, keep: impl Fn(&header::HeaderName) -> bool) {
        let dropped: Vec<_> = self.headers.keys().filter(|name| !keep(name)).cloned().collect();
        for name in dropped {
            self.headers.remove(name);
        }
    }
}
