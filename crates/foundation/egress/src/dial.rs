//! Opens TCP connections: resolves the name once, checks every address, and connects.
//!
//! This is the only place in the product that opens outbound connections for HTTP.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use futures::StreamExt as _;
use futures::future::BoxFuture;
use futures::stream::FuturesUnordered;
use http::Uri;
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;
use tokio::sync::Semaphore;
use tokio::time::sleep;
use tower_service::Service;

use crate::error::{Error, NO_CONNECTION};
use crate::policy::Policy;
use crate::url_rules::ADDRESS;

/// How long an attempt runs before the next address is tried in parallel (RFC 8305 recommends 250 ms).
const HEAD_START: Duration = Duration::from_millis(250);

/// The maximum number of addresses tried per connection.
const MAX_ATTEMPTS: usize = 6;

/// The maximum number of concurrent system lookups. Each occupies a thread of tokio's blocking pool, which other code
/// needs too.
const MAX_LOOKUPS: usize = 64;

/// Resolves names to addresses. Called once per new connection, and never for literal addresses.
pub trait Resolver: Send + Sync + 'static {
    /// Returns all addresses of a name, in order of preference.
    ///
    /// # Errors
    /// Any failure. The connector reports it as [`Error::Resolve`], without its text.
    fn resolve<'a>(&'a self, host: &'a str) -> BoxFuture<'a, io::Result<Vec<IpAddr>>>;
}

/// The operating system's resolver, with its hosts file and search domains.
#[derive(Debug)]
pub struct SystemResolver {
    lookups: Arc<Semaphore>,
}

impl Default for SystemResolver {
    fn default() -> Self {
        Self { lookups: Arc::new(Semaphore::new(MAX_LOOKUPS)) }
    }
}

impl Resolver for SystemResolver {
    fn resolve<'a>(&'a self, host: &'a str) -> BoxFuture<'a, io::Result<Vec<IpAddr>>> {
        Box::pin(async move {
            let permit = Arc::clone(&self.lookups).acquire_owned().await.map_err(io::Error::other)?;
            let host = host.to_owned();
            // Run the lookup in its own task. Its thread continues after the caller gives up, and the permit must be
            // held as long.
            let lookup = tokio::spawn(async move {
                let _permit = permit;
                let answer = tokio::net::lookup_host((host.as_str(), 0)).await?;
                Ok(answer.map(|address| address.ip()).collect())
            });
            lookup.await.map_err(io::Error::other)?
        })
    }
}

/// Opens the client's connections. The URL rules have been checked before; the addresses are checked here, including
/// literal ones.
#[derive(Clone)]
pub(crate) struct Dial {
    pub(crate) policy: Arc<Policy>,
    pub(crate) resolver: Arc<dyn Resolver>,
}

impl Service<Uri> for Dial {
    type Response = TokioIo<TcpStream>;
    type Error = Error;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, Error>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Error>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, target: Uri) -> Self::Future {
        let dial = self.clone();
        Box::pin(async move {
            let addresses = dial.addresses(&target).await?;
            Ok(TokioIo::new(connect(addresses).await?))
        })
    }
}

impl Dial {
    async fn addresses(&self, target: &Uri) -> Result<Vec<SocketAddr>, Error> {
        let host = target.host().ok_or(Error::InvalidUrl { reason: "the host is empty" })?;
        let port = target.port_u16().unwrap_or(if target.scheme_str() == Some("https") { 443 } else { 80 });
        let literal = host.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>();
        let (name, answer) = match literal {
            Ok(address) => (None, vec![address]),
            Err(_) => (Some(host), self.resolver.resolve(host).await.map_err(|_| Error::Resolve)?),
        };
        if answer.is_empty() {
            return Err(Error::Resolve);
        }
        // One forbidden address refuses the whole name: a mix of public and private ones is typical of DNS rebinding.
        if let Some(refused) = answer.iter().find(|address| !self.policy.permits(name, **address, port)) {
            tracing::info!(host, port, address = %refused, "outbound connection refused");
            return Err(Error::Forbidden { reason: ADDRESS });
        }
        // From here on only checked addresses are used. The name is not resolved again.
        Ok(order(answer).into_iter().map(|address| SocketAddr::new(address, port)).collect())
    }
}

/// Alternates address families, starting with the family of the first address. A family that is down then costs only
/// one head start.
fn order(answer: Vec<IpAddr>) -> Vec<IpAddr> {
    let v6_leads = answer.first().is_some_and(IpAddr::is_ipv6);
    let (leading, other): (Vec<_>, Vec<_>) = answer.into_iter().partition(|a| a.is_ipv6() == v6_leads);
    let mut ordered = Vec::with_capacity(MAX_ATTEMPTS);
    let (mut leading, mut other) = (leading.into_iter(), other.into_iter());
    loop {
        let pair = [leading.next(), other.next()];
        if pair == [None, None] || ordered.len() >= MAX_ATTEMPTS {
            ordered.truncate(MAX_ATTEMPTS);
            return ordered;
        }
        for address in pair.into_iter().flatten() {
            if !ordered.contains(&address) {
                ordered.push(address);
            }
        }
    }
}

/// Connects to the first address that responds (RFC 8305, "happy eyeballs"). A new attempt starts when the last one
/// fails or after a head start.
async fn connect(addresses: Vec<SocketAddr>) -> Result<TcpStream, Error> {
    let mut waiting = addresses.into_iter();
    let mut attempts = FuturesUnordered::new();
    let mut failure = Error::Connect { reason: "the connection failed" };
    loop {
        if let Some(address) = waiting.next() {
            attempts.push(TcpStream::connect(address));
        } else if attempts.is_empty() {
            return Err(failure);
        }
        tokio::select! {
            Some(attempt) = attempts.next() => match attempt {
                Ok(stream) => {
                    // Requests are written as a whole, so Nagle's algorithm would only delay them.
                    if let Err(error) = stream.set_nodelay(true) {
                        tracing::debug!(%error, "cannot set TCP_NODELAY");
                    }
                    return Ok(stream);
                }
                Err(error) => {
                    tracing::debug!(%error, "outbound connection failed");
                    failure = Error::from_connect(&error);
                }
            },
            () = sleep(HEAD_START), if waiting.len() > 0 => {}
        }
    }
}

/// A connector that limits the time of a connection with its handshakes. If another connection becomes free first,
/// the client continues to open this one in the background, where no request's timeout applies.
#[derive(Clone)]
pub(crate) struct Bounded<S> {
    pub(crate) inner: S,
    pub(crate) limit: Duration,
}

impl<S> Service<Uri> for Bounded<S>
where
    S: Service<Uri, Error = Box<dyn std::error::Error + Send + Sync>>,
    S::Future: Send + 'static,
{
    type Response = S::Response;
    type Error = S::Error;
    type Future = Pin<Box<dyn Future<Output = Result<S::Response, S::Error>> + Send>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, target: Uri) -> Self::Future {
        let connecting = self.inner.call(target);
        let limit = self.limit;
        Box::pin(async move {
            tokio::time::timeout(limit, connecting)
                .await
                .unwrap_or_else(|_| Err(Error::Timeout { reason: NO_CONNECTION }.into()))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn families_alternate_without_repeats() {
        let answer = ["::1", "::2", "::1", "::3", "10.0.0.1", "10.0.0.2"].map(|a| a.parse().unwrap());
        let ordered: Vec<String> = order(answer.to_vec()).iter().map(ToString::to_string).collect();
        assert_eq!(ordered, ["::1", "10.0.0.1", "::2", "10.0.0.2", "::3"]);
        assert_eq!(order((0..20).map(|i| IpAddr::from([10, 0, 0, i])).collect()).len(), MAX_ATTEMPTS);
        assert!(order(Vec::new()).is_empty());
    }
}
