//! A request of a browser: who is signed in, the form that was sent, and the answers to it.

use crate::cookies::Cookie;
use crate::forms::{self, Form, FormKey, TOKEN_FIELD, hidden};
use crate::layout::{self, FormTargets, Frame};
use crate::session::SignedIn;
use crate::web::Web;
use maud::{Markup, html};
use model::{Code, Error, Result};
use operation::{RawAnswer, RawRequest};
use std::net::IpAddr;

/// Why a page is not the one that was asked for.
pub enum Refusal {
    /// Another answer, such as a redirect to the sign-in page.
    Answer(Box<RawAnswer>),
    /// An error, which becomes a page.
    Failed(Error),
}

impl From<Error> for Refusal {
    fn from(error: Error) -> Self {
        Self::Failed(error)
    }
}

impl From<RawAnswer> for Refusal {
    fn from(answer: RawAnswer) -> Self {
        Self::Answer(Box::new(answer))
    }
}

/// The answer of a page.
pub type PageResult = std::result::Result<RawAnswer, Refusal>;

/// A request of a browser.
pub struct Visit {
    /// The request.
    pub request: RawRequest,
    web: Web,
    session: Option<SignedIn>,
    form_key: FormKey,
    /// The form cookie to set, if the browser has none.
    new_form_cookie: Option<String>,
    targets: FormTargets,
}

impl Visit {
    /// Looks up who sends a request. Changes nothing.
    ///
    /// # Errors
    /// If the database cannot be read.
    pub async fn of(web: &Web, request: RawRequest) -> Result<Self> {
        let session = web.signed_in(&request).await?;
        let (form_key, new_form_cookie) = if let Some(session) = &session {
            (FormKey::of_session(session.id.as_str()), None)
        } else if let Some(cookie) = Cookie::Form.read(web.site(), &request) {
            (FormKey::of_browser(&cookie), None)
        } else {
            let cookie = web.random_text::<32>();
            (FormKey::of_browser(&cookie), Some(cookie))
        };
        Ok(Self { request, web: web.clone(), session, form_key, new_form_cookie, targets: FormTargets::Own })
    }

    /// Lets forms of the page lead to other sites: for consent, and for signing in before it.
    pub fn allow_forms_to_leave(&mut self) {
        self.targets = FormTargets::Any;
    }

    /// Returns the services behind the pages.
    pub fn web(&self) -> &Web {
        &self.web
    }

    /// Returns whether the request may change something.
    pub fn is_post(&self) -> bool {
        self.request.method == "POST"
    }

    /// Returns the address of the peer, which may be a proxy.
    pub fn peer(&self) -> IpAddr {
        self.request.peer
    }

    /// Returns the browser as it names itself, cut to 200 characters.
    pub fn user_agent(&self) -> String {
        self.request.header("user-agent").unwrap_or_default().chars().take(200).collect()
    }

    /// Returns a parameter of the query.
    pub fn parameter(&self, name: &str) -> Option<String> {
        forms::query_value(&self.request.query, name).map(std::borrow::Cow::into_owned)
    }

    /// Returns who is signed in.
    pub fn signed_in(&self) -> Option<&SignedIn> {
        self.session.as_ref()
    }

    /// Returns who is signed in.
    ///
    /// # Errors
    /// A redirect to the sign-in page, from which people come back to `next`.
    pub fn require_session(&self, next: &str) -> std::result::Result<&SignedIn, Refusal> {
        self.session.as_ref().ok_or_else(|| self.redirect(&with_next("/sign-in", next)).into())
    }

    /// Returns who is signed in, if they have proven who they are within the last ten minutes.
    ///
    /// # Errors
    /// A redirect to the page that asks for a sign-in or for the password, from which people come back to `next`.
    pub fn require_recent_session(&self, next: &str) -> std::result::Result<&SignedIn, Refusal> {
        let session = self.require_session(next)?;
        if session.is_recent(self.web.db().now()) {
            return Ok(session);
        }
        Err(self.redirect(&with_next("/reauthenticate", next)).into())
    }

    /// Returns the field that every form of this browser needs.
    pub fn form_token(&self) -> Markup {
        hidden(TOKEN_FIELD, &self.token())
    }

    /// Returns the form token.
    pub(crate) fn token(&self) -> String {
        self.form_key.token(self.web.seal())
    }

    /// Returns the form that was sent, if a page of this service sent it from this browser.
    ///
    /// # Errors
    /// A page with the reason.
    pub fn form(&self) -> std::result::Result<Form, Refusal> {
        if !forms::is_of_type(&self.request, "application/x-www-form-urlencoded") {
            let message = "Forms are sent as `application/x-www-form-urlencoded`.";
            return Err(Error::new(Code::UnsupportedMediaType, message).into());
        }
        if !forms::is_same_origin(self.web.site(), &self.request) {
            return Err(self.foreign().into());
        }
        let form = Form::parse(&self.request.body);
        if !self.form_key.is_token(self.web.seal(), form.text(TOKEN_FIELD)) {
            return Err(self.outdated().into());
        }
        Ok(form)
    }

    fn foreign(&self) -> RawAnswer {
        let base_url = self.web.site().base_url();
        let content = html! {
            h1 { "This request came from another site" }
            p { "Nothing was changed. Open the page at " a href=(base_url) { (base_url) } " and try again." }
        };
        self.page(403, "Request from another site", &content)
    }

    fn outdated(&self) -> RawAnswer {
        let content = html! {
            h1 { "This form is out of date" }
            p { "You have signed in or out since it was opened, or your browser does not keep cookies. Nothing was changed." }
            p { "Go back, reload the page, and try again." }
        };
        self.page(403, "Form out of date", &content)
    }

    /// Returns a page with the menu.
    pub fn page(&self, status: u16, title: &str, content: &Markup) -> RawAnswer {
        self.framed(status, title, content, false)
    }

    /// Returns a page with one short form, without the menu.
    pub fn narrow_page(&self, status: u16, title: &str, content: &Markup) -> RawAnswer {
        self.framed(status, title, content, true)
    }

    fn framed(&self, status: u16, title: &str, content: &Markup, is_narrow: bool) -> RawAnswer {
        let banner = self.web.site().is_insecure().then_some(
            "This connection is not encrypted. Others on the network can read your password and what you do.",
        );
        let menu = self.session.as_ref().filter(|_| !is_narrow).map(|session| self.menu(session));
        let page = layout::page(title, &Frame { banner, menu, is_narrow }, content);
        let answer = RawAnswer::status(status)
            .header("content-security-policy", layout::policy(self.targets))
            .body("text/html; charset=utf-8", page.into_string());
        match &self.new_form_cookie {
            Some(cookie) => answer.header("set-cookie", Cookie::Form.set(self.web.site(), cookie)),
            None => answer,
        }
    }

    fn menu(&self, session: &SignedIn) -> Markup {
        let link = |page: &str| self.web.site().link(page);
        html! {
            strong { (session.name) }
            nav aria-label="Menu" { a href=(link("/app/")) { "Dashboard" } " · " a href=(link("/account")) { "Account" } " · " a href=(link("/apps")) { "Connected apps" } }
            form method="post" action=(link("/sign-out")) { (self.form_token()) button.plain { "Sign out" } }
        }
    }

    /// Returns the answer that leads the browser to another page of this service with `GET`. `page` begins with a slash.
    pub fn redirect(&self, page: &str) -> RawAnswer {
        RawAnswer::status(303).header("location", self.web.site().link(page))
    }

    /// Returns a page for an error.
    pub fn error_page(&self, error: &Error) -> RawAnswer {
        let (title, status) = (error_title(error.code()), error.code().status());
        let content = html! {
            h1 { (title) }
            p { (error.message()) }
            @if let Some(seconds) = error.retry_after_seconds() { p { "Try again in " (seconds) " seconds." } }
        };
        let answer = self.page(status, title, &content);
        match error.retry_after_seconds() {
            Some(seconds) => answer.header("retry-after", seconds.to_string()),
            None => answer,
        }
    }
}

/// Returns a page's address with the page to which people go afterwards.
pub fn with_next(page: &str, next: &str) -> String {
    let query: String =
        url::form_urlencoded::Serializer::new(String::new()).append_pair("next", next).finish();
    format!("{page}?{query}")
}

fn error_title(code: Code) -> &'static str {
    match code {
        Code::NotFound | Code::RouteNotFound => "Not found",
        Code::LinkUsed => "This link was used already",
        Code::LinkExpired => "This link has expired",
        Code::ValidationError => "That did not work",
        Code::MethodNotAllowed | Code::UnsupportedMediaType => "This request is not possible",
        code if code.status() == 503 || code.status() == 429 => "Not possible right now",
        _ => "Something went wrong",
    }
}
