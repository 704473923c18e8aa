//! The published documents and the reference page.

use actix_web::http::header::{CACHE_CONTROL, ETAG, IF_NONE_MATCH, LOCATION};
use actix_web::web::{Bytes, Data};
use actix_web::{HttpRequest, HttpResponse};
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use utoipa_swagger_ui::{Config, SwaggerUi};

/// The two documents, made once at start.
pub struct Contracts {
    public: Document,
    partner: Document,
}

struct Document {
    text: Bytes,
    etag: String,
}

impl Contracts {
    /// Keeps the two documents' texts.
    pub fn new(public: String, partner: String) -> Self {
        Self { public: Document::new(public), partner: Document::new(partner) }
    }
}

impl Document {
    fn new(text: String) -> Self {
        let digest = ring::digest::digest(&ring::digest::SHA256, text.as_bytes());
        let etag = format!("\"{}\"", URL_SAFE_NO_PAD.encode(digest.as_ref().get(..12).unwrap_or_default()));
        Self { text: Bytes::from(text), etag }
    }

    fn answer(&self, request: &HttpRequest) -> HttpResponse {
        let known =
            request.headers().get(IF_NONE_MATCH).and_then(|value| value.to_str().ok()).unwrap_or_default();
        let unchanged = known
            .split(',')
            .any(|tag| matches!(tag.trim(), tag if tag == "*" || tag.trim_start_matches("W/") == self.etag));
        let mut response = if unchanged { HttpResponse::NotModified() } else { HttpResponse::Ok() };
        response.insert_header((ETAG, self.etag.as_str())).insert_header((CACHE_CONTROL, "no-cache"));
        if unchanged {
            return response.finish();
        }
        response.content_type("application/json").body(self.text.clone())
    }
}

pub(crate) async fn public(request: HttpRequest, contracts: Data<Contracts>) -> HttpResponse {
    contracts.public.answer(&request)
}

pub(crate) async fn partner(request: HttpRequest, contracts: Data<Contracts>) -> HttpResponse {
    contracts.partner.answer(&request)
}

/// Says that the process serves. It asks nothing of the database, so that a slow one does not get it restarted.
pub(crate) async fn health() -> HttpResponse {
    HttpResponse::Ok().content_type("application/json").body("{\"status\":\"ok\"}")
}

pub(crate) async fn to_docs() -> HttpResponse {
    HttpResponse::PermanentRedirect().insert_header((LOCATION, "/docs/")).finish()
}

/// The reference page, from files inside the program: nothing is loaded from elsewhere.
pub(crate) fn reference_page() -> SwaggerUi {
    let documents = ["/api/v1/openapi.public.json", "/api/v1/openapi.partner.json"];
    SwaggerUi::new("/docs/{_:.*}")
        .config(Config::new(documents).persist_authorization(false).doc_expansion("none"))
}
