//! The library of skills, for runs and agents.

use crate::draft::facts::{Facts, stored};
use crate::draft::row::VersionRow;
use crate::files::contents::{self, DOCUMENT};
use crate::files::scripts::{runs, unavailable};
use crate::model::SkillStatus;
use crate::schema::{skill_versions, skills};
use diesel::prelude::*;
use files::Files;
use model::{JsonText, Result, SkillId, WorkspaceId};
use operation::BoxFuture;
use ports::{MissingSkill, OfferedFile, OfferedSkill, SkillFileText, SkillPin, SkillScript, Skills};
use sandbox::{Call, Effect, Key, NoHost, Program, Sandbox};
use std::collections::HashMap;
use std::sync::Arc;
use store::{Db, Read};

/// The implementation of [`Skills`].
pub(crate) struct Library {
    pub(crate) db: Db,
    pub(crate) objects: Arc<Files>,
    pub(crate) sandbox: Sandbox,
}

impl Skills for Library {
    fn offered(
        &self,
        read: &mut Read,
        workspace: WorkspaceId,
        pins: &[SkillPin],
    ) -> Result<Vec<OfferedSkill>> {
        if pins.is_empty() {
            return Ok(Vec::new());
        }
        let ids: Vec<SkillId> = pins.iter().map(|pin| pin.skill).collect();
        let published: HashMap<SkillId, Option<i64>> = skills::table
            .filter(skills::workspace_id.eq(workspace))
            .filter(skills::id.eq_any(ids))
            .filter(skills::status.eq(SkillStatus::Active))
            .select((skills::id, skills::published_version))
            .load::<(SkillId, Option<i64>)>(read.connection())?
            .into_iter()
            .collect();
        let mut offered = Vec::new();
        for pin in pins {
            let Some(version) = published.get(&pin.skill).and_then(|published| pin.version.or(*published))
            else {
                continue;
            };
            if let Some(row) = version_row(read, workspace, pin.skill, version)? {
                offered.push(offer(read, row)?);
            }
        }
        Ok(offered)
    }

    fn missing(
        &self,
        read: &mut Read,
        workspace: WorkspaceId,
        pins: &[SkillPin],
    ) -> Result<Option<MissingSkill>> {
        let ids: Vec<SkillId> = pins.iter().map(|pin| pin.skill).collect();
        let known: Vec<SkillId> = skills::table
            .filter(skills::workspace_id.eq(workspace))
            .filter(skills::id.eq_any(ids))
            .select(skills::id)
            .load(read.connection())?;
        for (place, pin) in pins.iter().enumerate() {
            if !known.contains(&pin.skill) {
                return Ok(Some(MissingSkill { place, is_version: false }));
            }
            if let Some(version) = pin.version
                && version_row(read, workspace, pin.skill, version)?.is_none()
            {
                return Ok(Some(MissingSkill { place, is_version: true }));
            }
        }
        Ok(None)
    }

    fn read_file(
        &self,
        workspace: WorkspaceId,
        skill: SkillId,
        version: i64,
        path: String,
    ) -> BoxFuture<Result<SkillFileText>> {
        let (db, objects) = (self.db.clone(), self.objects.clone());
        Box::pin(async move {
            let bytes = file_bytes(&db, &objects, workspace, skill, version, path).await?;
            Ok(match bytes.map(String::from_utf8) {
                None => SkillFileText::Missing,
                Some(Ok(text)) if !text.contains('\0') => SkillFileText::Text(text),
                Some(_) => SkillFileText::Binary,
            })
        })
    }

    fn run_script(&self, script: SkillScript) -> BoxFuture<Result<std::result::Result<JsonText, String>>> {
        let (db, objects, sandbox) = (self.db.clone(), self.objects.clone(), self.sandbox.clone());
        Box::pin(async move {
            if !runs(&script.path) {
                return Ok(Err("Only JavaScript in scripts/ is run here.".to_owned()));
            }
            let SkillScript { workspace, skill, version, path, input, livemode, patience } = script;
            let named = format!("skill-{skill}-{version}-{path}");
            let source = file_bytes(&db, &objects, workspace, skill, version, path).await?;
            let Some(Ok(source)) = source.map(String::from_utf8) else {
                return Ok(Err("The skill has no such script.".to_owned()));
            };
            let key = Key { workspace: workspace.to_string(), version: named };
            let call = Call {
                livemode,
                effect: Effect::Read,
                strict: true,
                deadline: Some(patience),
                ..Call::new(input.as_str())
            };
            match sandbox.call(&key, &Program::new(&source), &call, &NoHost).await {
                Ok(outcome) => {
                    Ok(outcome.result.map(JsonText::printed).map_err(|failure| failure.to_string()))
                }
                Err(
                    error @ (sandbox::Error::Given { .. }
                    | sandbox::Error::Interrupted
                    | sandbox::Error::Busy),
                ) => Ok(Err(format!("The script was not run: {error}."))),
                Err(error) => Err(unavailable(error)),
            }
        })
    }
}

fn version_row(
    read: &mut Read,
    workspace: WorkspaceId,
    skill: SkillId,
    version: i64,
) -> Result<Option<VersionRow>> {
    Ok(skill_versions::table
        .find((skill, version))
        .filter(skill_versions::workspace_id.eq(workspace))
        .select(VersionRow::as_select())
        .first(read.connection())
        .optional()?)
}

fn offer(read: &mut Read, row: VersionRow) -> Result<OfferedSkill> {
    let facts: Facts = row.fields.parse()?;
    let document = stored(&contents::document(read, row.skill_id, row.version)?)?;
    let files = contents::all(read, row.skill_id, row.version)?.into_iter();
    Ok(OfferedSkill {
        id: row.skill_id,
        version: row.version,
        name: row.name,
        description: facts.description.unwrap_or_default(),
        activation: row.activation,
        instructions: document.body().to_owned(),
        allowed_tools: facts.allowed_tools,
        files: files
            .filter(|file| file.path != DOCUMENT)
            .map(|file| OfferedFile { runs: runs(&file.path), path: file.path, size: file.size })
            .collect(),
    })
}

/// The bytes of a file of a version.
async fn file_bytes(
    db: &Db,
    objects: &Files,
    workspace: WorkspaceId,
    skill: SkillId,
    version: i64,
    path: String,
) -> Result<Option<Vec<u8>>> {
    let found = db.read(move |read| {
        if version_row(read, workspace, skill, version)?.is_none() {
            return Ok(None);
        }
        let Some(file) = contents::one(read, skill, version, &path)? else { return Ok(None) };
        contents::content(read, skill, &file.sha256).map(Some)
    });
    match found.await? {
        Some(content) => content.load(objects).await.map(Some),
        None => Ok(None),
    }
}
