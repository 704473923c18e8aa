//! `/sign-in`: with an e-mail address and a password.

use super::{email_field, expect_safe_connection, mistakes, password_field, with_session};
use crate::cookies::Cookie;
use crate::forms::hidden;
use crate::layout::{Wrong, summary};
use crate::next::Next;
use crate::visit::{PageResult, Visit};
use ::accounts::{account, sessions};
use maud::{Markup, html};
use model::{Code, Error, Result};

pub(super) async fn answer(mut visit: Visit) -> PageResult {
    let asked = Next::read(visit.parameter("next").as_deref());
    if asked.leads_out() {
        visit.allow_forms_to_leave();
    }
    if visit.is_post() {
        return sign_in(&visit).await;
    }
    if visit.signed_in().is_some() {
        return Ok(visit.redirect(asked.path()));
    }
    expect_safe_connection(&visit)?;
    Ok(visit.narrow_page(200, "Sign in", &page(&visit, &asked, "", &[]).await?))
}

async fn sign_in(visit: &Visit) -> PageResult {
    expect_safe_connection(visit)?;
    let form = visit.form()?;
    let (next, email) = (Next::read(form.get("next")), form.text("email"));
    let user_agent = visit.user_agent();
    let device = Cookie::Device.read(visit.web().site(), &visit.request);
    let attempt = visit.web().sign_in().attempt(
        email,
        form.text("password").to_owned(),
        device.as_deref(),
        visit.peer(),
        &user_agent,
    );
    match attempt.await {
        Ok(signed_in) => {
            // The new session never adopts a secret that was there, and the old session does not outlive its cookie.
            if let Some(old) = visit.signed_in().cloned() {
                visit.web().db().write(move |tx| sessions::revoke(tx, &old.account, &old.id)).await?;
                visit.web().forget();
            }
            let answer = with_session(visit, visit.redirect(next.path()), &signed_in.secret);
            Ok(answer.header("set-cookie", Cookie::Device.set(visit.web().site(), &signed_in.device)))
        }
        Err(error) if error.code() == Code::RateLimited => {
            let (wrong, wait) = waiting(&error);
            let answer = visit.narrow_page(429, "Error: Sign in", &page(visit, &next, email, &wrong).await?);
            Ok(answer.header("retry-after", wait.to_string()))
        }
        Err(error) => {
            let status = error.code().status();
            let wrong = mistakes(error)?;
            Ok(visit.narrow_page(status, "Error: Sign in", &page(visit, &next, email, &wrong).await?))
        }
    }
}

/// Returns what a form says about an attempt that came too early, and the seconds to wait.
pub(super) fn waiting(error: &Error) -> ([Wrong; 1], i64) {
    let wait = error.retry_after_seconds().unwrap_or(1);
    let unit = if wait == 1 { "second" } else { "seconds" };
    ([Wrong::form(format!("There were too many attempts. Try again in {wait} {unit}."))], wait)
}

async fn page(visit: &Visit, next: &Next, email: &str, wrong: &[Wrong]) -> Result<Markup> {
    let has_operator = visit.web().db().read(account::has_operator).await?;
    Ok(html! {
        h1 { "Sign in" }
        (summary(wrong))
        @if !has_operator { (first_steps(visit)) }
        form.wide method="post" action=(visit.web().site().link("/sign-in")) {
            (visit.form_token())
            @if next.is_set() { (hidden("next", next.path())) }
            (email_field(email, wrong))
            (password_field(wrong))
            button.main { "Sign in" }
        }
        @if has_operator {
            p.muted { br; "Forgotten your password? Whoever runs this service can print a link that sets a new one." }
        }
    })
}

/// Says how the first account comes to be. An address that nobody has a link for creates none.
fn first_steps(visit: &Visit) -> Markup {
    html! {
        section.card {
            h2 { "Nobody can sign in yet" }
            p { "This installation has no operator. On its machine, run" }
            p { code { "svc operator link" } }
            p {
                "and open the link that it prints, or "
                a href=(visit.web().site().link("/start")) { "paste the code of the link" } ". The link works once, for 30 minutes."
            }
        }
    }
}
