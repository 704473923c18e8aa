//! The pages.

mod account;
mod apps;
mod invite;
mod reauthenticate;
mod reset;
mod sign_in;
mod sign_out;
mod start;
mod token;

use crate::app::{self, AppRoute, Shortcut};
use crate::cookies::Cookie;
use crate::layout::{Field, Wrong};
use crate::route::{Handler, PageRoute};
use crate::site::{InsecureSignIn, Site};
use crate::visit::{PageResult, Refusal, Visit};
use crate::web::{Web, WebParts};
use ::accounts::{Secret, links};
use maud::Markup;
use model::{Code, Error, Result};
use operation::{BaseUrl, BoxFuture, Group, Parts, RawAnswer, Services};

/// The pages for people who sign in.
pub const PAGES: Group = Group { declare: Ok, start };

fn start(services: &Services) -> Result<Parts> {
    let BaseUrl(base_url) = services.cloned()?;
    let insecure: InsecureSignIn = services.cloned()?;
    let web = Web::new(WebParts {
        db: services.cloned()?,
        seal: services.get()?,
        site: Site::new(&base_url, insecure)?,
        directory: services.get()?,
        session_tokens: services.get()?,
        access_tokens: services.get()?,
        sign_in: services.get()?,
    });
    let routes: [(&'static str, Handler); 12] = [
        ("/sign-in", |visit| sign_in::answer(visit).boxed()),
        ("/sign-out", |visit| sign_out::answer(visit).boxed()),
        ("/start", |visit| start::ask(visit).boxed()),
        ("/start/", |visit| start::answer(visit).boxed()),
        ("/invite/", |visit| invite::answer(visit).boxed()),
        ("/reset/", |visit| reset::answer(visit).boxed()),
        ("/account", |visit| account::answer(visit).boxed()),
        ("/account/", |visit| account::change(visit).boxed()),
        ("/apps", |visit| apps::answer(visit).boxed()),
        ("/reauthenticate", |visit| reauthenticate::answer(visit).boxed()),
        ("/session", |visit| app::session(visit).boxed()),
        ("/session/token", |visit| token::answer(visit).boxed()),
    ];
    let parts = routes.into_iter().fold(Parts::default(), |parts, (prefix, handler)| {
        parts.raw_route(PageRoute::new(&web, prefix, handler))
    });
    let parts = parts
        .raw_route(AppRoute::new(&web))
        .raw_route(Shortcut::new(&web, "/app", "/app/"))
        .raw_route(Shortcut::new(&web, "/billing", "/app/settings/billing"));
    Ok(parts.service(web))
}

/// Puts a page's future into a box.
trait Boxed: Future<Output = PageResult> + Send + Sized + 'static {
    fn boxed(self) -> BoxFuture<PageResult> {
        Box::pin(self)
    }
}

impl<F: Future<Output = PageResult> + Send + 'static> Boxed for F {}

/// Returns the secret of the link whose page is asked for.
///
/// # Errors
/// `not_found`, as for a link that does not exist.
fn code(visit: &Visit) -> Result<Secret> {
    Secret::parse(&visit.request.rest).ok_or_else(unknown_link)
}

fn unknown_link() -> Error {
    Error::new(Code::NotFound, "This link does not exist. Check that the whole address was copied.")
}

/// Returns a link that works, without using it up.
///
/// # Errors
/// `not_found`, `link_used`, `link_expired`.
async fn look(visit: &Visit, code: &Secret, purpose: links::Purpose) -> Result<links::Link> {
    let code = code.clone();
    visit.web().db().read(move |read| links::look(read, &code, purpose)).await
}

/// Refuses to take passwords over a connection that others can read.
///
/// # Errors
/// A page with the reason.
fn expect_safe_connection(visit: &Visit) -> std::result::Result<(), Refusal> {
    let Some(reason) = visit.web().site().refusal(visit.request.header("host")) else { return Ok(()) };
    let content = maud::html! {
        h1 { "You cannot sign in here" }
        p { (reason) }
    };
    Err(visit.narrow_page(403, "You cannot sign in here", &content).into())
}

/// Returns what a form shows about an error of its input. Other errors are the answer.
///
/// # Errors
/// The error, unless it is about the input.
fn mistakes(error: Error) -> std::result::Result<Vec<Wrong>, Refusal> {
    if error.code() != Code::ValidationError && error.code() != Code::DuplicateValue {
        return Err(error.into());
    }
    let parts = error.errors();
    let wrong = |param: Option<&str>, message: &str| match param {
        Some("email") => Wrong::field("email", readable("The e-mail address", message)),
        Some("name") => Wrong::field("name", readable("The name", message)),
        Some("password") => Wrong::field("password", readable("The password", message)),
        _ => Wrong::form(message),
    };
    if parts.is_empty() {
        return Ok(vec![wrong(error.param_name(), error.message())]);
    }
    Ok(parts.iter().map(|part| wrong(Some(part.param.as_str()), &part.message)).collect())
}

/// Turns a rule for programs into a sentence for people: `` `email` must be … `` into "The e-mail address must be …".
fn readable(subject: &str, message: &str) -> String {
    let rule = message.strip_prefix('`').and_then(|rest| rest.split_once("` ")).map(|(_, rule)| rule);
    match rule {
        Some(rule) => format!("{subject} {}.", rule.trim_end_matches('.')),
        None if message.starts_with(|letter: char| letter.is_lowercase()) => {
            format!("{subject} {}.", message.trim_end_matches('.'))
        }
        None => message.to_owned(),
    }
}

fn email_field(value: &str, wrong: &[Wrong]) -> Markup {
    let field = Field {
        name: "email",
        label: "E-mail address",
        kind: "email",
        autocomplete: "username",
        hint: "",
        value,
    };
    field.markup(wrong)
}

fn name_field(value: &str, wrong: &[Wrong]) -> Markup {
    let field =
        Field { name: "name", label: "Your name", kind: "text", autocomplete: "name", hint: "", value };
    field.markup(wrong)
}

fn password_field(wrong: &[Wrong]) -> Markup {
    let field = Field {
        name: "password",
        label: "Password",
        kind: "password",
        autocomplete: "current-password",
        hint: "",
        value: "",
    };
    field.markup(wrong)
}

fn new_password_field(wrong: &[Wrong]) -> Markup {
    let field = Field {
        name: "password",
        label: "New password",
        kind: "password",
        autocomplete: "new-password",
        hint: "At least 10 characters. A sentence of a few words is easy to remember.",
        value: "",
    };
    field.markup(wrong)
}

/// Sets the cookie of a session, and ends the browser's form key, to which earlier forms are bound.
fn with_session(visit: &Visit, answer: RawAnswer, secret: &Secret) -> RawAnswer {
    let site = visit.web().site();
    answer
        .header("set-cookie", Cookie::Session.set(site, secret.reveal()))
        .header("set-cookie", Cookie::Form.clear(site))
}
