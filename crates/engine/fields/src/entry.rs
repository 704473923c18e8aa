//! Values as a columnar index stores them, and conditions that are tested on them without the record.
//!
//! The entry of a value that has an order is its key, so that entries are in the order of the values. The entry of any
//! other value is its JSON. What is too long, or not known in full, has the entry [`UNKNOWN`]: then only the record tells
//! whether a condition holds.

use crate::definitions::set::FieldSet;
use crate::definitions::subject::{Part, Subject};
use crate::filter::{Condition, Test, empty_text};
use crate::key;
use crate::record::Record;
use crate::values::kind::{Family, FieldType};
use crate::{SystemColumn, checking::value};
use chrono::NaiveDate;
use expressions::decimal::MOST_INTEGER;
use memchr::memmem::Finder;
use model::Timestamp;
use serde_json::{Number, Value};

/// The entry of a value that the index does not know.
pub const UNKNOWN: u8 = 3;

/// The most bytes of JSON in an entry.
const MOST_JSON: usize = 256;

/// Whether a condition holds, as far as an entry tells.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// It does not.
    No,
    /// The record must be asked.
    Maybe,
    /// It does.
    Yes,
}

impl From<bool> for Outcome {
    fn from(holds: bool) -> Self {
        if holds { Self::Yes } else { Self::No }
    }
}

impl std::ops::Not for Outcome {
    type Output = Self;

    fn not(self) -> Self {
        match self {
            Self::No => Self::Yes,
            Self::Maybe => Self::Maybe,
            Self::Yes => Self::No,
        }
    }
}

/// Whether a columnar index can hold a subject. Long texts and JSON objects would take more room than they save time, and
/// ids it holds anyway.
pub fn is_columnar(fields: &FieldSet, subject: Subject) -> bool {
    match subject {
        Subject::System(column) => column != SystemColumn::Id,
        Subject::Field(id) => {
            let kind = fields.field_by_id(id).map(|field| field.kind);
            kind.is_some_and(|kind| !matches!(kind, FieldType::LongText | FieldType::Json))
        }
    }
}

/// Appends the entry of one subject of a record.
pub fn push_entry(fields: &FieldSet, record: Record<'_>, subject: Subject, out: &mut Vec<u8>) {
    let family = subject.family(fields);
    let (Subject::Field(id), false) = (subject, family.is_some_and(Family::is_ordered)) else {
        record.push_indexed_part(fields, Part { subject, desc: false }, out);
        return;
    };
    let Some(field) = fields.field_by_id(id) else { return out.push(UNKNOWN) };
    let Some(value) = record.value(field) else { return out.push(key::NOTHING) };
    let is_cut = field.kind == FieldType::Relation && record.columns.has_cut_relations();
    let text = value.to_string();
    if is_cut || text.len() > MOST_JSON {
        return out.push(UNKNOWN);
    }
    out.push(key::VALUE);
    out.extend_from_slice(text.as_bytes());
}

/// The value with this entry, as the record has it; `None` where the entry does not say it exactly.
pub fn value_of_entry(fields: &FieldSet, subject: Subject, entry: &[u8]) -> Option<Value> {
    let bytes = entry.strip_prefix(&[key::VALUE])?;
    let integer = || key::integer_of(entry);
    Some(match (subject.family(fields)?, subject) {
        (Family::Number, Subject::System(_)) => integer()?.into(),
        (Family::Number, Subject::Field(_)) => whole(key::number_of(entry)?),
        (Family::Boolean, _) => (bytes == [1]).into(),
        (Family::Date, _) => {
            let day = NaiveDate::from_num_days_from_ce_opt(i32::try_from(integer()?).ok()?)?;
            day.format("%Y-%m-%d").to_string().into()
        }
        (Family::Datetime, _) => Timestamp::from_millis(integer()?).rfc3339().into(),
        (Family::Select, Subject::Field(id)) => {
            let place = usize::try_from(integer()?).ok()?;
            fields.field_by_id(id)?.options.choices().get(place)?.key.as_str().into()
        }
        _ => return None,
    })
}

/// A number as fields hold it: whole ones without a fraction.
fn whole(number: Number) -> Value {
    let float = number.as_f64().unwrap_or_default();
    let digits = format!("{float:.0}");
    match digits.parse::<i64>() {
        Ok(whole) if float.fract() == 0.0 && whole.unsigned_abs() <= MOST_INTEGER.unsigned_abs() => {
            whole.into()
        }
        _ => number.into(),
    }
}

impl Condition {
    /// Whether it holds for a value with this entry.
    pub fn on_entry(&self, entry: &[u8]) -> Outcome {
        if entry == [UNKNOWN] {
            return match self.test {
                Test::Empty => Outcome::No,
                Test::Filled => Outcome::Yes,
                _ => Outcome::Maybe,
            };
        }
        let is_nothing = entry == [key::NOTHING];
        match &self.test {
            Test::Within(ranges)
                if self.family == Family::Text
                    && key::is_cut(entry)
                    && ranges.iter().any(|range| range.splits(entry)) =>
            {
                Outcome::Maybe
            }
            Test::Within(ranges) => ranges.iter().any(|range| range.has(entry)).into(),
            Test::Outside(ranges) => (!ranges.iter().any(|range| range.has(entry))).into(),
            Test::Empty => self.is_empty_entry(entry).into(),
            Test::Filled => (!self.is_empty_entry(entry)).into(),
            Test::Text(_)
            | Test::Like(_)
            | Test::Has(_)
            | Test::PointsTo(_)
            | Test::Json(_)
            | Test::Says(_)
                if is_nothing =>
            {
                Outcome::No
            }
            Test::NotText(_) | Test::HasNot(_) | Test::NotJson(_) | Test::SaysNot(_) if is_nothing => {
                Outcome::Yes
            }
            Test::Text(texts) => {
                self.on_text(entry, |_, text| texts.iter().any(|one| one.as_bytes() == text))
            }
            Test::NotText(other) => self.on_text(entry, |_, text| other.as_bytes() != text),
            Test::Like(pattern) => self.on_text(entry, |folded, text| pattern.fits_forms(folded, text)),
            Test::Has(elements) => has(entry, elements),
            // Related records are many: it is told by the record's own list of ids.
            Test::PointsTo(_) => Outcome::Maybe,
            Test::HasNot(element) => !has(entry, std::slice::from_ref(element)),
            Test::Json(other) => same(entry, other),
            Test::NotJson(other) => !same(entry, other),
            Test::Says(text) => says(entry, text),
            Test::SaysNot(text) => !says(entry, text),
        }
    }

    /// What finds the entries that can fit among many; `None` where each must be tested.
    pub fn searcher(&self) -> Option<EntrySearcher<'_>> {
        let Test::Like(pattern) = &self.test else { return None };
        // With a zero it could begin in one entry and end in the next.
        let literal = pattern.needle().filter(|literal| !literal.needle().contains(&0))?;
        (self.family == Family::Text).then_some(EntrySearcher { literal })
    }

    fn is_empty_entry(&self, entry: &[u8]) -> bool {
        entry == [key::NOTHING] || (self.family == Family::Text && entry == empty_text())
    }

    fn on_text(&self, entry: &[u8], test: impl FnOnce(&[u8], &[u8]) -> bool) -> Outcome {
        let forms = if self.family == Family::Text { key::text_forms(entry) } else { None };
        forms.map_or(Outcome::Maybe, |(folded, text)| test(folded, text).into())
    }
}

/// Finds entries of texts that can meet a condition.
#[derive(Debug)]
pub struct EntrySearcher<'a> {
    literal: &'a Finder<'static>,
}

impl EntrySearcher<'_> {
    /// A place within the first of some entries, one behind the other, that can fit.
    pub fn find(&self, entries: &[u8]) -> Option<usize> {
        self.literal.find(entries)
    }

    /// Whether an entry can fit that was not found: it may lack the end of its text.
    pub fn may_miss(entry: &[u8]) -> bool {
        key::is_cut(entry)
    }
}

fn json(entry: &[u8]) -> Option<Value> {
    serde_json::from_slice(entry.strip_prefix(&[key::VALUE])?).ok()
}

fn has(entry: &[u8], elements: &[Value]) -> Outcome {
    let Some(value) = json(entry) else { return Outcome::Maybe };
    value.as_array().is_some_and(|values| values.iter().any(|value| elements.contains(value))).into()
}

fn says(entry: &[u8], text: &str) -> Outcome {
    json(entry).map_or(Outcome::Maybe, |value| value::json_says(&value, text).into())
}

fn same(entry: &[u8], other: &Value) -> Outcome {
    json(entry).map_or(Outcome::Maybe, |value| value::same_json(&value, other).into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::definitions::sample::{choices, field};
    use crate::filter::{Filter, Node, Pattern};
    use crate::record::{ColumnValue, Columns, Data};
    use model::Timestamp;
    use proptest::prelude::*;
    use serde_json::json;

    struct Bare {
        cut: bool,
    }

    impl Columns for Bare {
        fn id(&self) -> i64 {
            7
        }
        fn column(&self, column: SystemColumn) -> ColumnValue<'_> {
            match column {
                SystemColumn::CreatedBy => ColumnValue::Text("key:Ü".into()),
                SystemColumn::ExternalKey => ColumnValue::Empty,
                _ => ColumnValue::Integer(5),
            }
        }
        fn has_cut_relations(&self) -> bool {
            self.cut
        }
    }

    fn fields() -> FieldSet {
        let plain = crate::FieldOptions::default;
        FieldSet::from_iter([
            field(1, "name", FieldType::Text, plain()),
            field(2, "price", FieldType::Number, plain()),
            field(3, "tags", FieldType::MultiSelect, choices(&["a", "b", "c"])),
            field(4, "parts", FieldType::Relation, plain()),
            field(5, "more", FieldType::Json, plain()),
            field(6, "kind", FieldType::Select, choices(&["x", "y"])),
        ])
    }

    fn conditions(fields: &FieldSet, text: &str, number: i64) -> Vec<Condition> {
        let mut all = Vec::new();
        let operands =
            [json!(text), json!(number), json!(number.to_string()), json!("a"), json!("x"), json!(null)];
        for name in
            ["name", "price", "tags", "parts", "more", "kind", "created_by", "external_key", "version"]
        {
            for op in ["eq", "neq", "gt", "gte", "lt", "lte", "like", "ilike", "in"] {
                for value in &operands {
                    let value = if op == "in" { json!([value]) } else { value.clone() };
                    let tree = json!({ "field": name, "op": op, "value": value });
                    let Ok(node) = Node::from_api(fields, &tree, "x") else { continue };
                    let now = Timestamp::from_millis(0);
                    if let Ok(Filter::One(condition)) = Filter::of(fields, &node, now) {
                        all.push(condition);
                    }
                }
            }
        }
        assert!(all.len() > 50);
        all
    }

    proptest! {
        #[test]
        fn an_entry_agrees_with_its_record(
            name in prop::option::of("[aAßéΣς%\u{301} ]{0,4}|[a-c]{120,130}|[é]{60,70}"),
            price in prop::option::of(-3_i64..3),
            tags in prop::option::of(prop::collection::vec("[abc]", 1..3)),
            parts in prop::option::of(prop::collection::vec(1_i64..4, 1..80)),
            more in prop::option::of("[a]{0,300}"),
            kind in prop::option::of("[xyz]"),
            cut: bool,
            text in "[aAß%_]{0,3}",
            number in -3_i64..4,
        ) {
            let fields = fields();
            let mut data = Data::new();
            let mut put = |key: &str, value: Option<Value>| data.extend(value.map(|value| (key.to_owned(), value)));
            put("name", name.map(Value::from));
            put("price", price.map(Value::from));
            put("tags", tags.map(Value::from));
            put("parts", parts.map(Value::from));
            put("more", more.map(Value::from));
            put("kind", kind.map(Value::from));
            let columns = Bare { cut };
            let record = Record { columns: &columns, data: &data };
            for condition in conditions(&fields, &text, number) {
                let mut entry = Vec::new();
                push_entry(&fields, record, condition.subject, &mut entry);
                let filter = Filter::One(condition.clone());
                let holds = filter.fits(&fields, record, &mut |_, _| Ok(false)).unwrap();
                match condition.on_entry(&entry) {
                    Outcome::Maybe => {}
                    known => prop_assert_eq!(known, Outcome::from(holds), "{:?} {:?}", condition, entry),
                }
            }
        }
    }

    #[test]
    fn entries_say_the_values_that_have_an_order_and_one_form() {
        let plain = crate::FieldOptions::default;
        let fields = FieldSet::from_iter([
            field(1, "price", FieldType::Number, plain()),
            field(2, "open", FieldType::Boolean, plain()),
            field(3, "day", FieldType::Date, plain()),
            field(4, "sold", FieldType::Datetime, plain()),
            field(5, "kind", FieldType::Select, choices(&["x", "y"])),
            field(6, "name", FieldType::Text, plain()),
        ]);
        for (key, value) in [
            ("price", json!(3)),
            ("price", json!(-9_007_199_254_740_992_i64)),
            ("price", json!(1_000_000_000_000_000_i64)),
            ("price", json!(0.1)),
            ("price", json!(-123_456_789.125)),
            ("price", json!(1e-7)),
            ("price", json!(1e300)),
            ("open", json!(true)),
            ("open", json!(false)),
            ("day", json!("0001-01-01")),
            ("day", json!("9999-12-31")),
            ("sold", json!("1969-12-31T23:59:59.999Z")),
            ("kind", json!("y")),
        ] {
            let data = json!({ key: value });
            let record = Record { columns: &Bare { cut: false }, data: data.as_object().unwrap() };
            let subject = Subject::named(&fields, key).unwrap();
            let mut entry = Vec::new();
            push_entry(&fields, record, subject, &mut entry);
            assert_eq!(value_of_entry(&fields, subject, &entry), Some(value));
        }
        let name = Subject::named(&fields, "name").unwrap();
        assert_eq!(value_of_entry(&fields, name, &[key::VALUE, b'a', 0, 0, b'a', 0]), None);
        assert_eq!(value_of_entry(&fields, name, &[key::NOTHING]), None);
    }

    #[test]
    fn short_values_leave_no_doubt() {
        let fields = fields();
        let data = json!({ "name": "Große", "price": 5, "tags": ["a"], "parts": [1], "more": { "a": 1 }, "kind": "x" });
        let columns = Bare { cut: false };
        let record = Record { columns: &columns, data: data.as_object().unwrap() };
        for condition in conditions(&fields, "große", 1) {
            let mut entry = Vec::new();
            push_entry(&fields, record, condition.subject, &mut entry);
            assert_ne!(condition.on_entry(&entry), Outcome::Maybe, "{condition:?}");
        }
    }

    proptest! {
        #[test]
        fn what_a_search_passes_over_does_not_fit(text in "[abÄ\0]{0,6}|a{120,300}b?", pattern in "[aäb%_\0]{0,5}", folds: bool) {
            let (subject, family) = (Subject::named(&fields(), "name").unwrap(), Family::Text);
            let pattern = Pattern::new(&pattern, folds);
            let condition = Condition { subject, family, test: Test::Like(Box::new(pattern.clone())) };
            let mut entry = Vec::new();
            key::push_text(&mut entry, Some(&text), false);
            if let Some(searcher) = condition.searcher()
                && searcher.find(&entry).is_none()
                && !EntrySearcher::may_miss(&entry)
            {
                prop_assert!(!pattern.fits(&text));
            }
        }
    }
}
