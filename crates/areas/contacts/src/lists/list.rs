//! The list of contacts.

use super::filters::{ExactFilters, Warning};
use crate::record::contact::Contact;
use crate::record::find::contacts;
use crate::segments;
use auth::Seal;
use fields::filter::{Condition, Test};
use fields::sort::Sort;
use fields::words::Words;
use fields::{Filter, Subject};
use model::{Caller, Error, Result, SegmentId};
use operation::{Cursors, Describe, FromInput, Input, Query, RawCursorList, State, With, operation};
use query::{
    ParsedQuery, PlacedRow, Planner, Query as RecordQuery, QueryParams, RelatedRecords, cursor_at,
    place_behind,
};
use records::print::Printer;
use records::shape::{Shape, Shapes};
use serde::{Deserialize, Serialize};
use store::{CursorPage, Read};
use utoipa::{IntoParams, ToSchema};

/// The key under which [`ContactFilters::into_pairs`] stores the filters that only contacts have.
const OWN: &str = "contacts";

/// The unparsed filters and order of a list of contacts, from the query string.
#[derive(Debug, Clone)]
pub struct ContactFilters {
    params: QueryParams,
    own: OwnFilters,
}

#[derive(Debug, Clone, Default, Serialize, Deserialize, IntoParams)]
pub(crate) struct OwnFilters {
    /// Conditions as a JSON array of `{"field", "op", "value"}`, which must all hold. `op` is `eq`, the default, or `neq`.
    /// `field` is the key of a field, or a name that contacts show, such as `external_id` or `tags`.
    /// Both sides are compared as exact text; a list matches if one of its elements does, and a contact without a value
    /// matches `neq` only. A malformed condition is ignored: `warnings` and the header `X-Svc-Ignored-Filters` say so.
    #[param(example = r#"[{"field":"$stage","value":"new"}]"#)]
    filters: Option<String>,
    /// Whether a malformed condition in `filters` rejects the request instead.
    #[serde(default)]
    #[param(required = false)]
    strict: bool,
    /// Words that contacts must contain, such as part of a name.
    #[param(max_length = 1000)]
    q: Option<String>,
    /// The id of a segment. Only its contacts are listed.
    #[param(value_type = Option<i64>)]
    segment_id: Option<SegmentId>,
    /// `true` lists the contacts in the trash instead.
    #[serde(default)]
    #[param(required = false)]
    trashed: bool,
}

#[derive(Deserialize, IntoParams)]
#[expect(dead_code, reason = "read by name in `QueryParams`; the type tells the contract")]
struct ContactOrder {
    /// Up to 4 fields, separated by commas, most significant first, with a leading `-` for descending order:
    /// `$stage,-updated_at`. Contacts without a value come last. Newest first if not given.
    #[param(example = "-updated_at")]
    sort: Option<String>,
}

impl FromInput for ContactFilters {
    fn from_input(input: &Input<'_>, name: &'static str) -> Result<Self> {
        let Query(own) = Query::from_input(input, name)?;
        Ok(Self { params: QueryParams::from_input(input, name)?, own })
    }

    fn describe(describe: &mut Describe, _: &'static str) {
        describe.query_parameters::<OwnFilters>();
        QueryParams::describe_filters(describe, r#"{"field":"$stage","op":"eq","value":"new"}"#);
        describe.query_parameters::<ContactOrder>();
    }
}

/// The parsed filters and order of a list of contacts.
pub(crate) struct ContactSelection {
    pub(crate) query: RecordQuery,
    pub(crate) warnings: Vec<Warning>,
    /// The text to which cursors are bound. A cursor of a list with other filters is rejected.
    bound_to: String,
}

impl ContactSelection {
    /// Returns the query with one more condition: a test of a field.
    pub(crate) fn also(&self, shape: &Shape, key: &str, test: Test) -> Result<RecordQuery> {
        let field = shape.field(key).ok_or_else(|| Error::internal("a system field is missing"))?;
        let condition = Condition { subject: Subject::Field(field.id), family: field.family(), test };
        let filter = Filter::All(vec![self.query.filter.clone(), Filter::One(condition)]);
        Ok(RecordQuery::new(filter, Sort::of(&[]), self.query.trashed))
    }
}

impl ContactFilters {
    /// Restores the filters from the output of [`Self::into_pairs`].
    pub(crate) fn of(pairs: Vec<(String, String)>, related: &RelatedRecords) -> Result<Self> {
        let own = pairs.iter().find(|(name, _)| name == OWN);
        let own = own.map_or(Ok(OwnFilters::default()), |(_, text)| serde_json::from_str(text));
        let own = own.map_err(Error::internal)?;
        Ok(Self { params: QueryParams::of(pairs).with_related(related.clone()), own })
    }

    /// Converts the filters to pairs of name and value, for the link of an export.
    pub(crate) fn into_pairs(self) -> Vec<(String, String)> {
        let own = serde_json::to_string(&self.own).unwrap_or_default();
        self.params.into_pairs().into_iter().chain([(OWN.to_owned(), own)]).collect()
    }

    /// Parses the filters for readers that do not report warnings.
    pub(crate) fn parsed(&self, read: &mut Read, shape: &Shape) -> Result<ParsedQuery> {
        let ContactSelection { query, bound_to, .. } = self.read(read, shape)?;
        Ok(ParsedQuery { query, bound_to, visible: None, is_sorted: true })
    }

    /// Parses the filters.
    ///
    /// # Errors
    /// 400 `validation_error`, 404 for a segment that does not exist.
    pub(crate) fn read(&self, read: &mut Read, shape: &Shape) -> Result<ContactSelection> {
        let Self { params, own } = self;
        let parsed = params.read(read, shape, own.trashed)?;
        let exact = ExactFilters::read(shape, own.filters.as_deref(), own.strict)?;
        let mut filters = vec![parsed.query.filter.clone(), exact.filter];
        if let Some(text) = own.q.as_deref().filter(|text| !text.trim().is_empty()) {
            filters.push(Filter::Finds(Words::read(shape, text)));
        }
        let mut segment = None;
        if let Some(id) = own.segment_id {
            let (filter, stamp) = segments::filter(read, shape, id)?;
            filters.push(filter);
            segment = Some(stamp);
        }
        let bound_to = serde_json::to_string(&(&parsed.bound_to, own, segment)).map_err(Error::internal)?;
        let filter = shape.follow_merges(read, Filter::All(filters))?;
        let query = RecordQuery::new(filter, parsed.query.sort, own.trashed);
        Ok(ContactSelection { query, warnings: exact.warnings, bound_to })
    }
}

/// What a list says beside its contacts.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct ContactListExtra {
    /// What was ignored of `filters`.
    warnings: Vec<Warning>,
}

/// List contacts with filters
///
/// Lists the contacts that match all filters of the request, in the given order. `starting_after` accepts the
/// `next_cursor` of the previous page or the id of its last contact.
#[operation(get "/contacts", scope = "contacts:read")]
pub fn list_contacts(
    read: &mut Read,
    caller: &Caller,
    filters: ContactFilters,
    page: CursorPage,
    shapes: State<Shapes>,
    planner: State<Planner>,
    seal: State<Seal>,
) -> Result<With<RawCursorList<Contact<'static>, ContactListExtra>>> {
    let shape = contacts(read, &shapes.0, caller)?;
    let ContactSelection { query, warnings, bound_to } = filters.read(read, &shape)?;
    let cursors = Cursors::new(seal.0.clone(), "listContacts", shape.workspace, bound_to);
    let after = page.after::<String>()?;
    let after = after.map(|after| place_behind(read, &shape, &query, &cursors, &after)).transpose()?;
    let need = usize::try_from(page.fetch()).unwrap_or(1);
    let found = query::counted_page(read, &planner.0, &shape, &query, after.as_deref(), need)?;
    let printer = Printer::whole(&shape);
    let mut printed = Vec::with_capacity(found.found.len());
    for found in &found.found {
        let mut text = String::with_capacity(found.row.data.as_str().len() + 768);
        printer.print(&found.row, &mut text)?;
        printed.push((found, text));
    }
    let cursor = |last: &(&PlacedRow, String)| cursor_at(&cursors, &last.0.place);
    let answer = RawCursorList::of(&page, &printed, |(_, text), out| out.push_str(text), cursor);
    let mut headers = vec![found.report.header()];
    if !warnings.is_empty() {
        headers.push(("x-svc-ignored-filters", warnings.len().to_string()));
    }
    Ok(With { answer: answer.with(ContactListExtra { warnings }), headers })
}
