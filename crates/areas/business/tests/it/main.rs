//! Tests of the business profile and the team over HTTP, on both databases.
#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "clippy excuses the bodies of tests only, and here helpers are most of them"
)]
#![allow(clippy::too_many_lines, reason = "tests go through tables of cases")]

mod profile;
mod team;

use model::Env;
use testkit::{Key, TestApp};

/// Returns a live key with all scopes of a new workspace.
pub async fn full(app: &TestApp) -> Key {
    let workspace = app.bare_workspace("scale", 0).await;
    app.key(workspace, Env::Live, &["*"]).await
}
