//! Who uses functions, skills, agents and flows, so that none of them is deleted or changed to the harm of what uses it.

use model::{AgentId, Code, Error, FlowId, FunctionId, Result, SkillId, WorkspaceId};
use serde::Serialize;
use serde_json::json;
use std::fmt;
use std::sync::{Arc, OnceLock};
use store::Read;
use utoipa::ToSchema;

/// An object that others can use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UsedObject {
    /// A function.
    Function(FunctionId),
    /// A skill.
    Skill(SkillId),
    /// An agent.
    Agent(AgentId),
    /// A flow.
    Flow(FlowId),
}

/// An object that uses another.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
#[schema(example = json!({ "type": "agent", "id": "7", "name": "Support", "version": null }))]
pub struct ObjectUse {
    /// The type of the object, such as `agent`.
    pub r#type: &'static str,
    /// Its id, as text.
    pub id: String,
    /// Its name.
    pub name: String,
    /// The version that it uses. `null` if it uses the published version of the time.
    pub version: Option<i64>,
}

/// Objects of one type that use others. Each group that keeps such objects implements it.
pub trait ObjectUsers: Send + Sync {
    /// The live objects of the workspace that use this one, in the order of their ids.
    ///
    /// # Errors
    /// When the database fails.
    fn uses(&self, read: &mut Read, workspace: WorkspaceId, used: UsedObject) -> Result<Vec<ObjectUse>>;
}

/// Everything that can use functions, skills, agents and flows. A service that operations ask for, and that groups can be given
/// before it is known who uses what. Cheap to clone.
#[derive(Clone, Default)]
pub struct ObjectUses(Arc<OnceLock<Vec<Arc<dyn ObjectUsers>>>>);

impl fmt::Debug for ObjectUses {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ObjectUses")
    }
}

impl ObjectUses {
    /// Says who the users of all groups are. Only the first call counts.
    pub fn connect(&self, users: impl IntoIterator<Item = Arc<dyn ObjectUsers>>) {
        let _ = self.0.set(users.into_iter().collect());
    }

    /// All live objects of the workspace that use this one.
    ///
    /// # Errors
    /// When the database fails.
    pub fn of(&self, read: &mut Read, workspace: WorkspaceId, used: UsedObject) -> Result<Vec<ObjectUse>> {
        // Without them everything would seem to be unused.
        let users = self.0.get().ok_or_else(|| Error::internal("the users of objects are not connected"))?;
        let mut all = Vec::new();
        for users in users {
            all.extend(users.uses(read, workspace, used)?);
        }
        Ok(all)
    }
}

/// The error for a change that these uses forbid: 409 `resource_in_use` with `details.used_by`.
pub fn in_use(message: impl Into<String>, used_by: &[ObjectUse]) -> Error {
    Error::new(Code::ResourceInUse, message).with("details", json!({ "used_by": used_by }))
}
