//! The HTTP server of the API.

use crate::{Api, configure};
use actix_web::dev::Server;
use actix_web::{App, HttpServer};
use std::io;
use std::net::TcpListener;
use std::time::Duration;

/// The options of the HTTP server.
#[derive(Debug, Clone, Copy)]
pub struct ServerOptions {
    /// How long idle connections are kept open.
    pub keep_alive: Duration,
    /// The number of threads. The default is the number of processors.
    pub workers: Option<usize>,
    /// How long running requests may take after a stop, in seconds.
    pub shutdown_seconds: u64,
}

/// Serves `api` on `listeners` over HTTP/1.1. Does not handle signals.
///
/// # Errors
/// If a listener cannot be used.
pub fn server(api: &Api, listeners: Vec<TcpListener>, options: &ServerOptions) -> io::Result<Server> {
    let api = api.clone();
    let mut server = HttpServer::new(move || App::new().configure(|app| configure(app, &api)))
        .keep_alive(options.keep_alive)
        .shutdown_timeout(options.shutdown_seconds)
        .disable_signals();
    if let Some(workers) = options.workers {
        server = server.workers(workers);
    }
    let server = listeners.into_iter().try_fold(server, HttpServer::listen)?;
    Ok(server.run())
}
