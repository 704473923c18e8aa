//! The HTTP server: listening sockets in, the API served on them.

use crate::{Api, configure};
use actix_web::dev::Server;
use actix_web::{App, HttpServer};
use std::io;
use std::net::TcpListener;
use std::time::Duration;

/// How an HTTP server works.
#[derive(Debug, Clone, Copy)]
pub struct ServerOptions {
    /// After which time connections end on which nothing is sent.
    pub keep_alive: Duration,
    /// The number of threads; by default that of the processors.
    pub workers: Option<usize>,
    /// How long requests may take to end once the server stops, in seconds.
    pub shutdown_seconds: u64,
}

/// Serves `api` on `listeners`, over HTTP/1.1. Signals are left to the program.
///
/// # Errors
/// When a listener cannot be used.
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
