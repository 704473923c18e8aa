//! The connector: a pooled client over [`Dial`], a single exchange, and the chain of redirects.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::header::{ACCEPT_ENCODING, CONTENT_LENGTH, HeaderValue};
use http::{Method, StatusCode, Uri};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::{CaptureConnection, capture_connection};
use hyper_util::rt::{TokioExecutor, TokioTimer};
use prometheus::core::Collector;
use prometheus::{IntCounterVec, Opts};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;
use rustls::{ClientConfig, RootCertStore};
use tokio::time::{Instant, timeout, timeout_at};
use url::Url;

use crate::dial::{Bounded, Dial, Resolver, SystemResolver};
use crate::error::{Error, NO_CONNECTION};
use crate::message::{Request, Response, Streaming, TOTAL, header_map};
use crate::policy::Policy;
use crate::redirect::{self, Hop};
use crate::url_rules::{self, UrlRules};

/// Upper bound of the connect timeout.
const MAX_CONNECT: Duration = Duration::from_secs(60);

/// How long idle connections are kept. Longer than the gap between two deliveries to a busy target, shorter than most
/// servers' own limit.
const IDLE: Duration = Duration::from_secs(30);

/// Idle connections kept per scheme, host and port.
const IDLE_PER_HOST: usize = 64;

/// The maximum size of a response's header names and values together, in bytes.
const MAX_HEADERS: u32 = 64 * 1024;

type Https = Client<Bounded<HttpsConnector<Dial>>, Full<Bytes>>;

/// An HTTP client that contacts only allowed targets. Cloning is cheap and shares the connections.
#[derive(Clone)]
pub struct Connector {
    policy: Arc<Policy>,
    client: Https,
    /// A counter of requests, by outcome.
    requests: IntCounterVec,
}

impl std::fmt::Debug for Connector {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Connector").field("policy", &self.policy).finish_non_exhaustive()
    }
}

impl Connector {
    /// Creates a connector that uses the system's resolver.
    ///
    /// # Errors
    /// [`Error::Config`] if an extra certificate authority of the policy cannot be parsed.
    pub fn new(policy: Policy) -> Result<Self, Error> {
        Self::with_resolver(policy, Arc::new(SystemResolver::default()))
    }

    /// Creates a connector that uses this resolver.
    ///
    /// # Errors
    /// As [`new`](Self::new).
    pub fn with_resolver(policy: Policy, resolver: Arc<dyn Resolver>) -> Result<Self, Error> {
        let requests = Opts::new(
            "svc_outbound_requests_total",
            "Outbound requests (webhook deliveries, tools, model servers), by outcome: the class of the response's \
             status, such as `2xx`, or why there was no response.",
        );
        let requests = IntCounterVec::new(requests, &["outcome"])
            .map_err(|_| Error::Config { reason: "its metrics cannot be made" })?;
        Self::build(policy, resolver, requests)
    }

    /// Creates a connector with another policy. Its requests are counted in the same metric.
    ///
    /// # Errors
    /// As [`new`](Self::new).
    pub fn under(&self, policy: Policy) -> Result<Self, Error> {
        Self::build(policy, Arc::new(SystemResolver::default()), self.requests.clone())
    }

    /// Returns the metrics to register.
    pub fn collectors(&self) -> Vec<Box<dyn Collector>> {
        vec![Box::new(self.requests.clone())]
    }

    fn build(policy: Policy, resolver: Arc<dyn Resolver>, requests: IntCounterVec) -> Result<Self, Error> {
        let tls = tls(&policy)?;
        let policy = Arc::new(policy);
        let dial = Dial { policy: Arc::clone(&policy), resolver };
        let https = HttpsConnectorBuilder::new()
            .with_tls_config(tls)
            .https_or_http()
            .enable_http1()
            .enable_http2()
            .wrap_connector(dial);
        let client = Client::builder(TokioExecutor::new())
            .timer(TokioTimer::new())
            .pool_timer(TokioTimer::new())
            .pool_idle_timeout(IDLE)
            .pool_max_idle_per_host(IDLE_PER_HOST)
            .http1_max_buf_size(MAX_HEADERS as usize)
            .http2_max_header_list_size(MAX_HEADERS)
            // Detects connections that a NAT or a firewall has dropped silently.
            .http2_keep_alive_interval(Duration::from_secs(20))
            .http2_keep_alive_timeout(Duration::from_secs(10))
            .build(Bounded { inner: https, limit: MAX_CONNECT });
        Ok(Self { policy, client, requests })
    }

    /// Checks a URL without using the network, to validate it before it is stored. Its name may still resolve to a
    /// forbidden address when it is used.
    ///
    /// # Errors
    /// [`Error::InvalidUrl`] or [`Error::Forbidden`].
    pub fn check_url(&self, url: &str, rules: &UrlRules) -> Result<Url, Error> {
        let url = url_rules::check(url, rules, &self.policy)?;
        // `http::Uri` accepts fewer characters than `Url`.
        uri(&url)?;
        Ok(url)
    }

    /// Sends a request and reads the whole response. Any status counts as success.
    ///
    /// # Errors
    /// Any [`Error`] but [`Error::Config`].
    pub async fn send(&self, request: Request) -> Result<Response, Error> {
        self.stream(request).await?.collect().await
    }

    /// Sends a request and returns once the response's headers have arrived. Any status counts as success.
    ///
    /// # Errors
    /// Any [`Error`] but [`Error::Config`].
    pub async fn stream(&self, request: Request) -> Result<Streaming, Error> {
        let now = Instant::now();
        // A limit that the clock cannot represent becomes a day.
        let deadline = now.checked_add(request.limits.total).unwrap_or(now + Duration::from_hours(24));
        let result = timeout_at(deadline, self.follow(request, deadline)).await.unwrap_or(Err(TOTAL));
        self.requests.with_label_values(&[outcome(&result)]).inc();
        result
    }

    /// Executes the chain of redirects. Each hop is checked like the first request.
    async fn follow(&self, request: Request, deadline: Instant) -> Result<Streaming, Error> {
        let limits = request.limits;
        if request.method == Method::CONNECT || request.method == Method::TRACE {
            return Err(Error::InvalidRequest { reason: "this method is not accepted" });
        }
        let mut headers = header_map(&request.headers)?;
        // Without this header a server may choose any coding (RFC 9110, 12.5.3).
        if limits.decode {
            headers.entry(ACCEPT_ENCODING).or_insert(HeaderValue::from_static("identity"));
        }
        let url = url_rules::check(&request.url, &limits.url, &self.policy)?;
        let mut hop = Hop { method: request.method, url, headers, body: request.body };
        let mut redirects = 0;
        loop {
            let response = self.exchange(&hop, limits.connect).await?;
            let status = response.status();
            let next = match limits.max_redirects {
                0 => None,
                _ => redirect::target(&hop.url, status, response.headers())?,
            };
            let Some(next) = next else {
                return Streaming::new(response, hop.url, &limits, deadline);
            };
            if redirects == limits.max_redirects {
                return Err(Error::TooManyRedirects);
            }
            redirects += 1;
            let next = url_rules::check(next.as_str(), &limits.url, &self.policy)?;
            hop.follow(status, next);
        }
    }

    /// Executes a single request, without redirects.
    async fn exchange(&self, hop: &Hop, connect: Duration) -> Result<http::Response<Incoming>, Error> {
        let mut request = http::Request::new(Full::new(hop.body.clone()));
        *request.method_mut() = hop.method.clone();
        *request.uri_mut() = uri(&hop.url)?;
        *request.headers_mut() = hop.headers.clone();
        // The client sends `Content-Length` only with a body, but some servers answer 411 to a POST without it.
        if hop.body.is_empty() && matches!(hop.method, Method::POST | Method::PUT | Method::PATCH) {
            request.headers_mut().insert(CONTENT_LENGTH, HeaderValue::from_static("0"));
        }
        let connection = capture_connection(&mut request);
        let response = tokio::select! {
            // Prefer a response that is ready over the timeout.
            biased;
            response = self.client.request(request) => response.map_err(|error| {
                tracing::debug!(%error, "outbound request failed");
                Error::from_client(&error)
            })?,
            () = unconnected(connection, connect) => {
                return Err(Error::Timeout { reason: NO_CONNECTION });
            }
        };
        // No request asks for an upgrade, and what follows would not be HTTP.
        if response.status() == StatusCode::SWITCHING_PROTOCOLS {
            return Err(Error::Http { reason: "the server switched to another protocol" });
        }
        // The client's own limits allow about twice this size.
        let headers: usize =
            response.headers().iter().map(|(name, value)| name.as_str().len() + value.len()).sum();
        if headers > MAX_HEADERS as usize {
            return Err(Error::TooLarge { reason: "the response's headers are too large" });
        }
        Ok(response)
    }
}

/// Returns the outcome of a request, for the metrics.
fn outcome(result: &Result<Streaming, Error>) -> &'static str {
    match result {
        Err(error) => error.kind(),
        Ok(response) => match response.status {
            200..300 => "2xx",
            300..400 => "3xx",
            400..500 => "4xx",
            _ => "5xx",
        },
    }
}

/// Completes if the request has no connection after `limit`; otherwise never.
async fn unconnected(mut connection: CaptureConnection, limit: Duration) {
    let connected = timeout(limit, async { drop(connection.wait_for_connection_metadata().await) }).await;
    if connected.is_ok() {
        std::future::pending::<()>().await;
    }
}

fn uri(url: &Url) -> Result<Uri, Error> {
    url.as_str().parse().map_err(|_| Error::InvalidUrl { reason: "it has characters that HTTP can't carry" })
}

fn tls(policy: &Policy) -> Result<ClientConfig, Error> {
    let unreadable = Error::Config { reason: "an extra certificate authority is not a PEM certificate" };
    let mut roots = RootCertStore { roots: webpki_roots::TLS_SERVER_ROOTS.to_vec() };
    for pem in &policy.extra_roots {
        let before = roots.len();
        for certificate in CertificateDer::pem_slice_iter(pem.as_bytes()) {
            roots.add(certificate.map_err(|_| unreadable)?).map_err(|_| unreadable)?;
        }
        // Text without any certificate would otherwise be accepted silently.
        if roots.len() == before {
            return Err(unreadable);
        }
    }
    // Name the provider here, so that no process-wide default has to be installed.
    let config = ClientConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(|_| Error::Config { reason: "TLS is not available" })?
        .with_root_certificates(roots)
        .with_no_client_auth();
    Ok(config)
}
