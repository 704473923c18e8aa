//! Where requests come from.

use auth::keys::KeyKind;
use model::text_enum;

text_enum! {
    /// Where requests came from.
    pub enum SourceFilter {
        /// From programs: with API keys, or as OAuth apps.
        Program = "program",
        /// From programs with API keys.
        Key = "key",
        /// From OAuth apps.
        App = "app",
        /// From members of the team, in the dashboard.
        Dashboard = "dashboard",
    }
}

impl SourceFilter {
    /// Returns the kinds of keys through which requests from here come.
    pub(crate) fn kinds(self) -> &'static [KeyKind] {
        match self {
            Self::Program => &[KeyKind::Secret, KeyKind::Demo, KeyKind::Grant],
            Self::Key => &[KeyKind::Secret, KeyKind::Demo],
            Self::App => &[KeyKind::Grant],
            Self::Dashboard => &[KeyKind::Member],
        }
    }
}
