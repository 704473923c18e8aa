//! The search for operations by plain words: BM25 over the words of each operation, with synonyms.
//!
//! Every word is stemmed lightly and every operation is a small document: its id, area, summary, description and the
//! names of its arguments, with a weight for each part. All documents are in memory, so a search takes microseconds.

use super::catalog::{OperationTool, snake};
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// The weights of the parts of an operation.
const ID: f64 = 4.0;
const AREA: f64 = 1.0;
const SUMMARY: f64 = 3.0;
const DESCRIPTION: f64 = 0.7;
const ARGUMENTS: f64 = 0.3;
/// The usual parameters of BM25.
const K1: f64 = 1.2;
const B: f64 = 0.4;
/// What a synonym counts of a word that was really asked for.
const SYNONYM: f64 = 0.7;
/// What remains of the score of an operation whose id has no word of the query. The id says what an operation does in
/// two or three words, so one that is covered as a whole is what was meant.
const UNCOVERED: f64 = 0.2;

/// Words that say nothing about an operation.
const STOP: &str = "a about all also am an and any are as at be been by can could did do does doing done for from give \
    had has have he her him his how i if in into is it its just lately let like look me my need no not of on once one \
    or our out over past per please really s so some something somebody t tell than that the their them then there \
    these they this those through to too up us want was we were what when where which while who why will with without \
    would you your";

/// What people say, and the words of the contract for it.
const SYNONYMS: &[(&str, &str)] = &[
    ("fix", "update"),
    ("correct", "update"),
    ("teammate", "member assign assignment"),
    ("hand", "assign"),
    ("smaller", "subtask"),
    ("secret", "secret variable"),
    ("disable", "disable deactivate"),
    ("talk", "run message"),
    ("enable", "enable activate"),
    ("subscribe", "webhook endpoint"),
    ("abort", "cancel"),
    ("submit", "create send"),
    ("password", "secret variable"),
    ("setting", "variable"),
    ("sort", "reorder"),
    ("reorder", "reorder order"),
    ("schedule", "create"),
    ("broken", "fail retry"),
    ("price", "item"),
    ("stock", "item"),
    ("conversation", "conversation message"),
    ("add", "create attach"),
    ("new", "create"),
    ("make", "create"),
    ("insert", "create"),
    ("build", "create"),
    ("write", "create put"),
    ("save", "create"),
    ("register", "create"),
    ("set", "create update"),
    ("open", "create reopen"),
    ("show", "list get"),
    ("read", "list get"),
    ("see", "list get"),
    ("display", "list get"),
    ("view", "list get"),
    ("fetch", "get list"),
    ("exist", "list"),
    ("who", "list"),
    ("which", "list"),
    ("what", "get list"),
    ("find", "search list"),
    ("look", "search"),
    ("lookup", "search get"),
    ("change", "update set"),
    ("edit", "update"),
    ("modify", "update"),
    ("rename", "update"),
    ("adjust", "update"),
    ("replace", "set update"),
    ("move", "update move"),
    ("remove", "delete detach"),
    ("erase", "delete"),
    ("throw", "delete"),
    ("drop", "delete"),
    ("cancel", "delete cancel"),
    ("take", "remove"),
    ("clear", "delete empty"),
    ("undo", "restore"),
    ("bring", "restore"),
    ("back", "restore"),
    ("undelete", "restore"),
    ("revert", "restore"),
    ("copy", "duplicate"),
    ("clone", "duplicate"),
    ("download", "export"),
    ("upload", "import upload create"),
    ("load", "import"),
    ("csv", "import export"),
    ("spreadsheet", "import export"),
    ("excel", "import export"),
    ("count", "count stat"),
    ("many", "count bulk"),
    ("number", "count phone"),
    ("several", "bulk"),
    ("mass", "bulk broadcast"),
    ("total", "aggregate"),
    ("sum", "aggregate"),
    ("average", "aggregate"),
    ("revenue", "aggregate"),
    ("increase", "increment"),
    ("decrease", "increment"),
    ("customer", "contact"),
    ("client", "contact"),
    ("person", "contact"),
    ("people", "contact"),
    ("lead", "contact"),
    ("subscriber", "contact"),
    ("user", "contact member"),
    ("colleague", "member assign assignment"),
    ("coworker", "member"),
    ("staff", "team member"),
    ("employee", "team member"),
    ("owner", "assignee assignment"),
    ("own", "assign unassign"),
    ("nobody", "unassign"),
    ("todo", "task"),
    ("to-do", "task"),
    ("job", "task"),
    ("deadline", "due task"),
    ("today", "task due"),
    ("overdue", "summary due"),
    ("finish", "complete"),
    ("done", "complete"),
    ("tick", "complete"),
    ("remind", "create reminder"),
    ("alarm", "reminder"),
    ("table", "collection"),
    ("database", "collection"),
    ("list", "list"),
    ("row", "item"),
    ("record", "item"),
    ("entry", "item"),
    ("product", "item"),
    ("column", "field"),
    ("property", "field"),
    ("attribute", "field"),
    ("structure", "schema"),
    ("bot", "agent"),
    ("chatbot", "agent"),
    ("assistant", "agent"),
    ("ask", "run"),
    ("question", "run"),
    ("prompt", "run instruction"),
    ("workflow", "flow"),
    ("automatically", "automation"),
    ("rule", "automation"),
    ("trigger", "automation trigger"),
    ("live", "publish activate"),
    ("deploy", "publish"),
    ("release", "publish"),
    ("stop", "cancel disable pause"),
    ("off", "disable deactivate"),
    ("on", "enable activate"),
    ("start", "start enable"),
    ("switch", "enable disable"),
    ("try", "test"),
    ("check", "validate test"),
    ("mistake", "validation"),
    ("error", "validation"),
    ("call", "invoke invocation"),
    ("execute", "invoke run"),
    ("code", "function"),
    ("javascript", "function"),
    ("script", "function"),
    ("chat", "conversation message run"),
    ("inbox", "conversation"),
    ("thread", "conversation"),
    ("text", "message"),
    ("whatsapp", "channel message"),
    ("sms", "message"),
    ("reply", "message quick reply"),
    ("answer", "reply message"),
    ("canned", "quick reply"),
    ("snippet", "quick reply"),
    ("human", "operator"),
    ("campaign", "broadcast"),
    ("newsletter", "broadcast"),
    ("bulk", "bulk"),
    ("received", "recipient"),
    ("receive", "recipient"),
    ("audience", "segment"),
    ("group", "segment group"),
    ("label", "label tag"),
    ("history", "activity version"),
    ("happen", "activity event"),
    ("happened", "activity event"),
    ("log", "activity event ledger"),
    ("earlier", "version restore"),
    ("unsubscribe", "opt"),
    ("consent", "opt"),
    ("handoff", "autopilot assignment"),
    ("enrich", "enrich"),
    ("valid", "normalize"),
    ("telephone", "phone"),
    ("picture", "file media"),
    ("image", "file media"),
    ("photo", "file media"),
    ("document", "file"),
    ("attachment", "file"),
    ("pdf", "file"),
    ("money", "billing energy"),
    ("cost", "usage"),
    ("spend", "usage"),
    ("credit", "energy"),
    ("left", "balance"),
    ("remaining", "balance"),
    ("bill", "invoice"),
    ("hour", "business"),
    ("opening", "business"),
    ("company", "business"),
    ("shop", "business"),
    ("account", "me"),
    ("am", "me"),
    ("whoami", "me"),
    ("healthy", "health"),
    ("connected", "health"),
    ("server", "webhook endpoint"),
    ("notify", "webhook"),
    ("callback", "webhook"),
    ("resend", "retry"),
    ("again", "retry reopen"),
    ("stage", "pipeline"),
    ("sale", "pipeline"),
    ("faster", "index"),
    ("speed", "index"),
    ("trash", "trash delete restore"),
    ("archive", "archive"),
    ("default", "default"),
    ("fit", "match"),
    ("suit", "match"),
    ("package", "import"),
    ("zip", "import export"),
    ("dedupe", "duplicate merge"),
    ("duplicates", "duplicate"),
    ("combine", "merge"),
    ("join", "merge"),
    ("upsert", "upsert"),
    ("link", "link"),
    ("connect", "link"),
    ("relate", "link"),
    ("comment", "comment"),
    ("give", "attach assign"),
];

/// An operation that a search has found.
pub(super) struct Wanted {
    /// Its place in the catalog.
    pub(super) place: usize,
    /// How well it fits.
    pub(super) score: f64,
}

/// The words of all operations.
pub(super) struct Search {
    /// The operations with a word, and the weight of the word in each.
    postings: HashMap<String, Vec<(usize, f64)>>,
    lengths: Vec<f64>,
    /// The words of each id.
    ids: Vec<Vec<String>>,
    average: f64,
    synonyms: HashMap<String, Vec<String>>,
    stop: BTreeSet<String>,
}

impl Search {
    /// Reads the words of all operations.
    pub(super) fn new(operations: &[OperationTool]) -> Self {
        let stop: BTreeSet<String> = STOP.split_whitespace().map(str::to_owned).collect();
        let mut postings: HashMap<String, Vec<(usize, f64)>> = HashMap::new();
        let mut lengths = Vec::with_capacity(operations.len());
        let ids =
            operations.iter().map(|tool| split(&snake(tool.meta.id)).iter().map(|word| stem(word)).collect());
        for (place, tool) in operations.iter().enumerate() {
            let weights = weights(tool, &stop);
            lengths.push(weights.values().sum());
            for (word, weight) in weights {
                postings.entry(word).or_default().push((place, weight));
            }
        }
        let count = u32::try_from(lengths.len().max(1)).map_or(1.0, f64::from);
        let average = lengths.iter().sum::<f64>() / count;
        let synonyms = SYNONYMS
            .iter()
            .map(|(word, others)| (stem(word), others.split_whitespace().map(stem).collect::<Vec<_>>()));
        Self { postings, lengths, ids: ids.collect(), average, synonyms: synonyms.collect(), stop }
    }

    /// Returns the operations that fit best, for which `is_wanted` holds.
    pub(super) fn find(&self, query: &str, limit: usize, is_wanted: impl Fn(usize) -> bool) -> Vec<Wanted> {
        // A query is a sentence. What is longer is cut, so that a search always takes as little time.
        let query: String = query.chars().take(500).collect();
        let mut scores = vec![0.0; self.lengths.len()];
        let words = self.words_of(&query);
        for (word, weight) in &words {
            let Some(found) = self.postings.get(word) else { continue };
            let (all, having) = (count(self.lengths.len()), count(found.len()));
            let rarity = ((all - having + 0.5) / (having + 0.5) + 1.0).ln();
            for (place, frequency) in found {
                let length = self.lengths.get(*place).copied().unwrap_or(self.average);
                let norm = K1 * (1.0 - B + B * length / self.average.max(1.0));
                if let Some(score) = scores.get_mut(*place) {
                    *score += weight * rarity * frequency * (K1 + 1.0) / (frequency + norm);
                }
            }
        }
        for (score, id) in scores.iter_mut().zip(&self.ids) {
            let covered = count(id.iter().filter(|word| words.contains_key(*word)).count());
            *score *= UNCOVERED + (1.0 - UNCOVERED) * covered / count(id.len().max(1));
        }
        let places =
            scores.into_iter().enumerate().filter(|(place, score)| *score > 0.0 && is_wanted(*place));
        let mut found: Vec<Wanted> = places.map(|(place, score)| Wanted { place, score }).collect();
        found.sort_by(|a, b| b.score.total_cmp(&a.score).then(a.place.cmp(&b.place)));
        found.truncate(limit);
        found
    }

    /// The words of a query with their weights. A word that is asked for and is a synonym of another counts once.
    fn words_of(&self, query: &str) -> BTreeMap<String, f64> {
        let mut words: BTreeMap<String, f64> = BTreeMap::new();
        for raw in split(&query.to_lowercase().replace("to-do", "todo")) {
            let word = stem(&raw);
            for other in self.synonyms.get(&word).into_iter().flatten() {
                let weight = words.entry(other.clone()).or_insert(0.0);
                *weight = weight.max(SYNONYM);
            }
            if !self.stop.contains(&raw) {
                words.insert(word, 1.0);
            }
        }
        words
    }
}

fn weights(tool: &OperationTool, stop: &BTreeSet<String>) -> BTreeMap<String, f64> {
    let mut weights: BTreeMap<String, f64> = BTreeMap::new();
    let mut add = |text: &str, weight: f64| {
        for raw in split(text).into_iter().filter(|word| !stop.contains(word) || word == "me") {
            *weights.entry(stem(&raw)).or_insert(0.0) += weight;
        }
    };
    add(&snake(tool.meta.id), ID);
    add(tool.area, AREA);
    add(tool.meta.summary, SUMMARY);
    add(tool.meta.description, DESCRIPTION);
    for argument in &tool.arguments {
        add(&argument.name, ARGUMENTS);
    }
    weights
}

fn count(number: usize) -> f64 {
    u32::try_from(number).map_or(f64::MAX, f64::from)
}

/// Splits text into words of letters and digits, in lower case.
fn split(text: &str) -> Vec<String> {
    let words = text.split(|letter: char| !letter.is_alphanumeric()).filter(|word| !word.is_empty());
    words.map(str::to_lowercase).collect()
}

/// Removes the usual endings of English words.
fn stem(word: &str) -> String {
    let endings = [("ies", "y"), ("sses", "ss"), ("ing", ""), ("ed", ""), ("es", "e"), ("s", "")];
    for (ending, instead) in endings {
        let Some(rest) = word.strip_suffix(ending) else { continue };
        if rest.len() >= 3 && !(ending == "s" && (rest.ends_with('s') || rest.ends_with('u'))) {
            return trimmed(&format!("{rest}{instead}"));
        }
    }
    trimmed(word)
}

/// `create`, `created` and `creating` have one stem.
fn trimmed(word: &str) -> String {
    word.strip_suffix('e').filter(|rest| rest.len() >= 3).unwrap_or(word).to_owned()
}
