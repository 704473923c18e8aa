//! The pages for people and the endpoints of sessions and of OAuth: sign in, start, invitations, new passwords, consent,
//! connected apps.

mod oauth;

pub use oauth::OAUTH;
