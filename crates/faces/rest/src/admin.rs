//! The HTTP server for operators. It has no authentication, so its address must be in a network that clients cannot
//! reach.

use crate::{Api, probes};
use actix_web::dev::Server;
use actix_web::http::header::{CONTENT_TYPE, ContentType};
use actix_web::web::{self, Data};
use actix_web::{App, HttpResponse, HttpServer};
use operation::Metrics;
use std::io;
use std::net::TcpListener;

/// The content type of Prometheus's text format.
const TEXT_FORMAT: &str = "text/plain; version=0.0.4; charset=utf-8";

/// Serves health, readiness and metrics on `listeners`. It has a single thread, so that scrapes do not compete with
/// requests.
///
/// # Errors
/// If a listener cannot be used.
pub fn admin_server(api: &Api, listeners: Vec<TcpListener>) -> io::Result<Server> {
    let pipeline = Data::from(api.pipeline.clone());
    let readiness = Data::from(api.readiness.clone());
    let metrics = Data::from(api.metrics.clone());
    let app = move || {
        App::new()
            .app_data(pipeline.clone())
            .app_data(readiness.clone())
            .app_data(metrics.clone())
            .route("/health", web::get().to(probes::health))
            .route("/ready", web::get().to(probes::ready))
            .route("/metrics", web::get().to(scrape))
    };
    let server = HttpServer::new(app).workers(1).disable_signals();
    let server = listeners.into_iter().try_fold(server, HttpServer::listen)?;
    Ok(server.run())
}

async fn scrape(metrics: Data<Metrics>) -> HttpResponse {
    match metrics.scrape().await {
        Ok(text) => HttpResponse::Ok().insert_header((CONTENT_TYPE, TEXT_FORMAT)).body(text),
        Err(error) => {
            tracing::error!(?error, "the metrics could not be printed");
            HttpResponse::InternalServerError().insert_header(ContentType::plaintext()).body("see the log\n")
        }
    }
}
