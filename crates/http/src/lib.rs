//! The REST face: HTTP in, the pipeline called, HTTP out. It knows no operation.

mod contract;
mod raw;
mod rest;

pub use contract::Contracts;

use actix_web::web::{self, Data, ServiceConfig};
use operation::{Pipeline, RawRoute};
use std::sync::Arc;

/// The path below which the operations live.
pub const BASE: &str = "/api/v1";

/// All that is served.
#[derive(Clone)]
pub struct Face {
    /// Runs the API's requests.
    pub pipeline: Arc<Pipeline>,
    /// The published documents.
    pub contracts: Arc<Contracts>,
    /// What is beside the API.
    pub raw_routes: Arc<[Arc<dyn RawRoute>]>,
}

/// Adds a face to an actix application: the API, its documents, the reference page, and what is beside them.
pub fn configure(config: &mut ServiceConfig, face: &Face) {
    let Face { pipeline, contracts, raw_routes } = face.clone();
    for route in raw_routes.iter() {
        raw::mount(config, route);
    }
    config
        .app_data(Data::from(pipeline))
        .app_data(Data::from(contracts))
        // First, because routes are tried in their order, and the reference page's is a regular expression.
        .service(
            web::scope(BASE)
                .route("/openapi.public.json", web::get().to(contract::public))
                .route("/openapi.partner.json", web::get().to(contract::partner))
                .default_service(web::to(rest::handle)),
        )
        .route("/health", web::get().to(contract::health))
        .route("/docs", web::get().to(contract::to_docs))
        .service(contract::reference_page())
        .default_service(web::to(rest::handle));
}
