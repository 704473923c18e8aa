//! Operations on the team.

use super::members;
use super::model::TeamMember;
use model::{Caller, Result};
use operation::{Rows, State, operation};
use ports::{OpenWorkDirectory, WorkType};
use store::Read;

/// Members that conversations and tasks can be assigned to
///
/// Lists all members of the team in the order in which they joined, with their availability and the work that they have.
#[operation(get "/team", scope = "conversations:read")]
pub fn list_team_members(
    read: &mut Read,
    caller: &Caller,
    work: State<OpenWorkDirectory>,
) -> Result<Rows<TeamMember>> {
    let workspace = caller.workspace_id();
    let mut team = members::list(read, workspace)?;
    let conversations = work.0.by_member(read, workspace, WorkType::Conversations)?;
    let tasks = work.0.by_member(read, workspace, WorkType::Tasks)?;
    for member in &mut team {
        member.open_conversations = conversations.get(&member.id).copied().unwrap_or_default();
        member.open_tasks = tasks.get(&member.id).copied().unwrap_or_default();
    }
    Ok(Rows(team))
}
