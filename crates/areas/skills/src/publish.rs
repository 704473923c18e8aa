//! Publishing: the checks of a draft, and the switches of a skill.

use crate::draft::facts::{Facts, stored};
use crate::draft::row::SkillRow;
use crate::draft::write;
use crate::files::contents::{self, DOCUMENT, DRAFT};
use crate::model::{Skill, SkillStatus};
use model::{Caller, Code, Env, Error, FieldError, Result, SkillId, WorkspaceId};
use operation::{Describe, ExpectedVersion, FromInput, IfMatch, Input, Json, Path, Update, With, operation};
use ports::{AgentDirectory, WorkspaceVariables};
use skill_packages::{AllowedTools, SkillDocument, referenced_files};
use std::collections::BTreeSet;
use std::sync::Arc;
use store::{Read, Tx};

use crate::draft::write::tagged;

/// The tools that runs have without a tool of their agent.
const OWN_TOOLS: [&str; 4] = ["find_tools", "load_skill", "read_skill_file", "run_skill_script"];

/// The longest description, in characters.
const LONGEST_DESCRIPTION: usize = 1024;

/// The longest `compatibility`, in characters.
const LONGEST_COMPATIBILITY: usize = 500;

/// What publishing asks other groups.
#[derive(Clone)]
pub struct Publishing {
    agents: Arc<AgentDirectory>,
    variables: Arc<WorkspaceVariables>,
}

impl FromInput for Publishing {
    fn from_input(input: &Input<'_>, _: &'static str) -> Result<Self> {
        Ok(Self { agents: input.services.get()?, variables: input.services.get()? })
    }

    fn describe(_: &mut Describe, _: &'static str) {}
}

impl Publishing {
    /// Lists everything that prevents the publication of a draft.
    fn problems(&self, read: &mut Read, row: &SkillRow, document: &SkillDocument) -> Result<Vec<FieldError>> {
        let mut problems = problems_of_fields(row, document);
        self.add_tools(read, row.workspace_id, document, &mut problems)?;
        self.add_variables(read, row, document, &mut problems)?;
        let files: BTreeSet<String> =
            contents::all(read, row.id, DRAFT)?.into_iter().map(|file| file.path).collect();
        for path in referenced_files(document.body()) {
            if !files.contains(&path) && path != DOCUMENT {
                let message = format!("refer to the file `{path}`, which the skill does not have");
                problems.push(FieldError::new("instructions", message).code("missing_file"));
            }
        }
        Ok(problems)
    }

    fn add_tools(
        &self,
        read: &mut Read,
        workspace: WorkspaceId,
        document: &SkillDocument,
        problems: &mut Vec<FieldError>,
    ) -> Result<()> {
        let names = match document.allowed_tools() {
            AllowedTools::Absent => return Ok(()),
            AllowedTools::Unreadable => {
                let rule = "cannot be read: list the names of tools, with spaces between";
                problems.push(FieldError::new("allowed_tools", rule).code("unreadable"));
                return Ok(());
            }
            AllowedTools::Listed(names) => names,
        };
        let known = self.agents.tool_names(read, workspace)?;
        for (place, name) in names.iter().enumerate() {
            if !known.contains(name) && !OWN_TOOLS.contains(&name.as_str()) {
                let message = format!("names the tool `{name}`, which no agent has");
                problems
                    .push(FieldError::new(format!("allowed_tools.{place}"), message).code("unknown_tool"));
            }
        }
        Ok(())
    }

    fn add_variables(
        &self,
        read: &mut Read,
        row: &SkillRow,
        document: &SkillDocument,
        problems: &mut Vec<FieldError>,
    ) -> Result<()> {
        let declared: Vec<String> = row.variables.parse()?;
        let referred = Facts::of(document).placeholders;
        let keys: Vec<&str> = declared.iter().chain(&referred).map(String::as_str).collect();
        let mut known: BTreeSet<String> = BTreeSet::new();
        for env in [Env::Live, Env::Test] {
            known.extend(self.variables.values(read, row.workspace_id, env, &keys)?.into_keys());
        }
        let secrets = self.variables.secrets(read, row.workspace_id, &keys)?;
        for (place, key) in declared.iter().enumerate().filter(|(_, key)| !known.contains(*key)) {
            let message = format!("names the variable `{key}`, which does not exist");
            problems.push(FieldError::new(format!("variables.{place}"), message).code("unknown_variable"));
        }
        for key in &referred {
            if secrets.contains(key) {
                let message = format!("must not refer to the secret `{key}`");
                problems.push(FieldError::new("instructions", message).code("secret_variable"));
            } else if !known.contains(key) && !declared.contains(key) {
                let message = format!("refer to the variable `{key}`, which does not exist");
                problems.push(FieldError::new("instructions", message).code("unknown_variable"));
            }
        }
        Ok(())
    }
}

fn problems_of_fields(row: &SkillRow, document: &SkillDocument) -> Vec<FieldError> {
    let mut problems = Vec::new();
    if document.name() != Some(row.name.as_str()) {
        let rule = "must be in the front matter, as up to 64 lower-case letters, digits and single hyphens";
        problems.push(FieldError::new("name", rule).code("invalid_name"));
    }
    match document.description() {
        None => problems.push(FieldError::new("description", "is missing").code("missing")),
        Some(text) if text.chars().count() > LONGEST_DESCRIPTION => {
            let rule = format!("must have at most {LONGEST_DESCRIPTION} characters");
            problems.push(FieldError::new("description", rule).code("too_long"));
        }
        Some(_) => {}
    }
    if document.compatibility().is_some_and(|text| text.chars().count() > LONGEST_COMPATIBILITY) {
        let rule = format!("must have at most {LONGEST_COMPATIBILITY} characters");
        problems.push(FieldError::new("compatibility", rule).code("too_long"));
    }
    problems
}

/// Freezes the draft as the next version, unless it is the published one.
///
/// # Errors
/// `validation_error` for everything that prevents the publication.
pub(crate) fn publish(
    tx: &mut Tx,
    caller: &Caller,
    mut update: Update<SkillRow>,
    publishing: &Publishing,
) -> Result<Skill> {
    let document = stored(&contents::document(tx, update.row.id, DRAFT)?)?;
    if let Some(error) = Error::all_invalid(publishing.problems(tx, &update.row, &document)?) {
        return Err(error);
    }
    if let Some(version) = update.publish(tx, caller)? {
        contents::copy(tx, version.skill_id, DRAFT, version.version)?;
    }
    write::finished(tx, update)
}

/// Freeze the draft as a new version that agents use
///
/// Checks the draft: name and description, each tool of `allowed_tools`, each variable, and each file that the instructions
/// refer to must exist. Otherwise the response is a 400 whose `errors` list everything that is missing. The first publication
/// makes the skill `active`; one that was disabled stays so. Publishing a draft without changes changes nothing.
#[operation(post "/skills/{skillId}/publish", scope = "skills:manage")]
pub fn publish_skill(
    tx: &mut Tx,
    caller: &Caller,
    Path(skill_id): Path<SkillId>,
    if_match: IfMatch,
    publishing: Publishing,
) -> Result<With<Json<Skill>>> {
    let update =
        Update::<SkillRow>::begin(tx, caller.workspace_id(), &skill_id, ExpectedVersion::from(if_match))?;
    Ok(tagged(publish(tx, caller, update, &publishing)?))
}

/// Offer the skill to its agents
///
/// Sets the status to `active`. A skill that was never published is a 409 `invalid_state`. Enabling an active skill changes
/// nothing.
#[operation(post "/skills/{skillId}/enable", scope = "skills:manage")]
pub fn enable_skill(
    tx: &mut Tx,
    caller: &Caller,
    Path(skill_id): Path<SkillId>,
) -> Result<With<Json<Skill>>> {
    switched(tx, caller, skill_id, SkillStatus::Active)
}

/// Withhold the skill from its agents
///
/// Sets the status to `inactive`: runs that start later do not see the skill. A draft is already withheld, and stays a draft.
#[operation(post "/skills/{skillId}/disable", scope = "skills:manage")]
pub fn disable_skill(
    tx: &mut Tx,
    caller: &Caller,
    Path(skill_id): Path<SkillId>,
) -> Result<With<Json<Skill>>> {
    switched(tx, caller, skill_id, SkillStatus::Inactive)
}

fn switched(
    tx: &mut Tx,
    caller: &Caller,
    skill_id: SkillId,
    status: SkillStatus,
) -> Result<With<Json<Skill>>> {
    let expected = ExpectedVersion::default();
    let mut update = Update::<SkillRow>::begin(tx, caller.workspace_id(), &skill_id, expected)?;
    match (update.row.published_version, status) {
        (None, SkillStatus::Active) => {
            let message = "The skill was never published. Publish it first.";
            return Err(Error::new(Code::InvalidState, message));
        }
        (None, _) => {}
        (Some(_), status) => update.row.status = status,
    }
    Ok(tagged(write::finished(tx, update)?))
}
