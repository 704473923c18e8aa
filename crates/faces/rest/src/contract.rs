//! The published OpenAPI documents, and their copies for the reference page.

use crate::file::File;
use crate::page_copy::page_copy;
use actix_web::web::Data;
use actix_web::{HttpRequest, HttpResponse};
use operation::{Contract, Registry, document};
use std::sync::{Arc, OnceLock};

/// The documents. Each is generated on the first request for it.
pub struct Contracts {
    registry: Arc<Registry>,
    version: &'static str,
    public: Copies,
    partner: Copies,
    dashboard: Copies,
}

#[derive(Default)]
struct Copies {
    published: OnceLock<File>,
    page: OnceLock<File>,
}

#[derive(Clone, Copy)]
enum Reader {
    Program,
    Page,
}

impl Contracts {
    /// Creates the documents of all registered operations, with this version (such as `v0.1.0`).
    pub fn new(registry: Arc<Registry>, version: &'static str) -> Self {
        Self {
            registry,
            version,
            public: Copies::default(),
            partner: Copies::default(),
            dashboard: Copies::default(),
        }
    }

    fn answer(&self, request: &HttpRequest, contract: Contract, reader: Reader) -> HttpResponse {
        match self.file(contract, reader) {
            Ok(file) => file.answer(request),
            Err(error) => {
                // Tests generate all documents, so this is not expected.
                tracing::error!(?error, "the contract cannot be made");
                HttpResponse::InternalServerError().finish()
            }
        }
    }

    fn file(&self, contract: Contract, reader: Reader) -> model::Result<&File> {
        let (copies, name) = match contract {
            Contract::Public => (&self.public, "openapi.public.json"),
            Contract::Partner => (&self.partner, "openapi.partner.json"),
            Contract::Dashboard => (&self.dashboard, "openapi.dashboard.json"),
        };
        let place = match reader {
            Reader::Program => &copies.published,
            Reader::Page => &copies.page,
        };
        if let Some(file) = place.get() {
            return Ok(file);
        }
        let published = document(&self.registry, contract, self.version)?;
        let text = match reader {
            Reader::Program => published,
            Reader::Page => page_copy(&published, name)?,
        };
        Ok(place.get_or_init(|| File::new(text, "application/json").compressible()))
    }
}

pub(crate) async fn public(request: HttpRequest, contracts: Data<Contracts>) -> HttpResponse {
    contracts.answer(&request, Contract::Public, Reader::Program)
}

pub(crate) async fn partner(request: HttpRequest, contracts: Data<Contracts>) -> HttpResponse {
    contracts.answer(&request, Contract::Partner, Reader::Program)
}

pub(crate) async fn public_page(request: HttpRequest, contracts: Data<Contracts>) -> HttpResponse {
    contracts.answer(&request, Contract::Public, Reader::Page)
}

pub(crate) async fn partner_page(request: HttpRequest, contracts: Data<Contracts>) -> HttpResponse {
    contracts.answer(&request, Contract::Partner, Reader::Page)
}
