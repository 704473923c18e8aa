//! The reference page. Its files are embedded in the program, and the page requests nothing from other hosts.

use crate::file::{File, digest};
use actix_web::http::header::{
    CONTENT_SECURITY_POLICY, HeaderValue, LOCATION, REFERRER_POLICY, X_CONTENT_TYPE_OPTIONS,
};
use actix_web::web::Path;
use actix_web::{HttpRequest, HttpResponse};
use std::collections::HashMap;
use std::sync::LazyLock;

/// Everything is loaded from this service. The renderer sets inline styles, shows its own images as `data:` URLs, and
/// image responses as `blob:` URLs.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; \
    img-src 'self' data: blob:; font-src 'self' data:; connect-src 'self'; base-uri 'none'; form-action 'none'; \
    frame-ancestors 'none'";

static PAGE: LazyLock<Page> = LazyLock::new(Page::new);

struct Page {
    html: File,
    /// By the names in the page's URLs: a digest of the content with the file name.
    assets: HashMap<String, File>,
}

impl Page {
    fn new() -> Self {
        let script = "text/javascript; charset=utf-8";
        let page: [(&str, &[u8], &str); 2] = [
            ("page.css", include_bytes!("../reference/page.css"), "text/css; charset=utf-8"),
            ("page.js", include_bytes!("../reference/page.js"), script),
        ];
        let renderer: &[u8] = include_bytes!("../reference/scalar.js.gz");
        let files = page
            .map(|(name, bytes, content_type)| (name, bytes, File::new(bytes, content_type)))
            .into_iter()
            .chain([("scalar.js", renderer, File::new(renderer, script).gzipped())]);
        let mut html = include_str!("../reference/index.html").to_owned();
        let mut assets = HashMap::new();
        for (name, bytes, file) in files {
            let address = format!("{}-{name}", digest(bytes));
            html = html.replace(&format!("\"{name}\""), &format!("\"{address}\""));
            assets.insert(address, file.immutable());
        }
        Self { html: File::new(html, "text/html; charset=utf-8"), assets }
    }
}

pub(crate) async fn to_page() -> HttpResponse {
    HttpResponse::PermanentRedirect().insert_header((LOCATION, "/docs/")).finish()
}

pub(crate) async fn page(request: HttpRequest) -> HttpResponse {
    with_headers(PAGE.html.answer(&request))
}

pub(crate) async fn asset(request: HttpRequest, name: Path<String>) -> HttpResponse {
    with_headers(match PAGE.assets.get(name.as_str()) {
        Some(file) => file.answer(&request),
        None => HttpResponse::NotFound().finish(),
    })
}

fn with_headers(mut response: HttpResponse) -> HttpResponse {
    let headers = response.headers_mut();
    headers.insert(CONTENT_SECURITY_POLICY, HeaderValue::from_static(POLICY));
    headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    headers.insert(REFERRER_POLICY, HeaderValue::from_static("no-referrer"));
    response
}
