//! Which skills a text would load, and why.

use crate::draft::row::SkillRow;
use crate::model::SkillStatus;
use crate::schema::{skill_versions, skills};
use crate::terms::{stem, terms};
use diesel::prelude::*;
use fields::terms::tokens;
use model::{AgentId, Caller, Error, Result, SkillId, WorkspaceId, text_enum};
use operation::{Body, Json, State, operation};
use ports::{AgentDirectory, SkillActivation};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, HashMap, HashSet};
use store::Read;
use utoipa::ToSchema;

/// The weight of a word of the names, as a multiple of one of the description.
const WEIGHT_OF_NAMES: f64 = 3.0;

/// The most words of a text that are looked for.
const MOST_WORDS: usize = 200;

text_enum! {
    /// Why a skill would be loaded, or not.
    pub enum SkillMatchReason {
        /// Its name or description has words of the text.
        Words = "words",
        /// Its activation is `always`.
        Always = "always",
        /// The text names it as `/name`.
        Named = "named",
        /// It is disabled.
        Disabled = "disabled",
        /// It was never published.
        NotPublished = "not_published",
        /// The agent does not have it.
        OtherAgent = "other_agent",
        /// Its activation is `manual`, and the text does not name it.
        Manual = "manual",
    }
}

/// A text to match.
#[derive(Debug, Clone, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({ "text": "I want to return my shoes" }))]
pub struct TextToMatch {
    /// The text, such as a message of a customer.
    #[schema(min_length = 1, max_length = 20000, pattern = r"\S")]
    text: String,
    /// The agent whose skills are meant. All skills of the workspace if not given.
    #[serde(default)]
    agent_id: Option<AgentId>,
    /// The most skills in each list. 10 if not given.
    #[schema(minimum = 1, maximum = 100)]
    #[serde(default)]
    limit: Option<usize>,
}

/// The skills that a text would load.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[schema(example = json!({ "words": ["return", "shoes"] }))]
pub struct SkillMatches {
    /// Always `skill_matches`.
    pub object: &'static str,
    /// The words of the text that were looked for.
    pub words: Vec<String>,
    /// The skills that would be loaded, the best first. Those with the activation `always` come first.
    pub skills: Vec<SkillMatch>,
    /// The skills that have words of the text and would not be loaded, the best first.
    pub missing: Vec<SkillMatch>,
}

/// A skill that a text fits.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[schema(example = json!({ "name": "returns", "display_name": "Returns", "version": 2, "score": 2.77, "reason": "words" }))]
pub struct SkillMatch {
    /// The id of the skill.
    pub id: SkillId,
    /// Always `skill_match`.
    pub object: &'static str,
    /// The name.
    pub name: String,
    /// The name for people.
    pub display_name: Option<String>,
    /// The version that was compared. `null` for a draft.
    pub version: Option<i64>,
    /// When an agent loads the skill.
    pub activation: SkillActivation,
    /// The sum of the scores of the words.
    pub score: f64,
    /// The words of the text that the skill has.
    pub words: Vec<MatchedWord>,
    /// Why the skill would be loaded, or not.
    pub reason: SkillMatchReason,
}

/// A word of the text that a skill has.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[schema(example = json!({ "word": "return", "field": "name", "score": 2.08 }))]
pub struct MatchedWord {
    /// The word, as the text has it, in lower case and without accents.
    pub word: String,
    /// `name` for a word of the names, else `description`.
    pub field: &'static str,
    /// Its score: a word that few skills have counts more, and one of the names three times.
    pub score: f64,
}

/// Which skills an agent would load for a given text, and why
///
/// Compares the words of the text with the names and descriptions of published versions, as the search for items does: without
/// case, accents and endings of plurals. A model decides by meaning, so treat the result as a test of the description: a skill
/// whose words are never found is rarely loaded. `missing` lists the skills that fit and would not be loaded, with the reason.
#[operation(post "/skills/match", scope = "skills:read")]
pub fn match_skills(
    read: &mut Read,
    caller: &Caller,
    Body(request): Body<TextToMatch>,
    agents: State<AgentDirectory>,
) -> Result<Json<SkillMatches>> {
    let workspace = caller.workspace_id();
    let pins = match request.agent_id {
        None => None,
        Some(agent) if agents.0.has(read, workspace, agent)? => {
            let all = agents.0.skills(read, workspace)?.into_iter();
            let own = all.filter(|skill| skill.agent == agent);
            Some(own.map(|skill| (skill.pin.skill, skill.pin.version)).collect::<HashMap<_, _>>())
        }
        Some(_) => return Err(Error::not_found("agent").param("agent_id")),
    };
    let text = Text::read(&request.text);
    let mut candidates = candidates(read, workspace, pins.as_ref())?;
    let (mut found, mut missing) = text.matches(&mut candidates);
    let limit = request.limit.unwrap_or(10);
    found.truncate(limit);
    missing.truncate(limit);
    Ok(Json(SkillMatches { object: "skill_matches", words: text.words, skills: found, missing }))
}

/// A skill to compare.
struct Candidate {
    id: SkillId,
    name: String,
    display_name: Option<String>,
    version: Option<i64>,
    activation: SkillActivation,
    terms: String,
    /// What keeps it from being loaded.
    obstacle: Option<SkillMatchReason>,
}

/// A row of a published version.
type Published = (SkillId, SkillStatus, i64, String, Option<String>, SkillActivation, String);

/// The versions that agents would load: the published ones, and those that are pinned.
fn versions(
    read: &mut Read,
    workspace: WorkspaceId,
    pins: Option<&HashMap<SkillId, Option<i64>>>,
) -> Result<BTreeMap<SkillId, Published>> {
    let all = || {
        let of_skill = skill_versions::skill_id.eq(skills::id);
        skills::table
            .inner_join(skill_versions::table.on(of_skill))
            .filter(skills::workspace_id.eq(workspace))
            .select((
                skills::id,
                skills::status,
                skill_versions::version,
                skill_versions::name,
                skill_versions::display_name,
                skill_versions::activation,
                skill_versions::terms,
            ))
    };
    let is_published = skills::published_version.eq(skill_versions::version.nullable());
    let published: Vec<Published> = all().filter(is_published).load(read.connection())?;
    let mut rows: BTreeMap<SkillId, Published> = published.into_iter().map(|row| (row.0, row)).collect();
    for (skill, version) in pins.into_iter().flatten() {
        let Some(version) = version else { continue };
        let pinned = all().filter(skills::id.eq(skill)).filter(skill_versions::version.eq(version));
        let row: Option<Published> = pinned.first(read.connection()).optional()?;
        rows.extend(row.map(|row| (*skill, row)));
    }
    Ok(rows)
}

fn candidates(
    read: &mut Read,
    workspace: WorkspaceId,
    pins: Option<&HashMap<SkillId, Option<i64>>>,
) -> Result<Vec<Candidate>> {
    let is_other = |id: &SkillId| pins.is_some_and(|pins| !pins.contains_key(id));
    let versions = versions(read, workspace, pins)?.into_values();
    let published = versions.map(|(id, status, version, name, display_name, activation, terms)| {
        let obstacle = match status {
            _ if is_other(&id) => Some(SkillMatchReason::OtherAgent),
            SkillStatus::Active => None,
            SkillStatus::Draft | SkillStatus::Inactive => Some(SkillMatchReason::Disabled),
        };
        Candidate { id, name, display_name, version: Some(version), activation, terms, obstacle }
    });
    let mut all: Vec<Candidate> = published.collect();
    let drafts: Vec<SkillRow> = skills::table
        .filter(skills::workspace_id.eq(workspace))
        .filter(skills::published_version.is_null())
        .select(SkillRow::as_select())
        .load(read.connection())?;
    for row in drafts {
        let description = row.facts()?.description.unwrap_or_default();
        all.push(Candidate {
            id: row.id,
            terms: terms(&row.name, row.display_name.as_deref(), &description),
            name: row.name,
            display_name: row.display_name,
            version: None,
            activation: row.activation,
            obstacle: Some(SkillMatchReason::NotPublished),
        });
    }
    Ok(all)
}

/// A text that was taken apart.
struct Text {
    /// The words that say something, each once, in their order.
    words: Vec<String>,
    /// The words by their stems.
    by_stem: HashMap<String, usize>,
    /// The names that the text has behind a slash.
    named: HashSet<String>,
}

impl Text {
    fn read(text: &str) -> Self {
        let (mut words, mut by_stem) = (Vec::new(), HashMap::new());
        for word in tokens(text) {
            let Some(stem) = stem(&word).filter(|_| words.len() < MOST_WORDS) else { continue };
            by_stem.entry(stem).or_insert_with(|| {
                words.push(word);
                words.len() - 1
            });
        }
        let is_end = |letter: char| !letter.is_ascii_alphanumeric() && letter != '-';
        let named = text.split_whitespace().filter_map(|part| part.strip_prefix('/'));
        let named = named.map(|name| name.split(is_end).next().unwrap_or_default().to_owned()).collect();
        Self { words, by_stem, named }
    }

    /// The candidates that would be loaded, and those that fit and would not.
    fn matches(&self, candidates: &mut Vec<Candidate>) -> (Vec<SkillMatch>, Vec<SkillMatch>) {
        let found: Vec<Vec<(usize, bool)>> =
            candidates.iter().map(|candidate| self.places(candidate)).collect();
        let mut having = vec![0_u32; self.words.len()];
        for (place, _) in found.iter().flatten() {
            if let Some(count) = having.get_mut(*place) {
                *count += 1;
            }
        }
        let all = f64::from(u32::try_from(candidates.len()).unwrap_or(u32::MAX));
        let rarity = |place: usize| {
            let having = having.get(place).copied().unwrap_or(1).max(1);
            (1.0 + all / f64::from(having)).ln()
        };
        let (mut loaded, mut missing) = (Vec::new(), Vec::new());
        for (candidate, places) in candidates.drain(..).zip(found) {
            let words = places.into_iter().filter_map(|(place, is_name)| {
                let weight = if is_name { WEIGHT_OF_NAMES } else { 1.0 };
                Some(MatchedWord {
                    word: self.words.get(place)?.clone(),
                    field: if is_name { "name" } else { "description" },
                    score: rounded(weight * rarity(place)),
                })
            });
            let mut words: Vec<MatchedWord> = words.collect();
            words.sort_by(|one, other| other.score.total_cmp(&one.score));
            let (is_loaded, reason) = match (candidate.obstacle, candidate.activation) {
                (Some(obstacle), _) => (false, obstacle),
                _ if self.named.contains(&candidate.name) => (true, SkillMatchReason::Named),
                (None, SkillActivation::Always) => (true, SkillMatchReason::Always),
                (None, SkillActivation::Manual) => (false, SkillMatchReason::Manual),
                (None, SkillActivation::Auto) => (!words.is_empty(), SkillMatchReason::Words),
            };
            if !is_loaded && words.is_empty() && !self.named.contains(&candidate.name) {
                continue;
            }
            let list = if is_loaded { &mut loaded } else { &mut missing };
            list.push(candidate.matched(words, reason));
        }
        loaded.sort_by(by_score);
        missing.sort_by(by_score);
        (loaded, missing)
    }

    /// The words that a candidate has, and whether its names have them.
    fn places(&self, candidate: &Candidate) -> Vec<(usize, bool)> {
        let (names, description) = candidate.terms.split_once('\n').unwrap_or_default();
        let mut places: Vec<(usize, bool)> = Vec::new();
        for (line, is_name) in [(names, true), (description, false)] {
            for term in line.split(' ') {
                if let Some(place) = self.by_stem.get(term)
                    && !places.iter().any(|(other, _)| other == place)
                {
                    places.push((*place, is_name));
                }
            }
        }
        places
    }
}

impl Candidate {
    fn matched(self, words: Vec<MatchedWord>, reason: SkillMatchReason) -> SkillMatch {
        SkillMatch {
            id: self.id,
            object: "skill_match",
            name: self.name,
            display_name: self.display_name,
            version: self.version,
            activation: self.activation,
            score: rounded(words.iter().map(|word| word.score).sum()),
            words,
            reason,
        }
    }
}

/// Skills that are loaded whatever the text says come first, then the best ones.
fn by_score(one: &SkillMatch, other: &SkillMatch) -> std::cmp::Ordering {
    let is_certain =
        |skill: &SkillMatch| matches!(skill.reason, SkillMatchReason::Always | SkillMatchReason::Named);
    is_certain(other)
        .cmp(&is_certain(one))
        .then_with(|| other.score.total_cmp(&one.score))
        .then_with(|| one.id.cmp(&other.id))
}

/// Rounds to hundredths, because more digits say nothing.
fn rounded(score: f64) -> f64 {
    (score * 100.0).round() / 100.0
}
