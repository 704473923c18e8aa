//! What a search looks for: words, the beginnings of words, phrases, in any field or in one.

use crate::checking::value;
use crate::definitions::field::Field;
use crate::definitions::set::FieldSet;
use crate::record::Record;
use crate::search::terms::{Wanted, each_token, tokens, wanted, wanted_phrase};
use crate::values::kind::FieldType;
use crate::values::phone;
use model::{CollectionId, FieldId};
use serde_json::Value;

/// Everything that a record must contain.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Words(pub Vec<Clause>);

/// Something that a record must contain.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Clause {
    /// Where; anywhere where it is `None`.
    pub field: Option<FieldId>,
    /// The words, one behind the other.
    pub words: Vec<String>,
    /// Whether the last word may go on.
    pub open: bool,
}

/// How often what a search looks for occurs in a record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Occurrences {
    /// Of each clause, weighted.
    pub counts: Vec<usize>,
    /// How many words the record has.
    pub length: usize,
}

/// More are not looked for.
const MOST_CLAUSES: usize = 20;

impl Words {
    /// Reads what a caller looks for: words, `"phrases"`, and `field:` before either. The last word may be the beginning
    /// of one. Whatever else there is parts words, so that no text is a mistake.
    ///
    /// Where records have a telephone number of their own, a text that is written like one is looked for as one.
    pub fn read(fields: &FieldSet, text: &str) -> Self {
        let has_number = fields.iter().any(|field| field.kind == FieldType::Phone && field.is_built_in());
        if let Some(digits) = Some(text).filter(|_| has_number && !is_day(text)).and_then(phone::dialled) {
            return Self(vec![Clause { field: None, words: vec![digits], open: true }]);
        }
        let mut clauses: Vec<Clause> = Vec::new();
        let mut rest = text.trim();
        while !rest.is_empty() {
            let (field, behind) = named_field(fields, rest);
            let (quoted, chunk, behind) =
                match behind.strip_prefix('"').and_then(|inner| inner.split_once('"')) {
                    Some((phrase, behind)) => (true, phrase, behind),
                    None => {
                        let end = behind.find(char::is_whitespace).unwrap_or(behind.len());
                        let (chunk, behind) = behind.split_at(end);
                        (false, chunk, behind)
                    }
                };
            rest = behind.trim_start();
            if quoted {
                let Wanted { words, open } = wanted_phrase(chunk);
                clauses.push(Clause { field, words, open });
                continue;
            }
            let is_last = rest.is_empty();
            let wanted = wanted(chunk);
            let last = wanted.len();
            clauses.extend(wanted.into_iter().enumerate().map(|(place, one)| Clause {
                field,
                words: one.words,
                open: one.open || (is_last && place + 1 == last),
            }));
        }
        clauses.retain(|clause| !clause.words.is_empty());
        clauses.truncate(MOST_CLAUSES);
        Self(clauses)
    }

    /// The same words without their endings, as the beginnings of words: `trains` becomes `train`, which also finds `training`.
    /// Phrases and words without an ending stay as they are. `None` if no word has an ending.
    pub fn stems(&self) -> Option<Self> {
        let stem = |clause: &Clause| match clause.words.as_slice() {
            [word] => match without_ending(word) {
                Some(stem) => Clause { words: vec![stem.to_owned()], open: true, ..clause.clone() },
                None => clause.clone(),
            },
            _ => clause.clone(),
        };
        let stems = Self(self.0.iter().map(stem).collect());
        (&stems != self).then_some(stems)
    }

    /// Whether a record contains all of it. Nothing is found by signs alone.
    pub fn fit(&self, fields: &FieldSet, record: Record<'_>) -> bool {
        !self.0.is_empty() && self.occurrences(fields, record, |_| 1).is_some()
    }

    /// How often it occurs in a record, where each occurrence counts as `weight` says of its field; `None` where the record
    /// does not contain all of it.
    pub fn occurrences(
        &self,
        fields: &FieldSet,
        record: Record<'_>,
        weight: impl Fn(&Field) -> usize,
    ) -> Option<Occurrences> {
        let Self(clauses) = self;
        let mut occurrences = Occurrences { counts: vec![0; clauses.len()], length: 0 };
        let has_phrase = clauses.iter().any(|clause| clause.words.len() > 1);
        for field in searchable(fields) {
            let weight = weight(field);
            let Occurrences { counts, length } = &mut occurrences;
            let is_in = |clause: &Clause| clause.field.is_none_or(|id| id == field.id);
            let mut count = |times: &dyn Fn(&Clause) -> usize| {
                let counts = counts.iter_mut().zip(clauses).filter(|(_, clause)| is_in(clause));
                counts.for_each(|(count, clause)| *count += weight * times(clause));
            };
            if has_phrase {
                let tokens = field_tokens(field, record);
                *length += tokens.len();
                count(&|clause| clause.count_in(&tokens));
                continue;
            }
            for text in field_texts(field, record) {
                each_token(text, |token| {
                    *length += 1;
                    count(&|clause| usize::from(clause.is_word(token)));
                });
            }
        }
        occurrences.counts.iter().all(|count| *count > 0).then_some(occurrences)
    }

    /// As FTS5 asks for it.
    pub fn fts5(&self, collection: CollectionId) -> String {
        let prefix = crate::search::terms::prefix(collection);
        let clause = |clause: &Clause| {
            let words: Vec<String> = clause.words.iter().map(|word| format!("{prefix}{word}")).collect();
            format!("\"{}\"{}", words.join(" "), if clause.open { "*" } else { "" })
        };
        self.0.iter().map(clause).collect::<Vec<_>>().join(" AND ")
    }

    /// As PostgreSQL asks for it.
    pub fn tsquery(&self, collection: CollectionId) -> String {
        let prefix = crate::search::terms::prefix(collection);
        let clause = |clause: &Clause| {
            let words: Vec<String> = clause.words.iter().map(|word| format!("'{prefix}{word}'")).collect();
            format!("({}{})", words.join(" <-> "), if clause.open { ":*" } else { "" })
        };
        self.0.iter().map(clause).collect::<Vec<_>>().join(" & ")
    }
}

/// Endings of plurals in the languages that have them at the end of a word, the longest first, each with the fewest letters
/// that must be left to say what is looked for.
const ENDINGS: [(&str, usize); 4] = [("ies", 4), ("es", 3), ("en", 4), ("s", 3)];

/// A word without its ending, if it has one. Words are in lower case and without accents.
fn without_ending(word: &str) -> Option<&str> {
    ENDINGS.iter().find_map(|(ending, shortest)| {
        let stem = word.strip_suffix(ending)?;
        (stem.len() >= *shortest && stem.bytes().all(|byte| byte.is_ascii_lowercase())).then_some(stem)
    })
}

impl Clause {
    /// Whether it is one word, and this is it.
    fn is_word(&self, token: &str) -> bool {
        let [word] = self.words.as_slice() else { return false };
        if self.open { token.starts_with(word) } else { token == word }
    }

    /// How often it stands in a text.
    pub fn count_in(&self, tokens: &[String]) -> usize {
        let Some((last, firsts)) = self.words.split_last() else { return 0 };
        let fits = |window: &&[String]| {
            let Some((end, begin)) = window.split_last() else { return false };
            begin == firsts && (end == last || (self.open && end.starts_with(last.as_str())))
        };
        tokens.windows(self.words.len()).filter(fits).count()
    }
}

/// The fields that search looks at.
pub fn searchable(fields: &FieldSet) -> impl Iterator<Item = &Field> {
    fields.iter().filter(|field| field.kind.is_searchable() && !field.hidden)
}

/// The texts of a field of a record that search looks at: of choices their labels, of telephone numbers also their ends.
pub fn field_texts<'a>(field: &'a Field, record: Record<'a>) -> Vec<&'a str> {
    let label = |key: &'a str| field.options.choice(key).map_or(key, |(_, choice)| choice.label.as_str());
    match (field.kind, record.value(field)) {
        (FieldType::Select, Some(Value::String(key))) => vec![label(key)],
        (FieldType::MultiSelect | FieldType::Tags, Some(Value::Array(keys))) => {
            keys.iter().filter_map(Value::as_str).map(label).collect()
        }
        (FieldType::Phone, Some(Value::String(text))) => {
            std::iter::once(text.as_str()).chain(phone::ends(text)).collect()
        }
        (_, Some(Value::String(text))) => vec![text],
        _ => Vec::new(),
    }
}

/// The words of a field of a record.
fn field_tokens(field: &Field, record: Record<'_>) -> Vec<String> {
    field_texts(field, record).into_iter().flat_map(tokens).collect()
}

/// Whether a text is written like a day, such as `2026-11-21`.
fn is_day(text: &str) -> bool {
    value::date(text.trim()).is_some()
}

/// The searchable field that a text names at its beginning, and what stands behind.
fn named_field<'a>(fields: &FieldSet, text: &'a str) -> (Option<FieldId>, &'a str) {
    let named = text.split_once(':').and_then(|(name, behind)| {
        let field = fields.named(name).filter(|field| field.kind.is_searchable())?;
        let goes_on = behind.chars().next().is_some_and(|letter| !letter.is_whitespace());
        goes_on.then_some((Some(field.id), behind))
    });
    named.unwrap_or((None, text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn endings_are_those_of_words_that_are_long_enough() {
        for (word, stem) in [
            ("trains", Some("train")),
            ("batteries", Some("batter")),
            ("trenes", Some("tren")),
            ("lampen", Some("lamp")),
            ("bus", None),
            ("cars", Some("car")),
            ("boxes", Some("box")),
            ("cities", Some("citi")),
            ("pen", None),
            ("train", None),
            ("a1234s", None),
        ] {
            assert_eq!(without_ending(word), stem, "{word}");
        }
    }
    use crate::FieldType as Type;
    use crate::definitions::sample::fields;
    use crate::{ColumnValue, Columns, Data, SystemColumn};

    #[test]
    fn what_is_looked_for_is_taken_apart() {
        let fields =
            fields(vec![("name", Type::Text, Default::default()), ("n", Type::Number, Default::default())]);
        let clause = |field: Option<i64>, words: &[&str], open| Clause {
            field: field.map(FieldId),
            words: words.iter().map(|word| (*word).to_owned()).collect(),
            open,
        };
        for (text, clauses) in [
            ("Red sho", vec![clause(None, &["red"], false), clause(None, &["sho"], true)]),
            ("\"red shoe\" x", vec![clause(None, &["red", "shoe"], false), clause(None, &["x"], true)]),
            ("x \"red\"", vec![clause(None, &["x"], false), clause(None, &["red"], false)]),
            ("name:red", vec![clause(Some(1), &["red"], true)]),
            ("name:\"red shoe\"", vec![clause(Some(1), &["red", "shoe"], false)]),
            ("n:5", vec![clause(None, &["n"], false), clause(None, &["5"], true)]),
            ("name: red", vec![clause(None, &["name"], false), clause(None, &["red"], true)]),
            ("\"open", vec![clause(None, &["open"], true)]),
            ("'*:() AND \\", vec![clause(None, &["and"], false)]),
            ("\"\" -- &", vec![]),
            ("王小明 订", vec![clause(None, &["王小", "小明"], false), clause(None, &["订"], true)]),
            (
                "订 name:\"red 订单\"",
                vec![clause(None, &["订"], true), clause(Some(1), &["red", "订单"], false)],
            ),
        ] {
            assert_eq!(Words::read(&fields, text).0, clauses, "{text}");
        }
        let words = Words::read(&fields, "\"a b\" c");
        assert_eq!(words.fts5(CollectionId(7)), "\"7xa 7xb\" AND \"7xc\"*");
        assert_eq!(words.tsquery(CollectionId(7)), "('7xa' <-> '7xb') & ('7xc':*)");
    }

    struct NoColumns;

    impl Columns for NoColumns {
        fn id(&self) -> i64 {
            7
        }
        fn column(&self, _: SystemColumn) -> ColumnValue<'_> {
            ColumnValue::Empty
        }
        fn has_cut_relations(&self) -> bool {
            false
        }
    }

    #[test]
    fn occurrences_are_weighted_by_field() {
        let fields = fields(vec![
            ("name", Type::Text, Default::default()),
            ("text", Type::LongText, Default::default()),
        ]);
        let data = Data::from_iter([
            ("name".to_owned(), "Red SHOE, red".into()),
            ("text".to_owned(), "Shoes are not red; été 我的订单".into()),
        ]);
        let record = Record { columns: &NoColumns, data: &data };
        let weight = |field: &Field| if field.key == "name" { 3 } else { 1 };
        for (text, counts) in [
            ("red x", None),
            ("red", Some(vec![7])),
            ("sho red", None),
            ("red sho", Some(vec![7, 4])),
            ("shoe red", Some(vec![3, 7])),
            ("text:red sho", Some(vec![1, 4])),
            ("\"shoe red\" ET", Some(vec![3, 1])),
            ("\"red shoe\" red \"not red\"", Some(vec![3, 7, 1])),
            ("\"red red\"", None),
            ("订单", Some(vec![1])),
            ("的 text:\"été 我的\"", Some(vec![1, 1])),
            ("的我", None),
            ("单订", None),
        ] {
            let words = Words::read(&fields, text);
            let occurrences = words.occurrences(&fields, record, weight);
            assert_eq!(words.fit(&fields, record), counts.is_some(), "{text}");
            assert_eq!(occurrences, counts.map(|counts| Occurrences { counts, length: 12 }), "{text}");
        }
    }
}
