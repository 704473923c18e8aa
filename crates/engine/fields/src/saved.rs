//! Queries that are kept, as views keep them: fields by id, so that they survive new keys and labels.

use crate::definitions::set::FieldSet;
use crate::definitions::subject::{Part, Subject};
use crate::filter::{Comparison, Condition, Node, name_of, subject};
use crate::sort;
use crate::values::kind::{Family, FieldType};
use model::{Code, Error, FieldId, Result, Timestamp};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use utoipa::ToSchema;

/// How items are looked at, as callers write it: part of a view.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, default)]
pub struct SavedQueryText {
    /// Conditions: `{"and": […]}`, `{"or": […]}`, `{"not": {…}}` or `{"field": "price", "op": "gt", "value": 5}`, at most
    /// 5 levels deep and 100 conditions in all.
    #[schema(value_type = Option<Object>)]
    pub filter_tree: Option<Value>,
    /// The order: field keys, most significant first, with a leading `-` for descending order.
    #[schema(max_items = 4)]
    pub sort: Vec<String>,
    /// The keys of the visible fields, in order. `null` means all fields.
    #[schema(max_items = 500)]
    pub visible_fields: Option<Vec<String>>,
    /// The keys of the fields by which items are grouped.
    #[schema(max_items = 2)]
    pub group_by: Vec<String>,
    /// Text that the items contain.
    #[schema(min_length = 1, max_length = 500)]
    pub search: Option<String>,
}

/// How items are looked at, as it is stored.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct SavedQuery {
    /// The conditions.
    pub filter: Option<Node>,
    /// The order.
    pub sort: Vec<Part>,
    /// The fields that are shown.
    pub visible: Option<Vec<Subject>>,
    /// The fields to group by.
    pub group_by: Vec<Subject>,
    /// Text that the items contain.
    pub search: Option<String>,
}

impl SavedQuery {
    /// Reads what a caller wrote.
    ///
    /// # Errors
    /// 400 `validation_error` with the path of what is wrong. Days such as `today` are checked against `now`.
    pub fn from_api(fields: &FieldSet, text: &SavedQueryText, now: Timestamp) -> Result<Self> {
        let tree = text.filter_tree.as_ref().filter(|tree| !tree.is_null());
        let filter = tree.map(|tree| Node::from_api(fields, tree, "filter_tree")).transpose()?;
        for comparison in filter.iter().flat_map(Node::comparisons) {
            Condition::of(fields, comparison, now)?;
        }
        let named = |list: &str, names: &[String]| -> Result<Vec<Subject>> {
            let read = |(place, name): (usize, &String)| subject(fields, name, format!("{list}[{place}]"));
            names.iter().enumerate().map(read).collect()
        };
        let sort_part = |(place, part): (usize, &String)| sort::read(fields, part, &format!("sort[{place}]"));
        let group_by = named("group_by", &text.group_by)?;
        for (place, subject) in group_by.iter().enumerate() {
            refuse_ungroupable(fields, *subject, &format!("group_by[{place}]"))?;
        }
        Ok(Self {
            filter,
            sort: text.sort.iter().enumerate().map(sort_part).collect::<Result<_>>()?,
            visible: text.visible_fields.as_ref().map(|names| named("visible_fields", names)).transpose()?,
            group_by,
            search: text.search.clone(),
        })
    }

    /// As callers write it. A field that is gone is named by its id: `#12`.
    pub fn to_api(&self, fields: &FieldSet) -> SavedQueryText {
        let names = |subjects: &[Subject]| subjects.iter().map(|one| name_of(*one, fields)).collect();
        SavedQueryText {
            filter_tree: self.filter.as_ref().map(|filter| filter.to_api(fields)),
            sort: self.sort.iter().map(|part| sort::print(*part, fields)).collect(),
            visible_fields: self.visible.as_deref().map(names),
            group_by: names(&self.group_by),
            search: self.search.clone(),
        }
    }

    /// What keeps it from being used with this fields: fields that are gone, types that no longer compare so, choices that
    /// are no more. Shown fields that are gone are merely not shown.
    pub fn problems(&self, fields: &FieldSet, now: Timestamp) -> Vec<String> {
        let mut problems = Vec::new();
        for comparison in self.filter.iter().flat_map(Node::comparisons) {
            let named = Comparison {
                param: format!("filter_tree: {}", name_of(comparison.subject, fields)),
                ..comparison.clone()
            };
            if let Err(error) = Condition::of(fields, &named, now) {
                problems.push(error.message().to_owned());
            }
        }
        for related in self.filter.iter().flat_map(Node::related) {
            let field = fields.field_by_id(related.through);
            if !field.is_some_and(|field| matches!(field.kind, FieldType::Relation | FieldType::Contact)) {
                problems.push(format!("`filter_tree` names `{}`, which is gone", related.path(fields)));
            }
        }
        for part in &self.sort {
            match part.subject.family(fields) {
                None => {
                    problems.push(format!("`sort` names {}, which is gone", name_of(part.subject, fields)));
                }
                Some(family) if !family.is_ordered() => problems.push(format!(
                    "`sort` names `{}`, whose values have no order",
                    name_of(part.subject, fields)
                )),
                Some(_) => {}
            }
        }
        for subject in &self.group_by {
            let param = format!("group_by: {}", name_of(*subject, fields));
            if let Err(error) = refuse_ungroupable(fields, *subject, &param) {
                problems.push(error.message().to_owned());
            }
        }
        problems
    }

    /// Refuses to use it where it would quietly show other items than it was made for.
    ///
    /// # Errors
    /// 409 `view_invalid` with the reasons.
    pub fn check(&self, fields: &FieldSet, now: Timestamp) -> Result<()> {
        let problems = self.problems(fields, now);
        if problems.is_empty() {
            return Ok(());
        }
        let message = "The view uses fields or choices that no longer exist. Change the view first.";
        Err(Error::new(Code::ViewInvalid, message).with("details", json!({ "reasons": problems })))
    }

    /// The fields that filters, order and groups cannot do without.
    pub fn needs(&self) -> BTreeSet<FieldId> {
        let compared = self.filter.iter().flat_map(Node::comparisons).map(|comparison| comparison.subject);
        let all =
            compared.chain(self.sort.iter().map(|part| part.subject)).chain(self.group_by.iter().copied());
        let own = all.filter_map(|subject| match subject {
            Subject::Field(id) => Some(id),
            Subject::System(_) => None,
        });
        let related = self.filter.iter().flat_map(Node::related).map(|related| related.through);
        own.chain(related).collect()
    }
}

/// Refuses to group by something whose values are not one each.
///
/// # Errors
/// 400 `validation_error` about `param`.
pub fn refuse_ungroupable(fields: &FieldSet, subject: Subject, param: &str) -> Result<()> {
    match subject.family(fields) {
        Some(Family::Json | Family::Ids | Family::Choices) => Err(Error::invalid(
            param,
            format_args!("cannot be grouped by: `{}` has no single value", name_of(subject, fields)),
        )),
        Some(_) => Ok(()),
        None => Err(Error::invalid(param, "uses a field that no longer exists")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::FieldType as Type;
    use crate::definitions::sample::{choices, fields};

    fn shop() -> FieldSet {
        fields(vec![
            ("name", Type::Text, Default::default()),
            ("price", Type::Number, Default::default()),
            ("status", Type::Select, choices(&["new", "sold"])),
            ("tags", Type::MultiSelect, choices(&["new", "sold"])),
            ("notes", Type::Json, Default::default()),
            ("due", Type::Date, Default::default()),
        ])
    }

    fn without(fields: FieldSet, key: &str) -> FieldSet {
        fields.into_iter().filter(|field| field.key != key).collect()
    }

    fn text(tree: Value, sort: &[&str]) -> SavedQueryText {
        let sort = sort.iter().map(|part| (*part).to_owned()).collect();
        SavedQueryText { filter_tree: Some(tree), sort, ..SavedQueryText::default() }
    }

    fn now() -> Timestamp {
        Timestamp::from_millis(1_800_000_000_000)
    }

    #[test]
    fn what_is_saved_reads_back() {
        let fields = shop();
        let tree = json!({ "and": [
            { "field": "price", "op": "gt", "value": 5 },
            { "or": [
                { "not": { "field": "status", "op": "in", "value": ["new", "sold"] } },
                { "field": "due", "op": "lt", "value": "today-7d" },
            ] },
            { "field": "notes", "op": "eq", "value": { "a": [1, null] } },
            { "field": "created_at", "op": "gte", "value": "2026-01-01" },
        ] });
        let mut text = text(tree, &["-price", "name", "id"]);
        text.visible_fields = Some(vec!["name".into(), "tags".into()]);
        text.group_by = vec!["status".into()];
        let saved = SavedQuery::from_api(&fields, &text, now()).unwrap();
        let stored: SavedQuery = serde_json::from_str(&serde_json::to_string(&saved).unwrap()).unwrap();
        assert_eq!(stored.to_api(&fields), text);
        assert!(stored.problems(&fields, now()).is_empty());
        assert_eq!(stored.needs().len(), 5);
    }

    #[test]
    fn mistakes_are_named_by_their_path() {
        let fields = shop();
        let is = |field: &str, op: &str, value: Value| json!({ "field": field, "op": op, "value": value });
        let deep = json!({ "not": { "not": { "not": { "not": { "not": is("price", "eq", json!(1)) } } } } });
        let many: Value = (0..101).map(|_| is("price", "eq", json!(1))).collect();
        let nested: Value = (0..2)
            .map(|_| json!({ "or": (0..51).map(|_| is("price", "eq", json!(1))).collect::<Value>() }))
            .collect();
        for (tree, param) in [
            (json!([]), "filter_tree"),
            (json!({}), "filter_tree"),
            (json!({ "and": [], }), "filter_tree.and"),
            (json!({ "xor": [] }), "filter_tree"),
            (json!({ "and": [is("prize", "eq", json!(1))] }), "filter_tree.and[0].field"),
            (json!({ "not": is("price", "is", json!(1)) }), "filter_tree.not.op"),
            (json!({ "or": [is("price", "gt", json!("x"))] }), "filter_tree.or[0].value"),
            (is("price", "like", json!("1%")), "filter_tree.value"),
            (is("status", "eq", json!("old")), "filter_tree.value"),
            (is("name", "eq", json!(5)), "filter_tree.value"),
            (is("name", "eq", json!("a\0b")), "filter_tree.value"),
            (is("price", "in", json!([])), "filter_tree.value"),
            (json!({ "field": "price", "op": "eq", "value": 1, "x": 1 }), "filter_tree.x"),
            (json!({ "and": many }), "filter_tree.and"),
            (json!({ "and": nested }), "filter_tree.and[1].or[49]"),
            (deep, "filter_tree.not.not.not.not.not"),
        ] {
            let error = SavedQuery::from_api(&fields, &text(tree.clone(), &[]), now()).unwrap_err();
            assert_eq!(error.param_name(), Some(param), "{tree} {}", error.message());
        }
        for (sort, param) in [(["name", "tags"], "sort[1]"), (["-", "name"], "sort[0]")] {
            let error = SavedQuery::from_api(&fields, &text(Value::Null, &sort), now()).unwrap_err();
            assert_eq!(error.param_name(), Some(param));
        }
    }

    #[test]
    fn a_field_that_is_gone_is_a_problem() {
        let fields = shop();
        let tree = json!({ "field": "status", "op": "eq", "value": "sold" });
        let saved = SavedQuery::from_api(&fields, &text(tree, &["-price"]), now()).unwrap();
        let fields = without(fields, "price");
        let error = saved.check(&fields, now()).unwrap_err();
        assert_eq!(error.code(), Code::ViewInvalid);
        assert_eq!(error.body()["details"]["reasons"].as_array().unwrap().len(), 1);
        assert_eq!(saved.to_api(&fields).sort, ["-#2"]);
        let fields = without(fields, "status");
        assert_eq!(saved.problems(&fields, now()).len(), 2);
    }
}
