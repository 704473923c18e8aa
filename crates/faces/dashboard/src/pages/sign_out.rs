//! `/sign-out`: ends the session.

use crate::cookies::Cookie;
use crate::visit::{PageResult, Visit};
use ::accounts::sessions;
use maud::html;

pub(super) async fn answer(visit: Visit) -> PageResult {
    let site = visit.web().site();
    let Some(session) = visit.signed_in() else {
        return Ok(visit.redirect("/sign-in").header("set-cookie", Cookie::Session.clear(site)));
    };
    if !visit.is_post() {
        let content = html! {
            h1 { "Sign out" }
            p { "You are signed in as " strong { (session.email) } "." }
            form.wide method="post" action=(site.link("/sign-out")) { (visit.form_token()) button.main { "Sign out" } }
        };
        return Ok(visit.narrow_page(200, "Sign out", &content));
    }
    visit.form()?;
    let (account, id) = (session.account.clone(), session.id.clone());
    visit.web().db().write(move |tx| sessions::revoke(tx, &account, &id)).await?;
    visit.web().forget();
    Ok(visit.redirect("/sign-in").header("set-cookie", Cookie::Session.clear(site)))
}
