//! The REST face: HTTP in, the pipeline called, HTTP out. It knows no operation.

mod contract;
mod rest;

pub use contract::Contracts;

use actix_web::web::{self, Data, ServiceConfig};
use operation::Pipeline;
use std::sync::Arc;

/// The path below which the operations live.
pub const BASE: &str = "/api/v1";

/// Adds the API, its documents and the reference page to an actix application.
pub fn configure(config: &mut ServiceConfig, pipeline: Arc<Pipeline>, contracts: Arc<Contracts>) {
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
