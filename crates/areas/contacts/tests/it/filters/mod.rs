//! Random contacts and random conditions. A list must find exactly the contacts that a naive model finds, by
//! `filters` and by `filter_tree`, over every system field and every type of field.
//!
//! `SVC_TEST_FILTER_WORLDS` is the number of sets of contacts, 2 by default.

mod model;
pub mod world;

use self::model::{Known, Sort, composed, fits_exactly, fits_tree, says};
use self::world::{Dice, PEOPLE, World};
use serde_json::{Value, json};
use testkit::Kind;
use unicode_normalization::UnicodeNormalization;

const QUESTIONS: usize = 60;

impl World {
    /// Returns a value that a contact has in a field or could have, or `None` for a field that never has one.
    fn value(&self, dice: &mut Dice, known: &Known) -> Option<Value> {
        for _ in 0..4 {
            let value = known.of(dice.one(&self.contacts));
            match &value {
                Value::Null => {}
                Value::Array(elements) if known.sort != Sort::Json => {
                    return Some(dice.one(elements).clone());
                }
                _ => return Some(value),
            }
        }
        None
    }

    /// Builds a well-formed condition of `filters`. Its operand is the text of some contact's value, or nearly.
    fn exact(&self, dice: &mut Dice) -> (usize, bool, Value) {
        let place = dice.below(self.all.len());
        let value = self.value(dice, &self.all[place]).unwrap_or_else(|| "x".into());
        let texts = says(&value);
        let text = if texts.is_empty() { value.to_string() } else { dice.one(&texts).clone() };
        let operand = match dice.below(24) {
            0..=8 => text.into(),
            9 => text.to_uppercase().into(),
            10 => text.to_lowercase().into(),
            11 => format!("{text} ").into(),
            12 => text.nfd().collect::<String>().into(),
            13 | 14 => match serde_json::from_str::<Value>(&text) {
                Ok(plain) if plain.is_number() || plain.is_boolean() => plain,
                _ => text.into(),
            },
            15 => text.parse::<f64>().map_or_else(|_| json!(5.0), |number| json!(number)),
            16 => format!("{text}.0").into(),
            17 => format!("0{text}").into(),
            18 => format!("+{text}").into(),
            19 => text.chars().take(text.chars().count() / 2).collect::<String>().into(),
            20 => format!("{text}:00").into(),
            21 => text.replace('Z', "+00:00").into(),
            22 => "".into(),
            _ => "null".into(),
        };
        (place, dice.flip(), operand)
    }

    /// Builds a condition of a tree.
    fn leaf(&self, dice: &mut Dice) -> Value {
        let known = dice.one(&self.all);
        let ops: &[&str] = match known.sort {
            Sort::Text | Sort::Date | Sort::Select => {
                &["eq", "neq", "gt", "gte", "lt", "lte", "like", "ilike", "in"]
            }
            Sort::Number | Sort::Datetime | Sort::Time => &["eq", "neq", "gt", "gte", "lt", "lte", "in"],
            Sort::Boolean | Sort::Words | Sort::Ids => &["eq", "neq", "in"],
            Sort::Json => &["eq", "neq"],
        };
        let op = *dice.one(ops);
        let nothing = if known.sort == Sort::Json || dice.flip() { Value::Null } else { "".into() };
        let one = |dice: &mut Dice| {
            let value = self.value(dice, known)?;
            Some(match (known.sort, value.as_str()) {
                (Sort::Datetime, Some(text)) if dice.below(3) == 0 => text[..10].into(),
                (Sort::Select, Some(text)) if op != "in" && dice.below(3) == 0 => {
                    known.choices.iter().find(|(key, _)| key == text).unwrap().1.as_str().into()
                }
                (Sort::Text, Some(text)) if dice.below(4) == 0 => text.to_uppercase().into(),
                _ => value,
            })
        };
        // An empty text is not an operand of order comparisons and lists.
        let usable = |value: &Value| value != "";
        let operand = match op {
            "eq" | "neq" if dice.below(4) == 0 => Some(nothing.clone()),
            "in" => Some((0..=dice.below(3)).filter_map(|_| one(dice).filter(usable)).collect()),
            "like" | "ilike" => {
                self.value(dice, known).filter(usable).map(|value| pattern(dice, known, &value))
            }
            _ => one(dice).filter(usable),
        };
        match operand.filter(|operand| operand.as_array().is_none_or(|all| op != "in" || !all.is_empty())) {
            Some(operand) => json!({ "field": known.key, "op": op, "value": operand }),
            None => json!({ "field": known.key, "op": "eq", "value": nothing }),
        }
    }

    fn tree(&self, dice: &mut Dice, levels: usize) -> Value {
        if levels == 0 {
            return self.leaf(dice);
        }
        match dice.below(7) {
            0 | 1 => {
                json!({ "or": (0..=dice.below(2)).map(|_| self.tree(dice, levels - 1)).collect::<Value>() })
            }
            2 => json!({ "not": self.tree(dice, levels - 1) }),
            3 => {
                json!({ "and": (0..=dice.below(2)).map(|_| self.tree(dice, levels - 1)).collect::<Value>() })
            }
            _ => self.leaf(dice),
        }
    }
}

/// Builds a pattern from the shown text of a value.
fn pattern(dice: &mut Dice, known: &Known, value: &Value) -> Value {
    let text = value.as_str().unwrap();
    let shown = known.choices.iter().find(|(key, _)| key == text).map_or(text, |(_, label)| label);
    let letters: Vec<char> = composed(shown).chars().collect();
    let escaped = |letters: &[char]| -> String {
        let escape =
            |letter: &char| if "%_\\".contains(*letter) { format!("\\{letter}") } else { letter.to_string() };
        letters.iter().map(escape).collect()
    };
    let half = letters.len().div_ceil(2);
    let pattern = match dice.below(6) {
        0 => format!("{}%", escaped(&letters[..half])),
        1 => format!("%{}", escaped(&letters[half - 1..])),
        2 => format!("_{}", escaped(&letters[1..])),
        3 => format!("%{}%", escaped(&letters[half - 1..half])),
        4 => escaped(&letters),
        _ => "%".to_owned(),
    };
    if dice.below(3) == 0 { pattern.to_uppercase().into() } else { pattern.into() }
}

/// Builds a malformed condition of `filters`.
fn malformed(dice: &mut Dice) -> Value {
    let all = json!([
        5, null, "$name", [], {}, true, { "value": "Ana" }, { "field": 5, "value": "Ana" }, { "field": null, "value": "Ana" },
        { "field": "nope", "value": "Ana" }, { "field": "$Name", "value": "Ana" }, { "field": " $name", "value": "Ana" },
        { "field": "", "value": "Ana" }, { "field": "Name", "value": "Ana" }, { "field": "data.$name", "value": "Ana" },
        { "field": "match_keys", "value": "x" }, { "field": "segments", "value": "1" }, { "field": "$external_id", "value": "k" },
        { "field": "$name", "op": "gt", "value": "Ana" }, { "field": "$name", "op": "EQ", "value": "Ana" },
        { "field": "$name", "op": 5, "value": "Ana" }, { "field": "$name", "op": null, "value": "Ana" },
        { "field": "$name", "op": "", "value": "Ana" }, { "field": "$name", "value": {} },
        { "field": "$name", "value": { "eq": "Ana" } }, { "field": "$name", "value": ["Ana"] },
        { "field": "$name", "value": null }, { "field": "$name" }, { "field": "$name", "op": "neq" },
        { "field": "$match_keys", "value": "x" }, { "field": "$segments", "value": "1" }, { "field": "$aliases", "value": "x" },
    ]);
    dice.one(all.as_array().unwrap()).clone()
}

/// Encodes a text for a query string.
pub fn encoded(text: &str) -> String {
    let letter = |byte: u8| match byte {
        b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' => char::from(byte).to_string(),
        _ => format!("%{byte:02X}"),
    };
    text.bytes().map(letter).collect()
}

fn ids<'a>(contacts: impl Iterator<Item = &'a Value>) -> Vec<i64> {
    let mut ids: Vec<i64> = contacts.map(|contact| contact["id"].as_i64().unwrap()).collect();
    ids.sort_unstable();
    ids
}

fn worlds() -> u8 {
    std::env::var("SVC_TEST_FILTER_WORLDS").map_or(2, |text| text.parse().unwrap())
}

#[testkit::both]
async fn random_exact_filters_find_what_a_naive_model_finds(kind: Kind) {
    let (mut told_apart, mut by_columns) = (0, 0);
    for seed in 0..worlds() {
        let mut dice = Dice::new(seed);
        let world = World::new(kind, &mut dice, seed % 2 == 0).await;
        for number in 0..QUESTIONS * 3 {
            let mut filters: Vec<Value> = Vec::new();
            let mut sound = Vec::new();
            let mut wrong = Vec::new();
            for place in 0..=dice.below(3) {
                if dice.below(4) == 0 {
                    filters.push(malformed(&mut dice));
                    wrong.push(format!("filters[{place}]"));
                    continue;
                }
                let (known, negated, operand) = world.exact(&mut dice);
                let known = &world.all[known];
                let mut condition = json!({ "field": known.key, "value": operand });
                if negated || dice.flip() {
                    condition["op"] = if negated { "neq" } else { "eq" }.into();
                }
                filters.push(condition);
                sound.push((known, negated, operand));
            }
            let filters = json!(filters).to_string();
            let path = format!("/contacts?limit=100&filters={}", encoded(&filters));
            let answer = world.crm.app.get(&path, &world.crm.key).await;
            let fits = |contact: &&Value| {
                sound.iter().all(|(known, negated, operand)| fits_exactly(contact, known, *negated, operand))
            };
            let expected = ids(world.contacts.iter().filter(fits));
            let found = ids(answer.expect(200).as_array().unwrap().iter());
            let values: Vec<Value> = world
                .contacts
                .iter()
                .map(|contact| {
                    json!([
                        contact["id"],
                        sound.iter().map(|(known, ..)| known.of(contact)).collect::<Value>()
                    ])
                })
                .collect();
            assert_eq!(found, expected, "seed {seed} question {number} {filters}\n{values:?}");
            told_apart += usize::from((1..PEOPLE).contains(&found.len()));
            by_columns += usize::from(answer.headers["x-svc-query-plan"].starts_with("columnar"));
            let warned: Vec<&str> = answer.body["warnings"]
                .as_array()
                .unwrap()
                .iter()
                .map(|one| one["param"].as_str().unwrap())
                .collect();
            assert_eq!(warned, wrong, "{filters}");
            let counted = answer.headers.get("x-svc-ignored-filters").cloned();
            assert_eq!(counted, (!wrong.is_empty()).then(|| wrong.len().to_string()), "{filters}");
            let strict = world.crm.app.get(&format!("{path}&strict=true"), &world.crm.key).await;
            match wrong.first() {
                None => assert_eq!(strict.expect(200), answer.expect(200)),
                Some(param) => {
                    assert_eq!(
                        strict.expect_error(400, "validation_error").as_ref(),
                        Some(param),
                        "{filters}"
                    );
                    // A single error is the response itself; several errors are listed.
                    let told = strict.body["error"]["errors"].as_array().map_or(1, Vec::len);
                    assert_eq!(told, wrong.len(), "{}", strict.text);
                }
            }
        }
        for whole in ["{}", "[{", "5", "\"[]\"", "null", "[]]", r#"{"field":"$name","value":"Ana"}"#] {
            let path = format!("/contacts?limit=100&filters={}", encoded(whole));
            let answer = world.crm.app.get(&path, &world.crm.key).await;
            assert_eq!(answer.expect(200).as_array().unwrap().len(), world.contacts.len(), "{whole}");
            assert_eq!(answer.body["warnings"][0]["param"], "filters", "{whole}");
            assert_eq!(answer.headers["x-svc-ignored-filters"], "1", "{whole}");
            let strict = world.crm.app.get(&format!("{path}&strict=true"), &world.crm.key).await;
            assert_eq!(strict.expect_error(400, "validation_error").as_deref(), Some("filters"), "{whole}");
        }
    }
    assert!(told_apart > 50, "{told_apart} questions told contacts apart");
    assert!(by_columns > 20, "{by_columns} answers came from columns");
}

#[testkit::both]
async fn random_trees_find_what_a_naive_model_finds(kind: Kind) {
    let (mut told_apart, mut by_columns) = (0, 0);
    for seed in 100..100 + worlds() {
        let mut dice = Dice::new(seed);
        let world = World::new(kind, &mut dice, seed % 2 == 0).await;
        for number in 0..QUESTIONS * 3 {
            let levels = dice.below(4);
            let tree = world.tree(&mut dice, levels);
            let mut path = format!("/contacts?limit=100&filter_tree={}", encoded(&tree.to_string()));
            let exact = dice.flip().then(|| world.exact(&mut dice));
            if let Some((known, negated, operand)) = &exact {
                let op = if *negated { "neq" } else { "eq" };
                let filters = json!([{ "field": world.all[*known].key, "op": op, "value": operand }]);
                path = format!("{path}&filters={}", encoded(&filters.to_string()));
            }
            // The client of the tests cannot send longer URLs.
            if path.len() > 1_900 {
                continue;
            }
            let answer = world.crm.app.get(&path, &world.crm.key).await;
            let fits = |contact: &&Value| {
                fits_tree(contact, &tree, &world.all)
                    && exact.as_ref().is_none_or(|(known, negated, operand)| {
                        fits_exactly(contact, &world.all[*known], *negated, operand)
                    })
            };
            let expected = ids(world.contacts.iter().filter(fits));
            let found = ids(answer.expect(200).as_array().unwrap().iter());
            assert_eq!(found, expected, "seed {seed} question {number} {tree} {exact:?}");
            told_apart += usize::from((1..PEOPLE).contains(&found.len()));
            by_columns += usize::from(answer.headers["x-svc-query-plan"].starts_with("columnar"));
        }
    }
    assert!(told_apart > 50, "{told_apart} questions told contacts apart");
    assert!(by_columns > 20, "{by_columns} answers came from columns");
}
