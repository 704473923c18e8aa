//! `/reset/<code>`: a new password by a link. Opening it changes nothing; its form sets the password.

use super::{code, expect_safe_connection, look, mistakes, new_password_field};
use crate::cookies::Cookie;
use crate::layout::{Wrong, summary};
use crate::visit::{PageResult, Visit};
use ::accounts::links::Purpose;
use maud::{Markup, html};

pub(super) async fn answer(visit: Visit) -> PageResult {
    expect_safe_connection(&visit)?;
    let code = code(&visit)?;
    look(&visit, &code, Purpose::PasswordReset).await?;
    if !visit.is_post() {
        return Ok(visit.narrow_page(200, "New password", &page(&visit, &[])));
    }
    let form = visit.form()?;
    let reset = visit.web().sign_in().reset_password(&code, form.text("password").to_owned(), visit.peer());
    match reset.await {
        Ok(account) => {
            visit.web().forget();
            let content = html! {
                h1 { "Your password is set" }
                p { "Everybody who was signed in as " strong { (account.email) } " has been signed out." }
                p { a.button href=(visit.web().site().link("/sign-in")) { "Sign in" } }
            };
            let answer = visit.narrow_page(200, "Your password is set", &content);
            Ok(answer.header("set-cookie", Cookie::Session.clear(visit.web().site())))
        }
        Err(error) => {
            let status = error.code().status();
            let wrong = mistakes(error)?;
            Ok(visit.narrow_page(status, "Error: New password", &page(&visit, &wrong)))
        }
    }
}

fn page(visit: &Visit, wrong: &[Wrong]) -> Markup {
    html! {
        h1 { "New password" }
        (summary(wrong))
        p { "When you set it, every browser that is signed in with the old password is signed out." }
        form.wide method="post" {
            (visit.form_token())
            (new_password_field(wrong))
            button.main { "Set password" }
        }
    }
}
