//! `/start`: the link of the first operator. Opening it changes nothing; its form creates the account.

use super::{
    code, email_field, expect_safe_connection, mistakes, name_field, new_password_field, with_session,
};
use crate::layout::{Field, Wrong, summary};
use crate::visit::{PageResult, Visit};
use ::accounts::links::Purpose;
use ::accounts::{Email, Secret, first_operator, sessions};
use maud::{Markup, html};
use model::{Error, Result};

/// Asks for the code of a link, for people who see the link but cannot open it.
pub(super) async fn ask(visit: Visit) -> PageResult {
    if visit.is_post() {
        let form = visit.form()?;
        // A whole link may be pasted too.
        let pasted = form.text("code").trim();
        return match Secret::parse(pasted.rsplit('/').next().unwrap_or_default()) {
            Some(code) => Ok(visit.redirect(&Purpose::FirstOperator.path(&code))),
            None => {
                let wrong = [Wrong::field("code", "This is not the code of a link. Copy all of it.")];
                Ok(visit.narrow_page(400, "Error: Start", &code_form(&visit, &wrong)))
            }
        };
    }
    Ok(visit.narrow_page(200, "Start", &code_form(&visit, &[])))
}

fn code_form(visit: &Visit, wrong: &[Wrong]) -> Markup {
    let field = Field {
        name: "code",
        label: "Code",
        kind: "text",
        autocomplete: "off",
        hint: "The last part of the link, or the whole link.",
        value: "",
    };
    html! {
        h1 { "Start" }
        (summary(wrong))
        p { "Run " code { "svc operator link" } " on the machine of this service, and paste what it prints." }
        form.wide method="post" action=(visit.web().site().link("/start")) {
            (visit.form_token())
            (field.markup(wrong))
            button.main { "Continue" }
        }
    }
}

pub(super) async fn answer(visit: Visit) -> PageResult {
    expect_safe_connection(&visit)?;
    let code = code(&visit)?;
    let looked_at = code.clone();
    visit.web().db().read(move |read| first_operator::look(read, &looked_at)).await?;
    if !visit.is_post() {
        return Ok(visit.narrow_page(200, "Create your account", &page(&visit, "", "", &[])));
    }
    let form = visit.form()?;
    let (email, name) = (form.text("email").to_owned(), form.text("name").to_owned());
    match create(&visit, code, &email, &name, form.text("password")).await {
        Ok(secret) => Ok(with_session(&visit, visit.redirect("/app/"), &secret)),
        Err(error) => {
            let status = error.code().status();
            let wrong = mistakes(error)?;
            Ok(visit.narrow_page(status, "Error: Create your account", &page(&visit, &email, &name, &wrong)))
        }
    }
}

async fn create(visit: &Visit, code: Secret, email: &str, name: &str, password: &str) -> Result<Secret> {
    let email = Email::parse(email)?;
    if name.trim().is_empty() {
        return Err(Error::invalid("name", "must not be empty"));
    }
    let hash = visit.web().sign_in().passwords().hash(password.to_owned(), &email).await?;
    let (name, address, user_agent) = (name.to_owned(), visit.peer(), visit.user_agent());
    let opened = visit.web().db().write(move |tx| {
        let account = first_operator::create(tx, &code, &email, &name, &hash, Some(address))?;
        let (_, secret) = sessions::open(tx, &account.id, address, &user_agent)?;
        Ok(secret)
    });
    opened.await
}

fn page(visit: &Visit, email: &str, name: &str, wrong: &[Wrong]) -> Markup {
    html! {
        h1 { "Create your account" }
        (summary(wrong))
        p { "You will be the operator of this installation." }
        // Without an action, the form is posted to the address of the page, which contains the code.
        form.wide method="post" {
            (visit.form_token())
            (name_field(name, wrong))
            (email_field(email, wrong))
            (new_password_field(wrong))
            button.main { "Create account" }
        }
    }
}
