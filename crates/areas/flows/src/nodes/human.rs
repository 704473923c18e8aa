//! Nodes that talk to the contact, while a person answers it.

use super::{NodeCall, NodeFailure, Wait, Work};
use crate::draft::settings::FlowWhenHumanActive;
use crate::runs::row::FlowRunStatus;
use crate::runs::waits::FlowWaitType;
use flow_graphs::NodeType;
use ports::ContactCard;

impl NodeCall {
    /// The contact as it is now. It is another one if it was merged meanwhile.
    ///
    /// # Errors
    /// `no_contact`, `not_found`.
    pub(super) async fn contact_card(&self) -> Result<ContactCard, NodeFailure> {
        let (id, workspace) = (self.contact()?, self.run.workspace_id);
        let people = self.engine.0.people.clone();
        Ok(self.engine.db().read(move |read| people.find(read, workspace, &id.into())).await?)
    }

    /// Returns whether the flow rests now, because a person answers the contact.
    pub(super) fn is_held(&self, has_autopilot: bool) -> bool {
        !has_autopilot && self.content.settings.when_human_active == FlowWhenHumanActive::Hold
    }

    /// Returns what the node does instead of its work, if a person answers the contact and the flow does not go on then.
    ///
    /// # Errors
    /// `human_active` for a flow that is cancelled, which this has done.
    pub(super) async fn held_by_person(&self) -> Result<Option<Work>, NodeFailure> {
        let talks = matches!(
            self.task.kind,
            NodeType::SendMessage | NodeType::SendTemplate | NodeType::Ask | NodeType::Agent
        );
        let policy = self.content.settings.when_human_active;
        if !talks || policy == FlowWhenHumanActive::Continue || self.run.contact_id.is_none() {
            return Ok(None);
        }
        let card = self.contact_card().await?;
        if card.autopilot {
            return Ok(None);
        }
        if policy == FlowWhenHumanActive::Hold {
            return Ok(Some(Work::Waits(Wait {
                contact: Some(card.id),
                ..Wait::new(FlowWaitType::Handback)
            })));
        }
        let (engine, row) = (self.engine.clone(), self.run.clone());
        let cancel = move |tx: &mut store::Tx| {
            engine.end_now(tx, row.clone(), FlowRunStatus::Cancelled)?;
            Ok(())
        };
        self.engine.db().write(cancel).await?;
        Err(NodeFailure::new("human_active", "A person answers the contact, so the flow was cancelled."))
    }
}
