//! What each scope allows, as a sentence for the person who is asked.

use model::{Scope, ScopeSet};

/// What a scope allows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sentence {
    /// The sentence. It completes "The app may …".
    pub text: &'static str,
    /// What to warn of.
    pub warning: Option<Warning>,
}

/// What a scope allows that deserves attention.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Warning {
    /// Something that cannot be undone: deleting, or reaching people outside.
    Irreversible,
    /// Work that is paid with Energy.
    SpendsEnergy,
}

impl Warning {
    /// The warning, for people.
    pub const fn text(self) -> &'static str {
        match self {
            Self::Irreversible => "Cannot be undone",
            Self::SpendsEnergy => "Spends Energy",
        }
    }
}

const fn plain(text: &'static str) -> Sentence {
    Sentence { text, warning: None }
}

const fn irreversible(text: &'static str) -> Sentence {
    Sentence { text, warning: Some(Warning::Irreversible) }
}

const fn spends_energy(text: &'static str) -> Sentence {
    Sentence { text, warning: Some(Warning::SpendsEnergy) }
}

/// The scopes of an app that asks for none in particular: what an assistant needs every day. `GET /me` needs `runs:read`.
pub fn everyday() -> ScopeSet {
    [
        Scope::McpUse,
        Scope::RunsRead,
        Scope::ContactsRead,
        Scope::ContactsWrite,
        Scope::ConversationsRead,
        Scope::TasksRead,
        Scope::TasksWrite,
        Scope::RemindersRead,
        Scope::RemindersWrite,
        Scope::CollectionsRead,
        Scope::ItemsRead,
        Scope::ItemsWrite,
        Scope::FilesRead,
    ]
    .into_iter()
    .collect()
}

/// Returns the sentence of a scope.
#[expect(clippy::too_many_lines, reason = "a table")]
pub const fn sentence(scope: Scope) -> Sentence {
    match scope {
        Scope::AgentsRead => plain("See your agents, their instructions and their usage"),
        Scope::AgentsWrite => irreversible("Create, change and delete your agents and their tools"),
        Scope::RunsExecute => spends_energy("Let your agents work"),
        Scope::RunsRead => plain("See what your agents did, and which workspace this is"),
        Scope::SkillsRead => plain("See the skills of your agents"),
        Scope::SkillsManage => irreversible("Create, change and delete the skills of your agents"),
        Scope::FunctionsRead => plain("See your functions, their code and their calls"),
        Scope::FunctionsWrite => irreversible("Create, change, run and delete your functions"),
        Scope::RagRead => plain("See your knowledge bases"),
        Scope::RagWrite => irreversible("Change your knowledge bases"),
        Scope::FlowsWrite => irreversible("Create, change and delete drafts of your flows"),
        Scope::AutomationsRead => plain("See your flows and automations and what they did"),
        Scope::AutomationsWrite => {
            irreversible("Create, publish and delete your automations, and publish your flows")
        }
        Scope::AutomationsExecute => spends_energy("Start your flows and automations"),
        Scope::CollectionsRead => plain("See your collections and their fields"),
        Scope::CollectionsWrite => {
            irreversible("Create, change and delete your collections with all their items")
        }
        Scope::ItemsRead => plain("Read the items in your collections"),
        Scope::ItemsWrite => irreversible("Create, change and delete items in your collections"),
        Scope::ContactsRead => plain("Read your contacts, their messages and notes"),
        Scope::ContactsWrite => irreversible("Create, change, merge and delete your contacts"),
        Scope::TasksRead => plain("Read your tasks and their comments"),
        Scope::TasksWrite => irreversible("Create, change, complete and delete your tasks"),
        Scope::VariablesRead => plain("See your variables; secret values stay hidden"),
        Scope::VariablesWrite => irreversible("Create, change and delete your variables and contact fields"),
        Scope::FilesRead => plain("Read your files"),
        Scope::FilesWrite => irreversible("Upload, rename and delete your files"),
        Scope::ConversationsRead => plain("Read your conversations, broadcasts and team"),
        Scope::ConversationsWrite => irreversible("Create, change and delete your quick replies"),
        Scope::HandoffManage => {
            irreversible("Assign conversations, pause your agents in them, and answer contacts as a person")
        }
        Scope::ChannelsRead => plain("See your channels, their health and their message templates"),
        Scope::ChannelsSend => irreversible("Send messages and broadcasts to your contacts"),
        Scope::ChannelsManage => irreversible("Submit and delete message templates of your channels"),
        Scope::IntegrationsRead => plain("See which accounts of other services you have connected"),
        Scope::IntegrationsManage => irreversible("Connect and disconnect accounts of other services"),
        Scope::IntegrationsExecute => {
            spends_energy("Act through your connected accounts, analyse contacts and generate images")
        }
        Scope::McpUse => plain("Work through an assistant (MCP), within what else is allowed here"),
        Scope::WebhooksManage => {
            irreversible("See, create and delete webhooks, which send your events to other systems")
        }
        Scope::EventsRead => plain("Read the log of everything that happens in your workspace"),
        Scope::RemindersRead => plain("Read your reminders"),
        Scope::RemindersWrite => irreversible("Create, change and delete your reminders"),
        Scope::BillingRead => plain("See your plan, your usage and your invoices"),
        Scope::ConversionsRead => plain("See reported conversions"),
        Scope::ConversionsWrite => {
            irreversible("Report conversions of your contacts to advertising platforms")
        }
        Scope::SitesRead => plain("See your sites"),
        Scope::SnapshotsRead => plain("See the templates that can be installed"),
        Scope::SnapshotsInstall => irreversible("Install templates into your workspace"),
        Scope::SnapshotsPublish => irreversible("Publish a workspace as a template"),
        Scope::WorkspacesProvision => irreversible("Create workspaces for clients"),
        Scope::WorkspacesRecharge => irreversible("Recharge the Energy of clients"),
        Scope::PartnerBillingManage => irreversible("Set the plans of clients"),
        Scope::PartnerClientsRead => plain("See your clients"),
        Scope::PartnerLeadsRead => plain("See your leads"),
        Scope::PartnerLeadsWrite => irreversible("Create, change and delete your leads"),
        Scope::PartnerProjectsRead => plain("See your projects"),
        Scope::PartnerProjectsWrite => irreversible("Create, change and delete your projects"),
        Scope::PartnerCommissionsRead => plain("See your commissions"),
        Scope::PartnerPayoutsRead => plain("See your payouts"),
        Scope::PartnerSupportRead => plain("See your support tickets"),
        Scope::PartnerSupportWrite => irreversible("Write in your support tickets"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_scope_has_a_sentence_of_its_own() {
        let mut texts: Vec<&str> = Scope::ALL.iter().map(|scope| sentence(*scope).text).collect();
        for text in &texts {
            assert!(
                text.len() >= 10 && text.starts_with(char::is_uppercase) && !text.ends_with('.'),
                "{text}"
            );
        }
        texts.sort_unstable();
        texts.dedup();
        assert_eq!(texts.len(), Scope::ALL.len());
    }

    #[test]
    fn an_everyday_scope_can_be_asked_for() {
        assert!(everyday().iter().all(|scope| !scope.is_retired() && !scope.is_partner_only()));
    }
}
