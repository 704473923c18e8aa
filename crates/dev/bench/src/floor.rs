//! The floor: a bare actix-web handler that answers with the bytes and headers of a real response.

use actix_web::http::header::{HeaderName, HeaderValue};
use actix_web::web::{self, Bytes, Data};
use actix_web::{App, HttpResponse, HttpServer};
use serde_json::json;

#[derive(clap::Args)]
pub struct Arguments {
    /// The headers, as a JSON list of pairs.
    #[arg(long)]
    headers: String,
    /// The body.
    #[arg(long)]
    body: String,
}

struct Shape {
    headers: Vec<(HeaderName, HeaderValue)>,
    body: Bytes,
}

pub async fn serve(arguments: Arguments) -> anyhow::Result<()> {
    let headers: Vec<(String, String)> = serde_json::from_str(&arguments.headers)?;
    let headers = headers
        .into_iter()
        .map(|(name, value)| Ok((HeaderName::try_from(name)?, HeaderValue::try_from(value)?)))
        .collect::<anyhow::Result<Vec<_>>>()?;
    let shape = Data::new(Shape { headers, body: arguments.body.into() });
    let app = move || App::new().app_data(shape.clone()).route("/api/v1/me", web::get().to(answer));
    let server = HttpServer::new(app).bind("127.0.0.1:0")?;
    let address = server.addrs().first().map(ToString::to_string);
    println!("{}", json!({ "address": address }));
    Ok(server.run().await?)
}

async fn answer(shape: Data<Shape>) -> HttpResponse {
    let mut response = HttpResponse::Ok();
    for (name, value) in &shape.headers {
        response.insert_header((name.clone(), value.clone()));
    }
    response.body(shape.body.clone())
}
