//! HTTPS: certificates are verified, SNI and authority come from the URL, and HTTP/2 is used where offered.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use egress::{Connector, Error, Limits, Policy, Request, Resolver, UrlRules};
use http::{Response, Version};
use http_body_util::Full;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto;
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use rustls::ServerConfig;
use rustls::pki_types::PrivateKeyDer;
use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;

use crate::support::Script;

/// SNI, authority or `Host`, and HTTP version of one request.
type Hello = (Option<String>, String, Version);

struct Site {
    address: SocketAddr,
    root: String,
    seen: Arc<Mutex<Vec<Hello>>>,
    accepted: Arc<Mutex<usize>>,
}

/// Starts a server with a certificate for `name`, signed by its own root. `/large` answers with 100 KB of headers,
/// `/plain` redirects to plain HTTP.
async fn site(name: &str, protocols: &[&str]) -> Site {
    let mut ca = CertificateParams::new(Vec::new()).unwrap();
    ca.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let ca = CertifiedIssuer::self_signed(ca, KeyPair::generate().unwrap()).unwrap();
    let key = KeyPair::generate().unwrap();
    let leaf = CertificateParams::new(vec![name.to_owned()]).unwrap().signed_by(&key, &ca).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![leaf.der().clone()], PrivateKeyDer::try_from(key.serialize_der()).unwrap())
        .unwrap();
    config.alpn_protocols = protocols.iter().map(|p| p.as_bytes().to_vec()).collect();
    let acceptor = TlsAcceptor::from(Arc::new(config));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let seen = Arc::new(Mutex::new(Vec::new()));
    let accepted = Arc::new(Mutex::new(0));
    let (record, count) = (Arc::clone(&seen), Arc::clone(&accepted));
    tokio::spawn(async move {
        loop {
            let (tcp, _) = listener.accept().await.unwrap();
            *count.lock().unwrap() += 1;
            let (acceptor, record) = (acceptor.clone(), Arc::clone(&record));
            tokio::spawn(async move {
                let Ok(tls) = acceptor.accept(tcp).await else { return };
                let sni = tls.get_ref().1.server_name().map(str::to_owned);
                let service = service_fn(move |request: http::Request<hyper::body::Incoming>| {
                    let host = request.headers().get("host").map(|h| h.to_str().unwrap().to_owned());
                    let authority = request.uri().authority().map(ToString::to_string);
                    record.lock().unwrap().push((
                        sni.clone(),
                        authority.or(host).unwrap(),
                        request.version(),
                    ));
                    let response = match request.uri().path() {
                        "/large" => Response::builder().header("x-large", "x".repeat(100_000)),
                        "/plain" => Response::builder().status(302).header("location", "http://tls.example/"),
                        _ => Response::builder(),
                    };
                    let response = response.body(Full::new(Bytes::from_static(b"secure"))).unwrap();
                    async move { Ok::<_, Infallible>(response) }
                });
                let _ended = auto::Builder::new(TokioExecutor::new())
                    .serve_connection(TokioIo::new(tls), service)
                    .await;
            });
        }
    });
    Site { address, root: ca.pem(), seen, accepted }
}

fn connector(names: &[&str], roots: &[&str]) -> Connector {
    let script = names.iter().fold(Script::default(), |script, name| script.on(name, "127.0.0.1"));
    let policy = Policy::allowing(["127.0.0.1"]).unwrap();
    let policy = roots.iter().fold(policy, |policy, root| policy.with_extra_roots(*root));
    Connector::with_resolver(policy, Arc::new(script) as Arc<dyn Resolver>).unwrap()
}

#[tokio::test]
async fn name_and_protocol_reach_the_server() {
    for (protocols, version) in [
        (&["h2", "http/1.1"][..], Version::HTTP_2),
        (&["http/1.1"][..], Version::HTTP_11),
        (&[][..], Version::HTTP_11),
    ] {
        let site = site("tls.example", protocols).await;
        let connector = connector(&["tls.example"], &[&site.root]);
        let url = format!("https://tls.example:{}/", site.address.port());
        let limits = Limits { url: UrlRules::https(), ..Limits::default() };
        for _ in 0..5 {
            let response = connector.send(Request::post(&url, "x").limits(limits.clone())).await.unwrap();
            assert_eq!((response.status, &response.body[..]), (200, &b"secure"[..]));
        }
        let authority = format!("tls.example:{}", site.address.port());
        let expected = (Some("tls.example".to_owned()), authority, version);
        assert_eq!(*site.seen.lock().unwrap(), vec![expected; 5]);
        assert_eq!(*site.accepted.lock().unwrap(), 1);
    }
}

#[tokio::test]
async fn certificates_are_verified() {
    let site = site("tls.example", &["h2", "http/1.1"]).await;
    let port = site.address.port();
    let names = ["tls.example", "other.example"];
    let get = |host: &str| Request::get(format!("https://{host}:{port}/"));
    let untrusted = connector(&names, &[]).send(get("tls.example")).await.unwrap_err();
    assert_eq!(untrusted, Error::Tls { reason: "the certificate's issuer is not trusted" });
    let trusting = connector(&names, &[&site.root]);
    for host in ["other.example", "127.0.0.1"] {
        let error = trusting.send(get(host)).await.unwrap_err();
        assert_eq!(error, Error::Tls { reason: "the certificate is for another host" }, "{host}");
    }
    assert!(site.seen.lock().unwrap().is_empty());
    assert!(trusting.send(get("tls.example")).await.is_ok());
}

#[tokio::test]
async fn certificates_of_addresses_are_accepted() {
    let site = site("127.0.0.1", &[]).await;
    let url = format!("https://127.0.0.1:{}/", site.address.port());
    assert!(connector(&[], &[&site.root]).send(Request::get(url)).await.is_ok());
}

#[tokio::test]
async fn plain_servers_fail_the_handshake() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("https://{}/", listener.local_addr().unwrap());
    tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        stream.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n").await.unwrap();
        std::future::pending::<()>().await;
    });
    let error = connector(&[], &[]).send(Request::get(url)).await.unwrap_err();
    assert_eq!(error, Error::Tls { reason: "the handshake failed" });
}

#[tokio::test]
async fn heads_are_capped_on_both_versions() {
    for protocols in [&["h2"][..], &["http/1.1"][..]] {
        let site = site("tls.example", protocols).await;
        let url = format!("https://tls.example:{}/large", site.address.port());
        let error = connector(&["tls.example"], &[&site.root]).send(Request::get(url)).await.unwrap_err();
        // Over HTTP/2 the client sees only a reset stream, which has no specific cause.
        assert!(matches!(error, Error::TooLarge { .. } | Error::Http { .. }), "{error}");
    }
}

#[tokio::test]
async fn https_only_holds_on_every_hop() {
    let site = site("tls.example", &["h2"]).await;
    let url = format!("https://tls.example:{}/plain", site.address.port());
    let limits = Limits { max_redirects: 3, url: UrlRules::https(), ..Limits::default() };
    let request = Request::get(url).limits(limits);
    let error = connector(&["tls.example"], &[&site.root]).send(request).await.unwrap_err();
    assert_eq!(error, Error::Forbidden { reason: "only https is accepted" });
}

#[test]
fn unreadable_roots_are_refused() {
    for pem in ["", "not PEM", "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"] {
        let error = Connector::new(Policy::public_only().with_extra_roots(pem)).unwrap_err();
        assert!(matches!(error, Error::Config { .. }), "{pem}");
    }
}
