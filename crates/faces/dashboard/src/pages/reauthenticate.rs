//! `/reauthenticate`: asks who is signed in for the password again, and goes on where that was needed.

use super::sign_in::waiting;
use super::{expect_safe_connection, mistakes, password_field, with_session};
use crate::forms::hidden;
use crate::layout::{Wrong, summary};
use crate::next::Next;
use crate::session::SignedIn;
use crate::visit::{PageResult, Visit};
use maud::{Markup, html};
use model::Code;

pub(super) async fn answer(mut visit: Visit) -> PageResult {
    let asked = Next::read(visit.parameter("next").as_deref());
    if asked.leads_out() {
        visit.allow_forms_to_leave();
    }
    expect_safe_connection(&visit)?;
    let session = visit.require_session(asked.path())?;
    if !visit.is_post() {
        return Ok(visit.narrow_page(200, "Confirm that it is you", &page(&visit, session, &asked, &[])));
    }
    let form = visit.form()?;
    let next = Next::read(form.get("next"));
    let password = form.text("password").to_owned();
    match visit.web().sign_in().step_up(&session.id, password, visit.peer()).await {
        Ok(secret) => {
            visit.web().forget();
            Ok(with_session(&visit, visit.redirect(next.path()), &secret))
        }
        Err(error) if error.code() == Code::RateLimited => {
            let (wrong, wait) = waiting(&error);
            let answer = visit.narrow_page(429, "Error: Confirm", &page(&visit, session, &next, &wrong));
            Ok(answer.header("retry-after", wait.to_string()))
        }
        Err(error) if error.code() == Code::ValidationError => {
            mistakes(error)?;
            let wrong = [Wrong::field("password", "The password is wrong.")];
            Ok(visit.narrow_page(400, "Error: Confirm", &page(&visit, session, &next, &wrong)))
        }
        Err(error) => Err(error.into()),
    }
}

fn page(visit: &Visit, session: &SignedIn, next: &Next, wrong: &[Wrong]) -> Markup {
    html! {
        h1 { "Confirm that it is you" }
        (summary(wrong))
        p { "You are signed in as " strong { (session.email) } ". What comes next needs a password that was given within the last ten \
             minutes." }
        form.wide method="post" action=(visit.web().site().link("/reauthenticate")) {
            (visit.form_token())
            @if next.is_set() { (hidden("next", next.path())) }
            (password_field(wrong))
            button.main { "Confirm" }
        }
    }
}
