//! Nodes that read and write items of collections.

use super::calls::{Request, done, done_at, text_of};
use super::{NodeCall, NodeFailure, Work};
use flow_graphs::config::{self, FlowItemOperation, WriteItem};
use ports::item_query;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

/// The longest text that is searched for, in characters.
const LONGEST_SEARCH: usize = 500;
/// The most words that are searched for one by one.
const MOST_WORDS: usize = 10;
/// Words with fewer letters say nothing about what is looked for.
const SHORTEST_WORD: usize = 3;

/// Finds items of a collection.
pub(super) async fn find_items(call: &NodeCall) -> Result<Work, NodeFailure> {
    let config: config::FindItems = call.config()?;
    let mut query = Map::new();
    if let Some(filter) = config.filter.filter(|filter| !filter.is_null()) {
        query.insert(if is_tree(&filter) { "filter_tree" } else { "filter" }.to_owned(), filter);
    }
    query.insert("sort".to_owned(), config.sort.into());
    query.insert("limit".to_owned(), config.limit.into());
    let wrong =
        |message: String| NodeFailure::new("validation_error", format!("The filter is wrong: {message}."));
    let pairs = item_query(Value::Object(query)).map_err(wrong)?;
    let items =
        call.call("listItems", Request::default().at("collectionId", config.collection_id).queries(pairs));
    let items = items.await?;
    let count = items.as_array().map_or(0, Vec::len);
    let port = if count == 0 { "empty" } else { "next" };
    Ok(done_at(port, json!({ "items": items, "count": count })))
}

/// Returns whether a filter is a tree of conditions, and not a list of values by key of field.
fn is_tree(filter: &Value) -> bool {
    let has = |name: &str| filter.get(name).is_some();
    has("and") || has("or") || has("not") || (has("field") && has("op"))
}

/// Creates, changes or deletes an item.
pub(super) async fn write_item(call: &NodeCall) -> Result<Work, NodeFailure> {
    let config: WriteItem = call.config()?;
    let item = match config.op {
        FlowItemOperation::Create => {
            let mut body = json!({ "data": config.values, "typecast": config.typecast });
            set(&mut body, "external_key", config.external_key.as_deref());
            call.call("createItem", request(&config).body(body)).await?
        }
        FlowItemOperation::Update => {
            let mut body = json!({ "data": config.values, "typecast": config.typecast });
            set(&mut body, "external_key", config.external_key.as_deref());
            call.call("updateItem", request(&config).at("itemId", item_id(&config)?).body(body)).await?
        }
        FlowItemOperation::Upsert => upsert(call, &config).await?,
        FlowItemOperation::Delete => {
            call.call("deleteItem", request(&config).at("itemId", item_id(&config)?)).await?
        }
    };
    Ok(done(item))
}

fn request(config: &WriteItem) -> Request {
    Request::default().at("collectionId", config.collection_id)
}

fn set(body: &mut Value, name: &str, value: Option<&str>) {
    if let (Some(body), Some(value)) = (body.as_object_mut(), value) {
        body.insert(name.to_owned(), value.into());
    }
}

fn item_id(config: &WriteItem) -> Result<String, NodeFailure> {
    let id = config.item_id.as_ref().map(text_of).filter(|id| !id.is_empty());
    id.ok_or_else(|| {
        NodeFailure::new("validation_error", "The setting `item_id` is required for this operation.")
    })
}

/// Changes the item that has the values of the key, or creates one.
async fn upsert(call: &NodeCall, config: &WriteItem) -> Result<Value, NodeFailure> {
    let key = config.key.as_deref().filter(|key| !key.is_empty());
    let key = key
        .ok_or_else(|| NodeFailure::new("validation_error", "The setting `key` is required for `upsert`."))?;
    let mut row = json!({ "data": config.values });
    set(&mut row, "external_key", config.external_key.as_deref());
    let body = json!({ "match_on": [key], "typecast": config.typecast, "rows": [row] });
    let report = call.call("bulkUpsertItems", request(config).body(body)).await?;
    let result = report.pointer("/results/0").cloned().unwrap_or_default();
    let id = result.get("id").map(text_of).unwrap_or_default();
    // A change of nothing shows the item as it is now.
    let shown = request(config).at("itemId", id).body(json!({})).part("show");
    let mut item = call.call("updateItem", shown).await?;
    if let Some(item) = item.as_object_mut() {
        item.insert("upsert_status".to_owned(), result.get("status").cloned().unwrap_or_default());
    }
    Ok(item)
}

/// Finds passages of a collection that answer a question: items that have all words of it, or else those that have most.
pub(super) async fn search_collection(call: &NodeCall) -> Result<Work, NodeFailure> {
    let config: config::SearchCollection = call.config()?;
    let text: String = config.text.chars().take(LONGEST_SEARCH).collect();
    let mut hits = Hits::default();
    hits.add(found(call, &config, &text).await?, 1.0);
    if hits.0.is_empty() {
        let words = words(&text);
        let share = 1.0 / f64::from(u32::try_from(words.len().max(1)).unwrap_or(1));
        for word in &words {
            hits.add(found(call, &config, word).await?, share);
        }
    }
    Ok(done(json!({ "passages": hits.passages(&config) })))
}

async fn found(
    call: &NodeCall,
    config: &config::SearchCollection,
    text: &str,
) -> Result<Vec<Value>, NodeFailure> {
    let request = Request::default().at("collectionId", config.collection_id);
    let found = call.call("searchItems", request.query("q", text).query("limit", 50)).await?;
    Ok(found.as_array().cloned().unwrap_or_default())
}

/// The words of a text, without the short ones.
fn words(text: &str) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    for word in text.split(|letter: char| !letter.is_alphanumeric()) {
        let word = word.to_lowercase();
        if word.chars().count() >= SHORTEST_WORD && !words.contains(&word) && words.len() < MOST_WORDS {
            words.push(word);
        }
    }
    words
}

/// Items with their scores, by id.
#[derive(Default)]
struct Hits(BTreeMap<i64, (f64, Value)>);

impl Hits {
    fn add(&mut self, items: Vec<Value>, score: f64) {
        for item in items {
            let Some(id) = item.get("id").and_then(Value::as_i64) else { continue };
            self.0.entry(id).or_insert((0.0, item)).0 += score;
        }
    }

    /// The best first.
    fn passages(self, config: &config::SearchCollection) -> Vec<Value> {
        let mut hits: Vec<(f64, Value)> =
            self.0.into_values().filter(|(score, _)| *score + f64::EPSILON >= config.min_score).collect();
        hits.sort_by(|(one, _), (other, _)| other.total_cmp(one));
        hits.truncate(usize::try_from(config.top_k).unwrap_or_default());
        hits.into_iter().map(|(score, item)| passage(score, &item)).collect()
    }
}

/// An item as a text that a model or a person can read.
fn passage(score: f64, item: &Value) -> Value {
    let values = item.get("data").and_then(Value::as_object);
    let lines = values.into_iter().flatten().filter(|(_, value)| !value.is_null());
    let lines: Vec<String> = lines.map(|(key, value)| format!("{key}: {}", text_of(value))).collect();
    let score = (score.min(1.0) * 1000.0).round() / 1000.0;
    json!({ "item_id": item.get("id"), "text": lines.join("\n"), "score": score })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn trees_are_told_from_values() {
        assert!(is_tree(&json!({ "or": [] })));
        assert!(is_tree(&json!({ "field": "status", "op": "eq", "value": "open" })));
        assert!(!is_tree(&json!({ "status": "open" })));
        assert!(!is_tree(&json!({ "field": "a field with this key" })));
    }

    #[test]
    fn words_of_a_question() {
        assert_eq!(words("Is there a wooden train, a WOODEN one?"), ["there", "wooden", "train", "one"]);
        assert_eq!(words("¿Cuánto cuesta?"), ["cuánto", "cuesta"]);
        assert_eq!(words("a"), [""; 0]);
    }

    #[test]
    fn the_best_passages_come_first() {
        let item = |id: i64| json!({ "id": id, "data": { "name": "Train", "stock": 3, "note": null } });
        let mut hits = Hits::default();
        hits.add(vec![item(1), item(2)], 0.4);
        hits.add(vec![item(2)], 0.4);
        let config = json!({ "collection_id": 1, "text": "x", "top_k": 5, "min_score": 0.5 });
        let passages = hits.passages(&serde_json::from_value(config).unwrap());
        assert_eq!(passages, [json!({ "item_id": 2, "text": "name: Train\nstock: 3", "score": 0.8 })]);
    }
}
