//! The published documents and the reference page.

use actix_web::http::header::{CACHE_CONTROL, ETAG, IF_NONE_MATCH, LOCATION};
use actix_web::web::{Bytes, Data};
use actix_web::{HttpRequest, HttpResponse};
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use operation::{Contract, Registry, document};
use std::sync::{Arc, OnceLock};
use utoipa_swagger_ui::{Config, SwaggerUi};

/// The two documents, made when they are first asked for.
pub struct Contracts {
    registry: Arc<Registry>,
    version: &'static str,
    public: OnceLock<Document>,
    partner: OnceLock<Document>,
}

struct Document {
    text: Bytes,
    etag: String,
}

impl Contracts {
    /// The documents of what is registered, in this version (as `v0.1.0`).
    pub fn new(registry: Arc<Registry>, version: &'static str) -> Self {
        Self { registry, version, public: OnceLock::new(), partner: OnceLock::new() }
    }

    fn answer(&self, request: &HttpRequest, contract: Contract) -> HttpResponse {
        let place = match contract {
            Contract::Public => &self.public,
            Contract::Partner => &self.partner,
        };
        if let Some(document) = place.get() {
            return document.answer(request);
        }
        match document(&self.registry, contract, self.version) {
            Ok(text) => place.get_or_init(|| Document::new(text)).answer(request),
            Err(error) => {
                // A test makes both documents.
                tracing::error!(?error, "the contract cannot be made");
                HttpResponse::InternalServerError().finish()
            }
        }
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
    contracts.answer(&request, Contract::Public)
}

pub(crate) async fn partner(request: HttpRequest, contracts: Data<Contracts>) -> HttpResponse {
    contracts.answer(&request, Contract::Partner)
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
