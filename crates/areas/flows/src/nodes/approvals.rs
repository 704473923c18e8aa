//! The node `approval`: a person decides under a link.

use super::calls::done_at;
use super::{Arrival, NodeCall, NodeFailure, Wait, Work};
use crate::engine::cause_of;
use crate::events::ApprovalRequested;
use crate::runs::waits::FlowWaitType;
use crate::waits::approvals::ApprovalRef;
use fields::json_schema;
use flow_answers::ApprovalDetails;
use flow_graphs::config::Approval;
use model::MemberId;
use serde_json::{Value, json};

impl NodeCall {
    /// Asks for a decision. The link has an identity of its own for each time that the node is executed.
    pub(super) async fn approval(&self) -> Result<Work, NodeFailure> {
        let wanted: Approval = self.config()?;
        if let Some(form) = &wanted.form {
            json_schema::check(form, "form")?;
        }
        let expires_at = self.engine.now().plus_seconds(wanted.timeout_seconds);
        let identity = ApprovalRef {
            workspace: self.run.workspace_id,
            run: self.run.id.clone(),
            position: self.position,
        };
        let url = self.engine.0.links.url(&identity.to_string());
        let event = ApprovalRequested {
            run_id: self.run.id.clone(),
            flow_id: self.run.flow_id,
            step_id: self.step_id.clone(),
            node_id: self.task.node.clone(),
            text: wanted.text.clone(),
            approver_ids: wanted.approver_ids.iter().copied().map(MemberId).collect(),
            approval_url: url.clone(),
            expires_at,
        };
        let (workspace, livemode, cause) = (self.run.workspace_id, self.run.livemode, cause_of(&self.run));
        self.engine.db().write(move |tx| tx.emit(workspace, &cause, livemode, &event).map(drop)).await?;
        let details = ApprovalDetails { text: wanted.text, form: wanted.form, url };
        Ok(Work::Waits(Wait {
            key: Some(identity.to_string()),
            details: json!(details),
            due_at: Some(expires_at),
            ..Wait::new(FlowWaitType::Approval)
        }))
    }
}

/// A person has decided, or nobody has.
pub(super) fn decided(arrival: Arrival) -> Work {
    let Arrival::Came(decision) = arrival else {
        return done_at("timeout", json!({ "decision": null }));
    };
    let is_approved = decision.get("decision").and_then(Value::as_str) == Some("approved");
    done_at(if is_approved { "approved" } else { "rejected" }, decision)
}
