//! REST interface: HTTP in, the pipeline called, HTTP out. It knows no operation.

mod admin;
mod contract;
mod cors;
mod file;
mod home;
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
use operation::{Metrics, Pipeline, RawRoute};
use std::sync::Arc;

/// The largest header block (decision 14).
const HEADER_BYTES: usize = 16 * 1024;

/// All that is served.
#[derive(Clone)]
pub struct Api {
    /// Runs the API's requests.
    pub pipeline: Arc<Pipeline>,
    /// The published documents.
    pub contracts: Arc<Contracts>,
    /// What is beside the API.
    pub raw_routes: Arc<[Arc<dyn RawRoute>]>,
    /// Whether requests should come here.
    pub readiness: Arc<Readiness>,
    /// What operators watch.
    pub metrics: Arc<Metrics>,
    /// The origins whose pages may call the API from a browser; `*` for all.
    pub cors_origins: Arc<[String]>,
    /// What the page at `/` shows.
    pub home: Home,
}

/// What the page at `/` shows of this service.
#[derive(Debug, Clone)]
pub struct Home {
    /// The version of the contract.
    pub version: &'static str,
    /// The address of the demo's chat, where there is one.
    pub chat: Option<String>,
}

/// Adds the API to an actix application: the API, its documents, the reference page, and what is beside them.
pub fn configure(config: &mut ServiceConfig, api: &Api) {
    let Api { pipeline, contracts, raw_routes, readiness, cors_origins, home, .. } = api.clone();
    let document = |name: &str| web::resource(name).guard(guard::Get());
    let beside = raw_routes.iter().fold(web::scope(""), raw::mount);
    config
        .app_data(Data::from(pipeline))
        .app_data(Data::from(contracts))
        .app_data(Data::from(readiness))
        .app_data(Data::new(home));
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
        // Behind the API, because routes are tried in their order, and this scope takes every path.
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
