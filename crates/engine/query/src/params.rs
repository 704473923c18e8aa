//! Parsing of the query parameters for filters and order.

use super::related::{RelatedRecords, refuse_many};
use super::types::Query;
use diesel::prelude::*;
use fields::Filter;
use fields::filter::{Compared, FilterTree, MOST_CONDITIONS, Node, Op, filter_tree_text, unknown_op};
use fields::saved::SavedQuery;
use fields::sort;
use fields::sort::Sort;
use fields::words::Words;
use fields::{Family, Subject};
use input::parse_json;
use model::{Code, Error, JsonText, Result, Timestamp, ViewId};
use operation::{Describe, FromInput, Input};
use records::schema::collection_views;
use records::shape::Shape;
use serde::Deserialize;
use serde_json::{Value, json};
use store::Read;
use utoipa::IntoParams;
use utoipa::openapi::path::{ParameterBuilder, ParameterIn, ParameterStyle};
use utoipa::openapi::schema::{ObjectBuilder, Schema, SchemaType, Type};

/// The parameters that select and order records.
#[derive(Debug, Clone, Default)]
pub struct QueryParams {
    pairs: Vec<(String, String)>,
    related: Option<RelatedRecords>,
}

/// All parameters except `filter_tree` and `filter`, which no plain type can describe.
#[derive(Deserialize, IntoParams)]
#[expect(dead_code, reason = "read by name below; the type tells the contract")]
struct RecordQueryParams {
    /// Up to 4 fields, separated by commas, most significant first, with a leading `-` for descending order:
    /// `-price,name`. Items without a value come last. Newest first if not given.
    #[param(example = "-price,name")]
    sort: Option<String>,
    /// A saved view. Its filter is combined with that of the request. Its order applies if the request has none.
    view_id: Option<i64>,
}

const NAMES: [&str; 3] = ["filter_tree", "sort", "view_id"];

impl FromInput for QueryParams {
    fn from_input(input: &Input<'_>, _: &'static str) -> Result<Self> {
        let is_ours = |name: &str| NAMES.contains(&name) || name == "filter" || name.starts_with("filter[");
        let pairs = input.query.iter().filter(|(name, _)| is_ours(name)).cloned().collect();
        // An agent's tool has access to one collection only, so its filters must not reveal the contents of others.
        let related = if input.caller.is_automatic() {
            None
        } else {
            let (shapes, planner) = (input.services.get()?, input.services.get()?);
            Some(RelatedRecords { shapes, planner, key: Some(input.caller.key.clone()) })
        };
        Ok(Self { pairs, related })
    }

    fn describe(describe: &mut Describe, _: &'static str) {
        Self::describe_filters(describe, r#"{"field":"price","op":"gt","value":30}"#);
        describe.query_parameters::<RecordQueryParams>();
    }
}

impl QueryParams {
    /// Describes `filter_tree`, with an example, and `filter`, for lists with further parameters.
    pub fn describe_filters(describe: &mut Describe, example: &str) {
        describe.schema::<FilterTree>();
        let tree = ParameterBuilder::new()
            .name("filter_tree")
            .parameter_in(ParameterIn::Query)
            .description(Some(
                "The filter as JSON text, the form for programs; `FilterTree` is its schema. A tree is a condition such as \
                 `{\"field\": \"price\", \"op\": \"gt\", \"value\": 5}`, or `{\"and\": [...]}`, `{\"or\": [...]}` or \
                 `{\"not\": {...}}` of other trees. At most 5 levels deep, with at most 100 conditions. Combined with \
                 `filter`, both must hold.",
            ))
            .schema(Some(filter_tree_text()))
            .example(Some(example.into()));
        describe.parameter(tree.build());
        // Client generators can send plain values only: they do not support objects within objects in a query.
        let plain = [Type::String, Type::Number, Type::Boolean];
        let plain = ObjectBuilder::new().schema_type(SchemaType::from_iter(plain));
        let values = ObjectBuilder::new().additional_properties(Some(Schema::from(plain)));
        let filter = ParameterBuilder::new()
            .name("filter")
            .parameter_in(ParameterIn::Query)
            .style(Some(ParameterStyle::DeepObject))
            .explode(Some(true))
            .description(Some(
                "For people and command lines; programs use `filter_tree`. Conditions that must all hold, written \
                 `filter[<field>]=<value>` for equality: `filter[status]=open`. With an operator: \
                 `filter[price][gt]=5`, and `filter[tag][in][]=a&filter[tag][in][]=b` for a list. \
                 `filter[supplier.city]=Vigo` compares a field of the records that a field of type `relation` or `contact` \
                 points to, and holds if one of them meets it. The operators are \
                 `eq`, `neq`, `gt`, `gte`, `lt`, `lte`, `like`, `ilike` and `in`; `GET /items/filter-operators` lists \
                 those of each field type. Generated clients can send only the form without an operator.",
            ))
            .schema(Some(values));
        describe.parameter(filter.build());
    }
}

/// The parsed parameters.
#[derive(Debug)]
pub struct ParsedQuery {
    /// The query.
    pub query: Query,
    /// The text that its cursors are bound to.
    pub bound_to: String,
    /// The fields that the view shows, or `None` for all.
    pub visible: Option<Vec<Subject>>,
    /// Whether the request or the view defines an order.
    pub is_sorted: bool,
}

impl QueryParams {
    /// Creates parameters from the pairs returned by [`QueryParams::into_pairs`].
    pub fn of(pairs: Vec<(String, String)>) -> Self {
        Self { pairs, related: None }
    }

    /// Allows filters on related records.
    #[must_use]
    pub fn with_related(self, related: RelatedRecords) -> Self {
        Self { related: Some(related), ..self }
    }

    /// Returns the names and values of the query string.
    pub fn into_pairs(self) -> Vec<(String, String)> {
        self.pairs
    }

    fn value(&self, name: &str) -> Option<&str> {
        self.pairs.iter().rev().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
    }

    /// Returns the parameters and the current definition of the view in a canonical form. Cursors are bound to it, so
    /// they are not valid for another query.
    fn bound_to(&self, shape: &Shape, view: Option<&JsonText>, trashed: bool) -> String {
        let mut pairs = self.pairs.clone();
        pairs.sort_unstable();
        let view = view.map(JsonText::as_str);
        serde_json::to_string(&(shape.collection, pairs, view, trashed)).unwrap_or_default()
    }

    /// Parses the conditions of `filter`.
    fn conditions(&self, shape: &Shape) -> Result<Vec<Node>> {
        let mut conditions: Vec<(Compared, Op, Value, String)> = Vec::new();
        for (name, text) in
            self.pairs.iter().filter(|(name, _)| name.starts_with("filter[") || name == "filter")
        {
            let (field, op, is_element) = parts(name)?;
            let param = format!("filter[{}]", cut(field));
            let compared = Compared::named(shape, field, &param)?;
            let op = match op {
                None => Op::Eq,
                Some(op) => Op::parse(op).ok_or_else(|| unknown_op(param.clone()))?,
            };
            if is_element && op != Op::In {
                return Err(Error::invalid(param, "supports lists only for the operator `in`"));
            }
            let is_json = match &compared {
                Compared::Own(subject) => subject.family(shape) == Some(Family::Json),
                Compared::Related { .. } => false,
            };
            let value = match text.as_str() {
                "" if is_json => Value::Null,
                text if is_json => parse_json(text.as_bytes(), &param)?,
                text => Value::from(text),
            };
            if !is_element {
                conditions.push((compared, op, value, param));
                continue;
            }
            let started =
                conditions.iter_mut().find(|(other, _, list, _)| *other == compared && list.is_array());
            match started.map(|(_, _, list, _)| list) {
                Some(Value::Array(elements)) => elements.push(value),
                _ => conditions.push((compared, op, vec![value].into(), param)),
            }
        }
        if conditions.len() > MOST_CONDITIONS {
            return Err(Error::invalid(
                "filter",
                format_args!("must have at most {MOST_CONDITIONS} conditions"),
            ));
        }
        let node = |(compared, op, value, param): (Compared, Op, Value, String)| {
            Node::comparing(compared, op, value, param.clone(), param)
        };
        Ok(conditions.into_iter().map(node).collect())
    }

    /// Builds the filter of a tree. Resolves conditions on related records and the ids of merged records.
    fn filter(&self, read: &mut Read, shape: &Shape, node: &Node, now: Timestamp) -> Result<Filter> {
        let filter = match &self.related {
            Some(related) => related.filter(read, shape, node, now)?,
            None => Filter::of(shape, node, now)?,
        };
        shape.follow_merges(read, filter)
    }

    /// Builds the filter of a view. If it no longer matches the fields, the error blames the view instead of the
    /// request.
    fn view_filter(&self, read: &mut Read, shape: &Shape, node: &Node, now: Timestamp) -> Result<Filter> {
        self.filter(read, shape, node, now).map_err(|error| match error.code() {
            Code::ValidationError => {
                let message = "The view uses fields or choices that no longer exist. Change the view first.";
                let reasons = json!({ "reasons": [error.message()] });
                Error::new(Code::ViewInvalid, message).with("details", reasons)
            }
            _ => error,
        })
    }

    /// Parses the parameters.
    ///
    /// # Errors
    /// 400 `validation_error`, 404 for a view that does not exist, 409 `view_invalid`.
    pub fn read(&self, read: &mut Read, shape: &Shape, trashed: bool) -> Result<ParsedQuery> {
        let now = read.now();
        let mut nodes = self.conditions(shape)?;
        if let Some(text) = self.value("filter_tree") {
            let tree: Value = parse_json(text.as_bytes(), "filter_tree")?;
            nodes.push(Node::from_api(shape, &tree, "filter_tree")?);
        }
        let sorted = self.value("sort").map(|text| sort::read_list(shape, text, "sort"));
        let mut parts = sorted.transpose()?.unwrap_or_default();
        let view = self.value("view_id").map(|id| view(read, shape, id, now)).transpose()?;
        let node = Node::And(nodes);
        refuse_many(&node)?;
        let mut filter = self.filter(read, shape, &node, now)?;
        let mut search = None;
        if let Some((saved, _)) = &view {
            if let Some(node) = &saved.filter {
                filter = Filter::All(vec![filter, self.view_filter(read, shape, node, now)?]);
            }
            if parts.is_empty() {
                parts.clone_from(&saved.sort);
            }
            search.clone_from(&saved.search);
        }
        if let Some(text) = search.filter(|text| !text.trim().is_empty()) {
            filter = Filter::All(vec![filter, Filter::Finds(Words::read(shape, &text))]);
        }
        let is_sorted = !parts.is_empty();
        let bound_to = self.bound_to(shape, view.as_ref().map(|(_, text)| text), trashed);
        let visible = view.and_then(|(saved, _)| saved.visible);
        Ok(ParsedQuery { query: Query::new(filter, Sort::of(&parts), trashed), bound_to, visible, is_sorted })
    }
}

/// Splits `filter[field]`, `filter[field][op]` or `filter[field][in][]` into the field, the operator, and whether the
/// value is an element of a list.
fn parts(name: &str) -> Result<(&str, Option<&str>, bool)> {
    let wrong = || {
        let shown = cut(name).to_owned();
        Error::invalid(shown, "must be filter[field], filter[field][op] or filter[field][in][]")
    };
    let inner = name.strip_prefix("filter[").and_then(|rest| rest.strip_suffix(']')).ok_or_else(wrong)?;
    let parts: Vec<&str> = inner.split("][").collect();
    match parts.as_slice() {
        [field] => Ok((field, None, false)),
        [field, op] => Ok((field, Some(op), false)),
        [field, op, ""] => Ok((field, Some(op), true)),
        _ => Err(wrong()),
    }
}

/// Truncates a name for an error message.
fn cut(name: &str) -> &str {
    name.char_indices().nth(80).map_or(name, |(end, _)| name.get(..end).unwrap_or(name))
}

/// The part of a view's settings that a query needs.
#[derive(Deserialize)]
struct ViewSettings {
    query: SavedQuery,
}

/// Reads a view of the collection. Also returns its stored text, which identifies the version.
fn view(read: &mut Read, shape: &Shape, id: &str, now: Timestamp) -> Result<(SavedQuery, JsonText)> {
    let id: ViewId = id.parse().map_err(|()| Error::invalid("view_id", "must be the id of a view"))?;
    let settings: JsonText = collection_views::table
        .filter(collection_views::id.eq(id))
        .filter(collection_views::workspace_id.eq(shape.workspace))
        .filter(collection_views::collection_id.eq(shape.collection))
        .select(collection_views::settings)
        .get_result(read.connection())
        .optional()?
        .ok_or_else(|| Error::not_found("view").param("view_id"))?;
    let ViewSettings { query } = settings.parse()?;
    query.check(shape, now)?;
    Ok((query, settings))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_taken_apart() {
        assert_eq!(parts("filter[a]").unwrap(), ("a", None, false));
        assert_eq!(parts("filter[a][gt]").unwrap(), ("a", Some("gt"), false));
        assert_eq!(parts("filter[a][in][]").unwrap(), ("a", Some("in"), true));
        for wrong in ["filter", "filter[", "filter[a", "filter[a][in][][]", "filter[a][b][c]", "filter[a]x"] {
            assert!(parts(wrong).is_err(), "{wrong}");
        }
    }
}
