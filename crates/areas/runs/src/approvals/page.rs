//! HTML page on which a person decides. It has no script and loads nothing.

use super::answer::{ApprovalResult, OpenRequest};
use crate::run::{RunRow, StepRow, Verdict};
use action_links::LONGEST_NOTE;
use action_links::page::{moment, page};
use action_links::{cut, visible};
use agents::{HttpTool, ToolRow};
use maud::{Markup, html};
use model::{ContactId, Result, Timestamp};
use providers::json;

/// The most characters that are shown of what the run was asked.
const LONGEST_INPUT: usize = 2000;

/// Data of the approval page.
pub(crate) struct View {
    workspace: String,
    agent: String,
    livemode: bool,
    /// Whom the run answers.
    contact: Option<ContactId>,
    input: Option<String>,
    calls: Vec<CallView>,
    expires_at: Timestamp,
}

struct CallView {
    step_id: String,
    tool: String,
    description: Option<String>,
    http: Option<HttpTool>,
    arguments: String,
}

impl View {
    pub(crate) fn new(
        workspace: String,
        agent: String,
        row: &RunRow,
        open: &OpenRequest,
        tools: &[ToolRow],
    ) -> Result<Self> {
        Ok(Self {
            workspace,
            agent,
            livemode: row.livemode,
            contact: row.options()?.contact,
            input: row.input.as_deref().map(|input| cut(input, LONGEST_INPUT)),
            calls: open.calls.iter().map(|step| CallView::new(step, tools)).collect::<Result<_>>()?,
            expires_at: open.expires_at(),
        })
    }
}

impl CallView {
    fn new(step: &StepRow, tools: &[ToolRow]) -> Result<Self> {
        let mut callables = Vec::new();
        for tool in tools {
            callables.extend(tool.callables(false)?);
        }
        let called = callables.into_iter().find(|callable| callable.spec.name == step.name);
        let arguments = step.tool_input().map(|input| input.arguments);
        Ok(Self {
            step_id: step.id.to_string(),
            tool: step.name.clone(),
            http: called.as_ref().and_then(|called| called.settings.http.clone()),
            description: called.map(|called| called.spec.description),
            arguments: visible(&arguments.as_ref().map(json::pretty).unwrap_or_default()),
        })
    }
}

/// The question, with the form that answers it.
pub(crate) fn question(view: &View) -> Markup {
    let one = view.calls.len() == 1;
    let content = html! {
        h1 { "Approval needed" }
        p.quiet { "The agent " b { (view.agent) } " of " b { (view.workspace) } " waits for your decision until "
            (moment(view.expires_at)) "." }
        @if let Some(contact) = view.contact {
            p.quiet { "It answers the contact with the id " b { (contact.to_string()) } "." }
        }
        @if !view.livemode { p.test { "This is a test: tools that write are not really called." } }
        @if let Some(input) = &view.input {
            h2 { "What the agent was asked" }
            pre { (input) }
        }
        form method="post" {
            h2 { @if one { "The call that it wants to make" } @else { "The calls that it wants to make" } }
            @for call in &view.calls { (call_view(call)) }
            h2 { label for="note" { "A note " span.quiet { "(optional)" } } }
            p.quiet { "It is kept with the run. The agent is told where you refuse something." }
            textarea id="note" name="note" rows="3" maxlength=(LONGEST_NOTE) {}
            // The first button is the one that the Enter key means.
            div.buttons {
                button.refuse name="decision" value="deny" { @if one { "Refuse" } @else { "Refuse all" } }
                button.approve name="decision" value="approve" { @if one { "Approve" } @else { "Approve what is checked" } }
            }
        }
    };
    page("Approval needed", &content)
}

fn call_view(call: &CallView) -> Markup {
    html! {
        div.call {
            label { input type="checkbox" name="calls" value=(call.step_id) checked; (call.tool) }
            @if let Some(description) = &call.description { p.quiet { (description) } }
            @if let Some(http) = &call.http { p { code { (http.method.as_str()) " " (http.url) } } }
            pre { (call.arguments) }
        }
    }
}

/// Renders the page after a decision.
pub(crate) fn accepted(answered: &ApprovalResult) -> Markup {
    let title = if answered.decision == Verdict::Approved { "Approved" } else { "Refused" };
    let content = html! {
        h1 { (title) }
        p.quiet { "The agent goes on. You can close this page." }
        ul { @for call in &answered.calls { li { b { (call.tool) } ": " (call.decision.as_str()) } } }
    };
    page(title, &content)
}
