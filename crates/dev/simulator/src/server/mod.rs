//! The HTTP server.

mod control;
mod files;
mod inbox;
mod local;
mod messages;
mod page;
mod templates;
mod transcribe;

use crate::world::{Refused, Shared, World};
use actix_web::dev::Server;
use actix_web::http::StatusCode;
use actix_web::http::header::{AUTHORIZATION, HeaderMap};
use actix_web::web::{self, Data, Query};
use actix_web::{App, HttpResponse, HttpServer};
use egress::Connector;
use serde::Deserialize;
use serde_json::Value;
use std::io;
use std::net::TcpListener;
use std::sync::Arc;
use std::time::Duration;

/// The maximum size of a request: a file of 100 MiB with its form.
const LARGEST: usize = 101 << 20;

/// Longer than clients keep idle connections.
const KEEP_ALIVE: Duration = Duration::from_secs(600);

pub(crate) fn start(
    shared: Arc<Shared>,
    connector: Connector,
    listener: TcpListener,
    workers: usize,
) -> io::Result<Server> {
    let shared: Data<Shared> = Data::from(shared);
    let app = move || {
        App::new()
            .app_data(shared.clone())
            .app_data(Data::new(connector.clone()))
            .app_data(web::PayloadConfig::new(LARGEST))
            .configure(control::routes)
            .configure(page::routes)
            .route("/v1/audio/transcriptions", web::post().to(transcribe::transcribe))
            .route("/files/{id}", web::get().to(files::read))
            .route(r"/{version:v\d+\.\d+}/{number}/messages", web::post().to(messages::post))
            .route(r"/{version:v\d+\.\d+}/{number}/media", web::post().to(files::upload))
            .route(r"/{version:v\d+\.\d+}/{business}/message_templates", web::get().to(templates::list))
            .route(r"/{version:v\d+\.\d+}/{business}/message_templates", web::post().to(templates::create))
            .route(r"/{version:v\d+\.\d+}/{business}/message_templates", web::delete().to(templates::delete))
            .route(r"/{version:v\d+\.\d+}/{id}", web::get().to(describe))
            .default_service(web::to(|| async { refuse(&unknown_path()) }))
    };
    let server = HttpServer::new(app).workers(workers).keep_alive(KEEP_ALIVE).disable_signals();
    Ok(server.listen(listener)?.run())
}

fn unknown_path() -> Refused {
    Refused { status: 404, ..Refused::new(2_500, "Unknown path components.") }
}

fn answer(status: u16, body: &Value) -> HttpResponse {
    let status = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    HttpResponse::build(status).content_type("application/json").body(body.to_string())
}

fn refuse(refused: &Refused) -> HttpResponse {
    let mut response = answer(refused.status, &refused.body());
    if let Some(seconds) = refused.retry_after {
        let name = actix_web::http::header::RETRY_AFTER;
        response.headers_mut().insert(name, seconds.into());
    }
    response
}

/// Checks that the request has the token of a number for which `is_it` returns `true`.
fn authorize(
    world: &World,
    headers: &HeaderMap,
    is_it: impl Fn(&crate::world::Number) -> bool,
    id: &str,
) -> Result<(), Refused> {
    let token = headers.get(AUTHORIZATION).and_then(|value| value.to_str().ok()?.strip_prefix("Bearer "));
    let mut is_there = false;
    for number in world.numbers.values().filter(|number| is_it(number)) {
        is_there = true;
        if !number.is_revoked && token == Some(&number.access_token) {
            return Ok(());
        }
    }
    if is_there {
        return Err(Refused::new(190, "The access token is not valid, or has been revoked."));
    }
    Err(Refused::missing(id))
}

#[derive(Deserialize)]
struct Fields {
    #[serde(default)]
    fields: String,
}

/// Returns a number or a file.
async fn describe(
    shared: Data<Shared>,
    path: web::Path<(String, String)>,
    query: Query<Fields>,
    request: actix_web::HttpRequest,
) -> HttpResponse {
    let (_, id) = path.into_inner();
    let mut world = shared.lock();
    let found = match world.numbers.get(&id) {
        Some(number) => authorize(&world, request.headers(), |number| number.id == id, &id)
            .map(|()| number.described(&query.fields)),
        None => authorize(&world, request.headers(), |_| true, &id)
            .and_then(|()| files::describe(&mut world, &shared.origin, &id)),
    };
    match found {
        Ok(body) => answer(200, &body),
        Err(refused) => refuse(&refused),
    }
}
