//! The operation on the skills of an agent.

use super::model::{Agent, AgentRow};
use super::{SkillRef, queries};
use model::{AgentId, Caller, Error, JsonText, Result, WorkspaceId};
use operation::{Body, ExpectedVersion, Json, Path, Resource, State, Update, operation};
use ports::{SkillLibrary, SkillPin};
use providers::Tiers;
use serde::Deserialize;
use store::{Read, Tx};
use utoipa::ToSchema;

/// The skills of an agent.
#[derive(Debug, Clone, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({ "skills": [] }))]
pub struct AgentSkills {
    /// The skills, in the order in which the model receives them.
    #[schema(max_items = 20)]
    skills: Vec<SkillRef>,
}

/// Set which skills the agent has
///
/// Replaces all skills of the agent and creates a new version. An empty list removes them. A skill without a `version` follows
/// the published version of the skill: a run has the one that is published when it begins. A skill that is not published yet can
/// be set; runs have it as soon as it is published.
#[operation(put "/agents/{agentId}/skills", scope = "skills:manage")]
pub fn set_agent_skills(
    tx: &mut Tx,
    caller: &Caller,
    Path(agent_id): Path<AgentId>,
    Body(new): Body<AgentSkills>,
    library: State<SkillLibrary>,
    tiers: State<Tiers>,
) -> Result<Json<Agent>> {
    let workspace = caller.workspace_id();
    let agent = AgentRow::find_locked(tx, workspace, &agent_id)?;
    let mut settings = agent.settings()?;
    if settings.skills == new.skills {
        return Ok(Json(agent.agent(&tiers.0)?));
    }
    check(tx, workspace, &library.0, &new.skills)?;
    settings.skills = new.skills;
    let mut update = Update::of(agent, ExpectedVersion::default())?;
    update.row.settings = JsonText::of(&settings);
    Ok(Json(queries::store_version(tx, caller, update, None)?.agent(&tiers.0)?))
}

/// Checks that the workspace has these skills, each once in the list.
fn check(read: &mut Read, workspace: WorkspaceId, library: &SkillLibrary, skills: &[SkillRef]) -> Result<()> {
    for (place, skill) in skills.iter().enumerate() {
        if skills.iter().take(place).any(|earlier| earlier.skill_id == skill.skill_id) {
            let param = format!("skills[{place}].skill_id");
            return Err(Error::invalid(param, "names a skill that the list has already"));
        }
    }
    let pins: Vec<SkillPin> = skills.iter().map(SkillRef::pin).collect();
    let Some(missing) = library.missing(read, workspace, &pins)? else { return Ok(()) };
    let place = missing.place;
    Err(if missing.is_version {
        Error::invalid(format!("skills[{place}].version"), "is not a version of the skill")
    } else {
        Error::invalid(format!("skills[{place}].skill_id"), "is not a skill of the workspace")
    })
}
