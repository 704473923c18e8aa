//! Scripted functions and skills, in place of those of the groups that keep them.

use model::{Error, FunctionId, InvocationId, JsonText, Result, SkillId, WorkspaceId};
use operation::{BoxFuture, Services};
use ports::{
    CallableFunction, FunctionCall, FunctionEffect, FunctionEnd, FunctionFailure, Functions, InlineCall,
    MissingSkill, OfferedFile, OfferedSkill, SkillActivation, SkillFileText, SkillLibrary, SkillPin,
    SkillScript, Skills, Uncallable, WorkspaceFunctions,
};
use serde_json::{Value, json};
use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use store::Read;
use testkit::{Kind, TestApp};

/// How a scripted call ends.
#[derive(Clone)]
pub enum End {
    /// With this output, as text.
    Output(String),
    Failure(&'static str, Option<u64>),
    /// It cannot be made.
    Refused(&'static str),
    /// Never.
    Hangs,
}

/// The functions and skills of all workspaces, and what was called.
#[derive(Clone, Default)]
pub struct Fakes(Arc<Inner>);

#[derive(Default)]
struct Inner {
    functions: Mutex<Vec<CallableFunction>>,
    is_inactive: Mutex<bool>,
    ends: Mutex<VecDeque<End>>,
    calls: Mutex<Vec<FunctionCall>>,
    skills: Mutex<Vec<OfferedSkill>>,
    scripts: Mutex<Vec<SkillScript>>,
}

impl Fakes {
    pub async fn app(&self, kind: Kind) -> TestApp {
        let functions = WorkspaceFunctions::new(self.clone());
        TestApp::with_services(
            kind,
            Services::default().with(functions).with(SkillLibrary::new(self.clone())),
        )
        .await
    }

    /// Publishes a version of the function 7.
    pub fn publish(&self, effect: FunctionEffect, input_schema: Value) {
        let mut functions = self.0.functions.lock().unwrap();
        let version = i64::try_from(functions.len()).unwrap() + 1;
        functions.push(CallableFunction {
            id: FunctionId(7),
            version,
            name: "price".to_owned(),
            description: format!("Computes prices, version {version}."),
            input_schema,
            output_schema: None,
            effect,
            is_test_only: false,
        });
    }

    pub fn switch_off(&self) {
        *self.0.is_inactive.lock().unwrap() = true;
    }

    pub fn then(&self, end: End) -> &Self {
        self.0.ends.lock().unwrap().push_back(end);
        self
    }

    pub fn calls(&self) -> Vec<FunctionCall> {
        self.0.calls.lock().unwrap().clone()
    }

    pub fn scripts(&self) -> Vec<SkillScript> {
        self.0.scripts.lock().unwrap().clone()
    }

    /// Publishes version 3 of a skill, with two files.
    pub fn add_skill(&self, id: i64, name: &str, activation: SkillActivation, allowed: Option<&[&str]>) {
        let file = |path: &str, runs| OfferedFile { path: path.to_owned(), size: 10, runs };
        let mut skills = self.0.skills.lock().unwrap();
        skills.retain(|skill| skill.id != SkillId(id));
        skills.push(OfferedSkill {
            id: SkillId(id),
            version: 3,
            name: name.to_owned(),
            description: format!("How to treat\n {name}."),
            activation,
            instructions: format!("First ask about {name}.</skill>"),
            allowed_tools: allowed.map(|names| names.iter().map(|name| (*name).to_owned()).collect()),
            files: vec![
                file("references/rules.md", false),
                file("scripts/sum.js", true),
                file("scripts/sum.py", false),
            ],
        });
    }

    pub fn remove_skills(&self) {
        self.0.skills.lock().unwrap().clear();
    }
}

impl Functions for Fakes {
    fn callable(
        &self,
        _: &mut Read,
        _: WorkspaceId,
        id: FunctionId,
        version: Option<i64>,
    ) -> Result<std::result::Result<CallableFunction, Uncallable>> {
        let functions = self.0.functions.lock().unwrap();
        if functions.is_empty() || id != FunctionId(7) {
            return Ok(Err(Uncallable::Missing));
        }
        if *self.0.is_inactive.lock().unwrap() {
            return Ok(Err(Uncallable::Inactive));
        }
        let mut fitting = functions.iter().filter(|one| version.is_none_or(|version| version == one.version));
        Ok(fitting.next_back().cloned().ok_or(Uncallable::NotPublished))
    }

    fn call(&self, call: FunctionCall) -> BoxFuture<Result<FunctionEnd>> {
        self.0.calls.lock().unwrap().push(call);
        let end = self.0.ends.lock().unwrap().pop_front().unwrap_or(End::Output("null".to_owned()));
        Box::pin(async move {
            let result = match end {
                End::Output(text) => Ok(JsonText::printed(text)),
                End::Failure(code, retry_after_ms) => {
                    Err(FunctionFailure { code, message: "It did not work.".to_owned(), retry_after_ms })
                }
                End::Refused(message) => return Err(Error::new(model::Code::InvalidState, message)),
                End::Hangs => std::future::pending().await,
            };
            let now = model::Timestamp::from_millis(1);
            Ok(FunctionEnd { invocation: InvocationId::new(now, &model::SeededRandom::new(1)), result })
        })
    }

    fn run_inline(
        &self,
        call: InlineCall,
    ) -> BoxFuture<Result<std::result::Result<JsonText, FunctionFailure>>> {
        Box::pin(async move { Ok(Ok(call.input)) })
    }
}

impl Skills for Fakes {
    fn offered(&self, _: &mut Read, _: WorkspaceId, pins: &[SkillPin]) -> Result<Vec<OfferedSkill>> {
        let skills = self.0.skills.lock().unwrap();
        let offered = pins.iter().filter_map(|pin| skills.iter().find(|skill| skill.id == pin.skill));
        Ok(offered.cloned().collect())
    }

    fn missing(&self, _: &mut Read, _: WorkspaceId, pins: &[SkillPin]) -> Result<Option<MissingSkill>> {
        let skills = self.0.skills.lock().unwrap();
        let missing = |pin: &SkillPin| {
            let Some(skill) = skills.iter().find(|skill| skill.id == pin.skill) else { return Some(false) };
            pin.version.is_some_and(|version| version > skill.version).then_some(true)
        };
        let first = pins.iter().enumerate().find_map(|(place, pin)| Some((place, missing(pin)?)));
        Ok(first.map(|(place, is_version)| MissingSkill { place, is_version }))
    }

    fn read_file(
        &self,
        _: WorkspaceId,
        _: SkillId,
        version: i64,
        path: String,
    ) -> BoxFuture<Result<SkillFileText>> {
        Box::pin(async move {
            Ok(match path.as_str() {
                "references/rules.md" => SkillFileText::Text(format!("Rules of version {version}.")),
                _ => SkillFileText::Binary,
            })
        })
    }

    fn run_script(&self, script: SkillScript) -> BoxFuture<Result<std::result::Result<JsonText, String>>> {
        let output = json!({ "got": "input" });
        self.0.scripts.lock().unwrap().push(script);
        Box::pin(async move { Ok(Ok(JsonText::of(&output))) })
    }
}
