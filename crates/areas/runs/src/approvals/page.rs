//! HTML page on which a person decides. It has no script and loads nothing.

use super::answer::{ApprovalResult, OpenRequest};
use crate::run::{RunRow, StepRow, Verdict};
use action_links::LONGEST_NOTE;
use action_links::page::{moment, page};
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

fn cut(text: &str, most: usize) -> String {
    match text.char_indices().nth(most) {
        Some((end, _)) => format!("{} …", text.get(..end).unwrap_or_default()),
        None => text.to_owned(),
    }
}

/// JSON in which nothing is invisible or turns the text around it: a person must see what is approved. Such letters
/// stand within texts only, where JSON can spell them out.
fn visible(json: &str) -> String {
    let mut text = String::with_capacity(json.len());
    for letter in json.chars() {
        if is_deceptive(letter) {
            let mut units = [0; 2];
            for unit in letter.encode_utf16(&mut units) {
                text.push_str(&format!("\\u{unit:04x}"));
            }
        } else {
            text.push(letter);
        }
    }
    text
}

/// Controls, and letters of no width or that change the direction of writing.
fn is_deceptive(letter: char) -> bool {
    matches!(
        letter,
        '\u{7f}'..='\u{9f}'
            | '\u{ad}'
            | '\u{61c}'
            | '\u{180e}'
            | '\u{200b}'..='\u{200f}'
            | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}'
            | '\u{feff}'
            | '\u{fff9}'..='\u{fffb}'
            | '\u{e0000}'..='\u{e007f}'
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    #[test]
    fn what_hides_is_spelt_out_and_stays_the_same_json() {
        let arguments = json!({ "to": "a\u{202e}b\u{200b}c\u{e0041}", "name": "Ü 天 🙂" });
        let shown = visible(&serde_json::to_string_pretty(&arguments).unwrap());
        assert!(shown.contains(r"a\u202eb\u200bc\udb40\udc41") && shown.contains("Ü 天 🙂"), "{shown}");
        assert_eq!(serde_json::from_str::<Value>(&shown).unwrap(), arguments);
    }

    #[test]
    fn texts_are_cut_between_letters() {
        assert_eq!(cut("äöü", 2), "äö …");
        assert_eq!(cut("äöü", 3), "äöü");
    }
}
