//! Declares the group of skills: its area and its ports.

use crate::library::Library;
use crate::packages::download::{self, PackageRoute};
use crate::variables::SkillVariables;
use crate::{file_operations, matching, operations, packages, publish, versions};
use model::Result;
use operation::{Domain, Group, Operations, Parts, Services};
use ports::{SkillLibrary, VariableUsers};
use std::sync::Arc;

/// The group of skills.
pub const GROUP: Group = Group { declare: |declarations| Ok(declarations.area::<Skills>()), start };

fn start(services: &Services) -> Result<Parts> {
    let library = Library { db: services.cloned()?, objects: services.get()?, sandbox: services.cloned()? };
    let links = download::links(services)?;
    Ok(Parts::default()
        .raw_route(PackageRoute { db: services.cloned()?, objects: services.get()?, links: links.clone() })
        .service(links)
        .service(SkillLibrary::new(library))
        .one_of::<Arc<dyn VariableUsers>>(Arc::new(SkillVariables)))
}

/// The area of skills.
struct Skills;

impl Domain for Skills {
    const AREA: &'static str = "Skills";
    const ORDER: u16 = 32;
    const DESCRIPTION: &'static str = "A skill is a procedure that an agent loads when it needs it: a SKILL.md with instructions, and files next to it. \
         Agents load published versions; changes go into the draft.";

    fn operations() -> Operations {
        vec![
            Box::new(operations::ListSkills),
            Box::new(operations::CreateSkill),
            Box::new(matching::MatchSkills),
            Box::new(packages::import::ImportSkill),
            Box::new(operations::GetSkill),
            Box::new(operations::UpdateSkill),
            Box::new(operations::DeleteSkill),
            Box::new(operations::DuplicateSkill),
            Box::new(publish::EnableSkill),
            Box::new(publish::DisableSkill),
            Box::new(publish::PublishSkill),
            Box::new(versions::ListSkillVersions),
            Box::new(versions::GetSkillVersion),
            Box::new(versions::RestoreSkillVersion),
            Box::new(file_operations::ListSkillFiles),
            Box::new(file_operations::GetSkillFile),
            Box::new(file_operations::PutSkillFile),
            Box::new(file_operations::DeleteSkillFile),
            Box::new(operations::ListSkillAgents),
            Box::new(packages::export::ExportSkill),
        ]
    }
}
