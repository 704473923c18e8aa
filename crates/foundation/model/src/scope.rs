//! Scopes: what a key may do (specification 5.1). The table here is the only list of them.

use serde::{Serialize, Serializer};
use std::fmt;
use std::sync::LazyLock;

macro_rules! scopes {
    ($($variant:ident = $text:literal $(, $flag:ident)*;)+) => {
        /// A permission of the form `domain:action`.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[repr(u8)]
        #[expect(missing_docs, reason = "each variant's meaning is its text in the table below")]
        pub enum Scope { $($variant),+ }

        impl Scope {
            /// Every scope, in the specification's order.
            pub const ALL: &'static [Self] = &[$(Self::$variant),+];

            /// The scope as it is written in requests and documents.
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $text),+ }
            }

            const fn flags(self) -> &'static [Flag] {
                match self { $(Self::$variant => &[$(Flag::$flag),*]),+ }
            }

            /// Reads a scope at compile time; a name that is not in the table does not compile.
            pub const fn literal(text: &str) -> Self {
                $(if same(text, $text) { return Self::$variant; })+
                panic!("no such scope")
            }
        }
    };
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Flag {
    /// Retired: honoured on old keys, refused on new ones, unlocks nothing.
    Retired,
    /// For partner keys only.
    Partner,
    /// Has effects outside that a test key may not cause.
    Restricted,
}

scopes! {
    AgentsRead = "agents:read";
    AgentsWrite = "agents:write";
    RunsExecute = "runs:execute";
    RunsRead = "runs:read";
    SkillsRead = "skills:read";
    SkillsManage = "skills:manage";
    FunctionsRead = "functions:read";
    FunctionsWrite = "functions:write";
    RagRead = "rag:read", Retired;
    RagWrite = "rag:write", Retired;
    FlowsWrite = "flows:write";
    AutomationsRead = "automations:read";
    AutomationsWrite = "automations:write";
    AutomationsExecute = "automations:execute";
    CollectionsRead = "collections:read";
    CollectionsWrite = "collections:write";
    ItemsRead = "items:read";
    ItemsWrite = "items:write";
    ContactsRead = "contacts:read";
    ContactsWrite = "contacts:write";
    TasksRead = "tasks:read";
    TasksWrite = "tasks:write";
    VariablesRead = "variables:read";
    VariablesWrite = "variables:write";
    FilesRead = "files:read";
    FilesWrite = "files:write";
    ConversationsRead = "conversations:read";
    ConversationsWrite = "conversations:write";
    HandoffManage = "handoff:manage";
    ChannelsRead = "channels:read";
    ChannelsSend = "channels:send", Restricted;
    ChannelsManage = "channels:manage", Restricted;
    IntegrationsRead = "integrations:read";
    IntegrationsManage = "integrations:manage";
    IntegrationsExecute = "integrations:execute", Restricted;
    McpUse = "mcp:use";
    WebhooksManage = "webhooks:manage";
    EventsRead = "events:read";
    RemindersRead = "reminders:read";
    RemindersWrite = "reminders:write";
    BillingRead = "billing:read";
    ConversionsRead = "conversions:read";
    ConversionsWrite = "conversions:write", Restricted;
    SitesRead = "sites:read", Retired;
    SnapshotsRead = "snapshots:read";
    SnapshotsInstall = "snapshots:install", Restricted;
    SnapshotsPublish = "snapshots:publish", Partner;
    WorkspacesProvision = "workspaces:provision", Partner, Restricted;
    WorkspacesRecharge = "workspaces:recharge", Partner, Restricted;
    PartnerBillingManage = "partner:billing:manage", Partner, Restricted;
    PartnerClientsRead = "partner:clients:read", Partner;
    PartnerLeadsRead = "partner:leads:read", Partner;
    PartnerLeadsWrite = "partner:leads:write", Partner;
    PartnerProjectsRead = "partner:projects:read", Partner;
    PartnerProjectsWrite = "partner:projects:write", Partner;
    PartnerCommissionsRead = "partner:commissions:read", Partner;
    PartnerPayoutsRead = "partner:payouts:read", Partner;
    PartnerSupportRead = "partner:support:read", Partner;
    PartnerSupportWrite = "partner:support:write", Partner;
}

impl Scope {
    /// Reads a scope as written; `None` for a name that is not in the table.
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|scope| scope.as_str() == text)
    }

    /// Those that a workspace's new key can be given.
    pub fn of_workspaces() -> impl Iterator<Item = Self> {
        Self::ALL.iter().copied().filter(|scope| !scope.is_retired() && !scope.is_partner_only())
    }

    /// Retired scopes stay on the keys that have them, unlock nothing, and cannot be chosen on a new key.
    pub fn is_retired(self) -> bool {
        self.flags().contains(&Flag::Retired)
    }

    /// Partner scopes never count on a workspace key.
    pub fn is_partner_only(self) -> bool {
        self.flags().contains(&Flag::Partner)
    }

    /// Scopes with effects outside, which a test key may carry but not use.
    pub fn is_test_restricted(self) -> bool {
        self.flags().contains(&Flag::Restricted)
    }

    const fn bit(self) -> u64 {
        1 << self as u8
    }
}

const fn same(a: &str, b: &str) -> bool {
    let (mut a, mut b) = (a.as_bytes(), b.as_bytes());
    while let ([x, rest_a @ ..], [y, rest_b @ ..]) = (a, b) {
        if *x != *y {
            return false;
        }
        (a, b) = (rest_a, rest_b);
    }
    a.is_empty() && b.is_empty()
}

impl fmt::Display for Scope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl Serialize for Scope {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

/// Sorted once: every `GET /me` prints a set.
static SORTED: LazyLock<Vec<Scope>> = LazyLock::new(|| {
    let mut scopes = Scope::ALL.to_vec();
    scopes.sort_unstable_by_key(|scope| scope.as_str());
    scopes
});

/// A set of scopes. Serialises as a sorted list of names.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ScopeSet(u64);

impl ScopeSet {
    /// Whether `scope` is in the set. Exact: `:write` does not imply `:read`.
    pub fn contains(self, scope: Scope) -> bool {
        self.0 & scope.bit() != 0
    }

    /// The scopes of the set, sorted by name.
    pub fn iter(self) -> impl Iterator<Item = Scope> {
        SORTED.iter().copied().filter(move |scope| self.contains(*scope))
    }

    /// Whether it holds nothing.
    pub fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// The set without the scopes for which `drop` is true.
    #[must_use]
    pub fn without(self, drop: impl Fn(Scope) -> bool) -> Self {
        self.iter().filter(|scope| !drop(*scope)).collect()
    }

    /// Reads a list separated by commas, as stored; names that the server no longer knows are left out.
    pub fn parse_stored(text: &str) -> Self {
        text.split(',').filter_map(Scope::parse).collect()
    }
}

impl FromIterator<Scope> for ScopeSet {
    fn from_iter<I: IntoIterator<Item = Scope>>(scopes: I) -> Self {
        Self(scopes.into_iter().fold(0, |bits, scope| bits | scope.bit()))
    }
}

impl fmt::Display for ScopeSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (place, scope) in self.iter().enumerate() {
            if place > 0 {
                f.write_str(",")?;
            }
            f.write_str(scope.as_str())?;
        }
        Ok(())
    }
}

impl Serialize for ScopeSet {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.iter())
    }
}

impl utoipa::PartialSchema for ScopeSet {
    fn schema() -> utoipa::openapi::RefOr<utoipa::openapi::Schema> {
        <Vec<String> as utoipa::PartialSchema>::schema()
    }
}
impl utoipa::ToSchema for ScopeSet {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_fits_the_set_and_reads_back() {
        assert!(Scope::ALL.len() <= 64);
        for scope in Scope::ALL {
            assert_eq!(Scope::parse(scope.as_str()), Some(*scope));
            assert_eq!(Scope::literal(scope.as_str()), *scope);
        }
        let all: ScopeSet = Scope::ALL.iter().copied().collect();
        assert_eq!(ScopeSet::parse_stored(&all.to_string()), all);
        assert_eq!(all.iter().count(), Scope::ALL.len());
    }

    #[test]
    fn the_specification_counts_hold() {
        let count = |rule: fn(Scope) -> bool| Scope::ALL.iter().filter(|scope| rule(**scope)).count();
        assert_eq!(count(Scope::is_partner_only), 13);
        assert_eq!(count(Scope::is_test_restricted), 8);
        assert_eq!(count(Scope::is_retired), 3);
    }
}
