//! The page where a person chats as a customer, and replies for the business. It loads nothing from other hosts.

use super::local::is_local;
use actix_web::HttpResponse;
use actix_web::guard::fn_guard;
use actix_web::web::{self, ServiceConfig};
use maud::{DOCTYPE, Markup, html};

const STYLE: &str = include_str!("page.css");
const SCRIPT: &str = include_str!("page.js");
const POLICY: &str = "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; base-uri 'none'; \
    frame-ancestors 'none'";

pub(super) fn routes(app: &mut ServiceConfig) {
    let local = || web::get().guard(fn_guard(is_local));
    app.route("/", local().to(|| async { served("text/html; charset=utf-8", page().into_string()) }))
        .route("/page.css", local().to(|| async { served("text/css; charset=utf-8", STYLE.to_owned()) }))
        .route(
            "/page.js",
            local().to(|| async { served("text/javascript; charset=utf-8", SCRIPT.to_owned()) }),
        );
}

fn served(kind: &str, body: String) -> HttpResponse {
    HttpResponse::Ok()
        .content_type(kind)
        .insert_header(("content-security-policy", POLICY))
        .insert_header(("cache-control", "no-store"))
        .body(body)
}

fn page() -> Markup {
    html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                title { "Chat simulator" }
                link rel="stylesheet" href="/page.css";
            }
            body {
                aside {
                    h1 { "Chat simulator" }
                    p id="role" { "You are the customer. What you write goes to the business that is connected." }
                    label for="customers" { "Customer" }
                    select id="customers" size="8" {}
                    details id="new" {
                        summary { "New customer" }
                        form id="create" {
                            input id="name" placeholder="Name" aria-label="Name" required maxlength="60" autocomplete="off";
                            input id="phone" placeholder="Phone, or empty to hide it" aria-label="Phone" pattern="\\+?[0-9]{5,20}" autocomplete="off";
                            button { "Add" }
                        }
                    }
                    p id="state" role="status" {}
                }
                main {
                    header {
                        span id="who" { "Add a customer to begin." }
                        div id="sides" role="group" aria-label="Side" hidden {
                            button id="as-customer" type="button" aria-pressed="true" { "Customer" }
                            button id="as-business" type="button" aria-pressed="false" { "Business" }
                        }
                    }
                    div id="handler" hidden {
                        span id="answers" {}
                        button id="switch" type="button" {}
                    }
                    ol id="chat" tabindex="0" aria-label="Messages" aria-live="polite" {}
                    form id="compose" {
                        input id="text" placeholder="Write a message" aria-label="Message" maxlength="4000" autocomplete="off";
                        button id="send" { "Send" }
                        button id="voice" type="button" title="Send these words as a voice note" { "Voice note" }
                    }
                }
                script src="/page.js" {}
            }
        }
    }
}
