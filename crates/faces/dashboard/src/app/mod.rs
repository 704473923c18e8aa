//! `/app/`: the dashboard, an application that runs in the browser and uses the API.
//!
//! Its bundle is built by `scripts/build-dashboard` and embedded in the program. The page itself and `GET /session` are all
//! that the application gets from here; everything else it reads and writes with a token of the session, as a key would.

mod bundle;
mod files;
mod routes;
mod session;

pub(crate) use routes::{AppRoute, Shortcut};
pub(crate) use session::answer as session;

/// The header of answers to the application that names the version of the bundle that this program serves. An application
/// of another version tells its user to reload.
pub(crate) const VERSION_HEADER: &str = "x-dashboard-version";

/// Returns the version of the bundle: the digest of all its files.
pub(crate) fn version() -> &'static str {
    bundle::BUNDLE.digest()
}
