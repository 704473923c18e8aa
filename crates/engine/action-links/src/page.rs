//! Pages of actions. They have no script and load nothing.

use maud::{DOCTYPE, Markup, PreEscaped, html};
use model::{Code, Error, RequestId, Timestamp};

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

/// A page with this content.
pub fn page(title: &str, content: &Markup) -> Markup {
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

/// The page for an error.
pub(crate) fn refusal(error: &Error, request: &RequestId) -> Markup {
    let title = match error.code() {
        Code::NotFound => "Not found",
        Code::InvalidState | Code::LinkUsed => "Answered already",
        Code::ApprovalExpired | Code::LinkExpired => "Too late",
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

/// A moment as people read it.
pub fn moment(at: Timestamp) -> String {
    let text = at.rfc3339();
    format!("{} UTC", text.get(..16).unwrap_or(&text).replace('T', " "))
}
