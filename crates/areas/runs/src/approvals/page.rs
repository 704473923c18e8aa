//! HTML page on which a person decides. It has no script and loads nothing.

use super::answer::{ApprovalResult, OpenRequest};
use super::decision::LONGEST_NOTE;
use crate::run::{RunRow, StepRow, Verdict};
use agents::{HttpTool, ToolRow};
use maud::{DOCTYPE, Markup, PreEscaped, html};
use model::{Code, ContactId, Error, RequestId, Result, Timestamp};
use providers::json;

/// The most characters that are shown of what the run was asked.
const LONGEST_INPUT: usize = 2000;

const STYLE: &str = "
:root { color-scheme: light dark; --line: #8884; --soft: #8881; --ok: #17703a; }
* { box-sizing: border-box; }
body { margin: 0; font: 16px/1.5 system-ui, sans-serif; }
main { max-width: 44rem; margin: 0 auto; padding: 2rem 1rem 4rem; }
h1 { font-size: 1.5rem; margin: 0 0 .25rem; }
h2 { font-size: 1rem; margin: 2rem 0 .5rem; }
.quiet { opacity: .75; margin: .25rem 0; }
.test { border-left: 4px solid #b98900; padding: .25rem .75rem; background: var(--soft); }
pre { margin: .5rem 0 0; padding: .75rem; background: var(--soft); border-radius: 6px; overflow: auto;
  white-space: pre-wrap; overflow-wrap: anywhere; font: 13px/1.45 ui-monospace, monospace; }
.call { border: 1px solid var(--line); border-radius: 8px; padding: .75rem 1rem 1rem; margin: 0 0 1rem; }
.call label { display: flex; gap: .6rem; align-items: baseline; font-weight: 600; overflow-wrap: anywhere; }
.call p { margin: .25rem 0 0; }
code { font: 13px ui-monospace, monospace; overflow-wrap: anywhere; }
textarea { width: 100%; font: inherit; padding: .5rem .75rem; border: 1px solid var(--line); border-radius: 6px; }
.buttons { display: flex; flex-direction: row-reverse; justify-content: flex-end; gap: .75rem; margin-top: 1rem; }
button { font: inherit; font-weight: 600; padding: .6rem 1.4rem; border-radius: 6px; border: 1px solid; cursor: pointer; }
button.approve { background: var(--ok); border-color: var(--ok); color: #fff; }
button.refuse { background: none; color: #a62121; color: light-dark(#a62121, #ff9a9a); }
";

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

/// Renders the page for an error.
pub(crate) fn refusal(error: &Error, request: &RequestId) -> Markup {
    let title = match error.code() {
        Code::NotFound => "Not found",
        Code::InvalidState => "Answered already",
        Code::ApprovalExpired => "Too late",
        Code::ValidationError => "That did not work",
        Code::WorkspaceBlocked => "Not possible now",
        _ => "Something went wrong",
    };
    let content = html! {
        h1 { (title) }
        p { (error.message()) }
        @if error.code().status() >= 500 { p.quiet { "Request " code { (request) } } }
    };
    page(title, &content)
}

fn page(title: &str, content: &Markup) -> Markup {
    html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                title { (title) }
                style { (PreEscaped(STYLE)) }
            }
            body { main { (content) } }
        }
    }
}

fn moment(at: Timestamp) -> String {
    let text = at.rfc3339();
    format!("{} UTC", text.get(..16).unwrap_or(&text).replace('T', " "))
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
