//! The REST interface. It converts HTTP requests for the pipeline and knows no single operation.

mod admin;
mod contract;
mod cors;
mod file;
mod gzip;
mod home;
mod mount;
mod page_copy;
mod probes;
mod raw;
mod reference;
mod request_id;
mod rest;
mod server;

pub use admin::admin_server;
pub use contract::Contracts;
pub use operation::BASE;
pub use probes::Readiness;
pub use server::{ServerOptions, server};

use actix_web::guard;
use actix_web::middleware::from_fn;
use actix_web::web::{self, Data, ServiceConfig};
use operation::{Metrics, Mount, Pipeline, RawRoute};
use std::sync::Arc;

/// The maximum size of a request's headers.
const HEADER_BYTES: usize = 16 * 1024;

/// The parts of the HTTP service.
#[derive(Clone)]
pub struct Api {
    /// Executes requests of the API.
    pub pipeline: Arc<Pipeline>,
    /// The OpenAPI documents.
    pub contracts: Arc<Contracts>,
    /// Interfaces below `/api/v1` with a format of their own.
    pub mounts: Arc<[Arc<dyn Mount>]>,
    /// Routes outside the API.
    pub raw_routes: Arc<[Arc<dyn RawRoute>]>,
    /// The state of `/ready`.
    pub readiness: Arc<Readiness>,
    /// The metrics of `/metrics`.
    pub metrics: Arc<Metrics>,
    /// The origins whose pages may call the API from a browser; `*` for all.
    pub cors_origins: Arc<[String]>,
    /// The content of the page at `/`.
    pub home: Home,
}

/// The content of the page at `/`.
#[derive(Debug, Clone)]
pub struct Home {
    /// The version of the API.
    pub version: &'static str,
    /// The URL of the demo's chat, if there is one.
    pub chat: Option<String>,
}

/// Adds all routes to an actix application: the API, its documents, the reference page, and the routes outside the
/// API.
pub fn configure(config: &mut ServiceConfig, api: &Api) {
    let Api { pipeline, contracts, mounts, raw_routes, readiness, cors_origins, home, .. } = api.clone();
    let document = |name: &str| web::resource(name).guard(guard::Get());
    let beside = raw_routes.iter().fold(web::scope(""), raw::mount);
    config
        .app_data(Data::from(pipeline))
        .app_data(Data::from(contracts))
        .app_data(Data::from(readiness))
        .app_data(Data::new(home));
    // Register these before the scope of the API, which matches their paths too. They do CORS themselves.
    for mount in mounts.iter() {
        config.service(mount::resource(mount));
    }
    let scope = web::scope(BASE)
        .service(document("/openapi.public.json").to(contract::public).wrap(from_fn(request_id::set)))
        .service(document("/openapi.partner.json").to(contract::partner).wrap(from_fn(request_id::set)))
        .default_service(web::to(rest::handle));
    if cors_origins.is_empty() {
        config.service(scope);
    } else {
        config.service(scope.wrap(cors::cors(&cors_origins)));
    }
    config
        // Register this last. Routes are tried in order, and this scope matches every path.
        .service(
            beside
                .route("/", web::get().to(home::page))
                .route("/health", web::get().to(probes::health))
                .route("/ready", web::get().to(probes::ready))
                .route("/docs", web::get().to(reference::to_page))
                .route("/docs/", web::get().to(reference::page))
                .route("/docs/openapi.public.json", web::get().to(contract::public_page))
                .route("/docs/openapi.partner.json", web::get().to(contract::partner_page))
                .route("/docs/{asset}", web::get().to(reference::asset))
                .default_service(web::to(rest::handle))
                .wrap(from_fn(request_id::set)),
        );
}
