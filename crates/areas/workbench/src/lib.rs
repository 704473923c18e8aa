//! Workbench: what the dashboard shows of a person's account, of API keys, of the log of requests and of the audit log, and
//! what operators manage of the installation.
//!
//! Its operations are for people who have signed in (`session = "…"`). They call the functions that the command line calls.

mod account;
mod audit;
mod group;
mod installation;
mod keys;
mod requests;
mod workspace;

pub use group::GROUP;
pub use installation::{InstallationCheck, InstallationChecks};
pub use requests::HealthState;

use ::operation::{Domain, Operations};

/// The area of the dashboard's own operations.
pub struct Workbench;

impl Domain for Workbench {
    const AREA: &'static str = "Workbench";
    const ORDER: u16 = 900;
    const DESCRIPTION: &'static str = "The own account, API keys, the log of requests, the audit log, the workspace and the installation, for people who have \
         signed in.";

    fn operations() -> Operations {
        let parts = [
            account::operations(),
            keys::operations(),
            requests::operations(),
            audit::operations(),
            workspace::operations(),
            installation::operations(),
        ];
        parts.into_iter().flatten().collect()
    }
}
