//! The link that `serve` prints while nobody manages the installation.

use crate::Config;
use crate::operator_error::cause;
use accounts::links::{Place, Purpose};
use accounts::{first_operator, memberships};
use business::team::{self, MemberRole};
use model::{Result, WorkspaceId};
use std::io::Write;
use store::{Db, Read};

/// Issues a link with which a person creates the first account, unless there is an operator. With the demo, the person
/// becomes its owner.
pub(crate) async fn issue(
    db: &Db,
    config: &Config,
    demo: Option<WorkspaceId>,
) -> anyhow::Result<Option<String>> {
    let issued = db.write(move |tx| {
        let place = demo.map(|workspace| owner_without_account(tx, workspace)).transpose()?.flatten();
        first_operator::issue_at_start(tx, place)
    });
    let secret = issued.await.map_err(cause)?;
    Ok(secret.map(|secret| format!("{}{}", config.base_url(), Purpose::FirstOperator.path(&secret))))
}

/// Returns the first owner of a team who cannot sign in yet.
fn owner_without_account(read: &mut Read, workspace: WorkspaceId) -> Result<Option<Place>> {
    for member in team::list(read, workspace)? {
        let place = Place { workspace, member: member.id };
        if member.role == MemberRole::Owner && memberships::of_member(read, place)?.is_none() {
            return Ok(Some(place));
        }
    }
    Ok(None)
}

/// Prints the link. On standard output and not in the log, because whoever has it can become the operator. On a thread,
/// which may wait for its reader for ever.
pub(crate) fn print(link: String) {
    let print = move || {
        let text = format!(
            "\nNobody manages this installation yet. Create the first account here, within 30 minutes:\n  {link}\n\n"
        );
        if std::io::stdout().write_all(text.as_bytes()).is_err() {
            tracing::warn!(
                "the link for the first account could not be printed: `svc operator link` prints one"
            );
        }
    };
    let _ = std::thread::Builder::new().name("start-link".to_owned()).spawn(print);
}
