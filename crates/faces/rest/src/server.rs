//! From listening sockets to a api.

use crate::bare::Connection;
use crate::{Api, configure};
use actix_http::{HttpService, Protocol};
use actix_server::ServerBuilder;
use actix_service::{IntoServiceFactory, Service, ServiceFactoryExt, apply_fn_factory, map_config};
use actix_web::dev::AppConfig;
use actix_web::rt::net::TcpStream;
use actix_web::{App, Error};
use std::io;
use std::net::TcpListener;
use std::time::Duration;

/// How long a connection may take to end.
const DISCONNECTING: Duration = Duration::from_secs(1);

/// Serves `api` on `listeners`, over HTTP/1.1. Connections that are not used end after `keep_alive`. It is what
/// `HttpServer` of actix-web does, which has no place for our [`Connection`].
///
/// # Errors
/// When a listener cannot be used.
pub fn server(api: &Api, listeners: Vec<TcpListener>, keep_alive: Duration) -> io::Result<ServerBuilder> {
    let mut builder = ServerBuilder::new();
    for listener in listeners {
        let (api, stopping) = (api.clone(), builder.graceful_shutdown_signal());
        let address = listener.local_addr()?;
        builder = builder.listen(format!("http-{address}"), listener, move || {
            let (api, stopping) = (api.clone(), stopping.clone());
            let pipeline = api.pipeline.clone();
            let app = App::new().configure(|app| configure(app, &api)).into_factory();
            let http = HttpService::build()
                .keep_alive(keep_alive)
                .client_disconnect_timeout(DISCONNECTING)
                .local_addr(address)
                .graceful_shutdown_signal(move || {
                    let stopping = stopping.clone();
                    async move { stopping.notified().await }
                })
                .finish(map_config(app.map_err(|error: Error| error.error_response()), |()| {
                    AppConfig::default()
                }));
            apply_fn_factory(http, move |stream: TcpStream, http| {
                let peer = stream.peer_addr().ok();
                let connection = Connection::new(stream);
                let dispatcher = http.call((connection.clone(), Protocol::Http1, peer));
                let pipeline = pipeline.clone();
                async move { connection.serve(dispatcher, &pipeline).await }
            })
        })?;
    }
    Ok(builder)
}
