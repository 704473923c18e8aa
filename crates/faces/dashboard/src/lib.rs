//! The pages for people and the endpoints of sessions and of OAuth: sign in, start, invitations, new passwords, consent,
//! connected apps; and the dashboard at `/app/`, an application that runs in the browser.
//!
//! The other pages are rendered here, work without scripts, and load nothing. Each is a `PageRoute` whose handler gets a
//! [`visit::Visit`]: who is signed in, the form that was sent, and the answers. `GET` and `HEAD` change nothing, because
//! programs that scan links send them.

mod app;
pub mod cookies;
pub mod forms;
pub mod layout;
pub mod next;
mod oauth;
mod pages;
mod route;
pub mod session;
pub mod site;
pub mod visit;
pub mod web;

pub use oauth::OAUTH;
pub use pages::PAGES;
pub use site::InsecureSignIn;
