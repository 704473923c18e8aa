//! Lists of tasks.

use crate::dates::due::day_start;
use crate::record::kind::TASKS;
use crate::record::task::{ITEM, Task, TaskAssigneeType, TaskPriority, TaskStatus};
use business::Calendar;
use chrono::{Days, NaiveDate};
use chrono_tz::Tz;
use fields::Filter;
use fields::filter::Node;
use fields::words::Words;
use input::comma_list;
use model::{Caller, ContactId, Error, ItemId, Result, TaskId, Timestamp, whole_number};
use operation::{Describe, FromInput, Input, OptIn, OptInList, Path, Query, State, operation};
use ports::BusinessCalendar;
use query::{ListPosition, Planner, Query as RecordQuery, QueryParams};
use records::shape::{Shape, Shapes};
use records::{rows, sets};
use serde::Deserialize;
use serde_json::{Value, json};
use store::Read;
use utoipa::IntoParams;

/// The unparsed filters and order of a list of tasks, from the query string.
#[derive(Debug, Clone)]
pub struct TaskFilters {
    params: QueryParams,
    own: OwnFilters,
}

#[derive(Debug, Clone, Default, Deserialize, IntoParams)]
struct OwnFilters {
    /// One or more statuses, separated by commas.
    #[param(example = "todo,in_progress")]
    status: Option<String>,
    /// One or more priorities, separated by commas.
    #[param(example = "high,urgent")]
    priority: Option<String>,
    /// `user:` or `agent:` and the id of the assignee, or `none` for tasks without one.
    #[param(example = "user:1")]
    assignee: Option<String>,
    /// A label.
    #[param(min_length = 1)]
    label: Option<String>,
    /// The id of a task. Only its subtasks are listed.
    #[param(value_type = Option<i64>)]
    parent_id: Option<TaskId>,
    /// The id of a contact.
    #[param(value_type = Option<i64>)]
    contact_id: Option<ContactId>,
    /// The id of an item.
    #[param(value_type = Option<i64>)]
    item_id: Option<ItemId>,
    /// A project.
    #[param(min_length = 1, max_length = 120)]
    project: Option<String>,
    /// A moment, or a day in the time zone of the business. Only tasks that are due before it are listed.
    #[param(example = "2026-12-01")]
    due_before: Option<String>,
    /// A moment, or a day in the time zone of the business. Only tasks that are due after it are listed.
    #[param(example = "2026-12-01")]
    due_after: Option<String>,
    /// `true` lists open tasks that are past their due date, `false` all others.
    #[param(required = false)]
    overdue: Option<bool>,
    /// `true` lists the tasks that can be worked on now: to do or in progress, not waiting for others, with a start that has
    /// passed or none. `false` lists all others.
    #[param(required = false)]
    ready: Option<bool>,
    /// Words that tasks must contain.
    #[param(max_length = 1000)]
    q: Option<String>,
}

#[derive(Deserialize, IntoParams)]
#[expect(dead_code, reason = "read by name in `QueryParams`; the type tells the contract")]
struct TaskOrder {
    /// Up to 4 fields, separated by commas, most significant first, with a leading `-` for descending order:
    /// `-priority,due_at`. Tasks without a value come last. Newest first if not given.
    #[param(example = "-priority,due_at")]
    sort: Option<String>,
}

impl FromInput for TaskFilters {
    fn from_input(input: &Input<'_>, name: &'static str) -> Result<Self> {
        let Query(own) = Query::from_input(input, name)?;
        Ok(Self { params: QueryParams::from_input(input, name)?, own })
    }

    fn describe(describe: &mut Describe, _: &'static str) {
        describe.query_parameters::<OwnFilters>();
        QueryParams::describe_filters(describe, r#"{"field":"priority","op":"eq","value":"high"}"#);
        describe.query_parameters::<TaskOrder>();
    }
}

/// Parses a list of words separated by commas. Each must be one of `all`.
fn words<const N: usize>(text: &str, param: &str, all: [&str; N]) -> Result<Value> {
    let words = comma_list(text, param)?;
    if words.iter().all(|word| all.contains(word)) {
        return Ok(json!(words));
    }
    Err(Error::invalid(param, format_args!("must be one or more of {}, separated by commas", all.join(", "))))
}

/// Parses a moment. A day means its beginning.
fn time(text: &str, param: &str, zone: Tz) -> Result<Timestamp> {
    let day = || text.parse::<NaiveDate>().ok().map(|day| day_start(zone, day));
    let time = Timestamp::parse(text).or_else(day);
    time.ok_or_else(|| Error::invalid(param, "must be a day such as 2026-12-01, or a moment in RFC 3339"))
}

/// Parses a moment. A day means its end.
fn end(text: &str, param: &str, zone: Tz) -> Result<Timestamp> {
    let day = text.parse::<NaiveDate>().ok().and_then(|day| day.checked_add_days(Days::new(1)));
    match day.map(|next| day_start(zone, next)) {
        Some(next) => Ok(Timestamp::from_millis(next.millis() - 1)),
        None => time(text, param, zone),
    }
}

fn is(field: &str, op: &str, value: impl Into<Value>) -> Value {
    json!({ "field": field, "op": op, "value": value.into() })
}

const OPEN: [TaskStatus; 3] = [TaskStatus::Backlog, TaskStatus::Todo, TaskStatus::InProgress];

/// Builds the condition that a task can be worked on now.
fn ready(now: Timestamp) -> Value {
    json!({ "and": [
        is("status", "in", json!([TaskStatus::Todo, TaskStatus::InProgress])),
        is("is_blocked", "neq", true),
        { "or": [is("start_at", "eq", Value::Null), is("start_at", "lte", now.rfc3339())] },
    ] })
}

/// Returns the condition, or its negation.
fn wanted(condition: Value, is_wanted: bool) -> Value {
    if is_wanted { condition } else { json!({ "not": condition }) }
}

fn assigned_to(text: &str) -> Result<Value> {
    if text == "none" {
        let nobody = |field| is(field, "eq", Value::Null);
        return Ok(json!({ "and": [nobody("assignee_user"), nobody("assignee_agent")] }));
    }
    let assignee =
        text.split_once(':').and_then(|(kind, id)| Some((TaskAssigneeType::parse(kind)?, whole_number(id)?)));
    match assignee {
        Some((TaskAssigneeType::User, id)) => Ok(is("assignee_user", "eq", id)),
        Some((TaskAssigneeType::Agent, id)) => Ok(is("assignee_agent", "eq", id)),
        None => Err(Error::invalid("assignee", "must be `none`, or `user:` or `agent:` and an id")),
    }
}

impl OwnFilters {
    /// Builds the conditions in the syntax of `filter_tree`, each with the name of its parameter.
    fn conditions(&self, now: Timestamp, zone: Tz) -> Result<Vec<(&'static str, Value)>> {
        let mut all = Vec::new();
        if let Some(text) = &self.status {
            all.push((
                "status",
                is("status", "in", words(text, "status", TaskStatus::ALL.map(TaskStatus::as_str))?),
            ));
        }
        if let Some(text) = &self.priority {
            let words = words(text, "priority", TaskPriority::ALL.map(TaskPriority::as_str))?;
            all.push(("priority", is("priority", "in", words)));
        }
        if let Some(text) = &self.assignee {
            all.push(("assignee", assigned_to(text)?));
        }
        if let Some(label) = &self.label {
            all.push(("label", is("labels", "eq", label.as_str())));
        }
        if let Some(parent) = self.parent_id {
            all.push(("parent_id", is("parent_id", "eq", parent.0)));
        }
        if let Some(contact) = self.contact_id {
            all.push(("contact_id", is("contact_id", "eq", contact.0)));
        }
        if let Some(item) = self.item_id {
            all.push(("item_id", is(ITEM, "eq", item.0)));
        }
        if let Some(project) = &self.project {
            all.push(("project", is("project", "eq", project.as_str())));
        }
        if let Some(text) = &self.due_before {
            all.push(("due_before", is("due_at", "lt", time(text, "due_before", zone)?.rfc3339())));
        }
        if let Some(text) = &self.due_after {
            all.push(("due_after", is("due_at", "gt", end(text, "due_after", zone)?.rfc3339())));
        }
        if let Some(is_wanted) = self.overdue {
            let overdue =
                json!({ "and": [is("status", "in", json!(OPEN)), is("due_at", "lt", now.rfc3339())] });
            all.push(("overdue", wanted(overdue, is_wanted)));
        }
        if let Some(is_wanted) = self.ready {
            all.push(("ready", wanted(ready(now), is_wanted)));
        }
        Ok(all)
    }
}

impl TaskFilters {
    /// Parses the filters and the order to a query.
    ///
    /// # Errors
    /// `validation_error`.
    fn read(&self, read: &mut Read, shape: &Shape) -> Result<RecordQuery> {
        let Self { params, own } = self;
        let parsed = params.read(read, shape, false)?;
        let names_days = own.due_before.is_some() || own.due_after.is_some();
        let zone = if names_days { Calendar.time_zone(read, shape.workspace)? } else { Tz::UTC };
        let now = read.now();
        let mut filters = vec![parsed.query.filter.clone()];
        for (param, tree) in own.conditions(now, zone)? {
            let at_param = |error: Error| error.param(param);
            let node = Node::from_api(shape, &tree, param).map_err(at_param)?;
            let filter = Filter::of(shape, &node, now).map_err(at_param)?;
            filters.push(shape.follow_merges(read, filter)?);
        }
        if let Some(text) = own.q.as_deref().filter(|text| !text.trim().is_empty()) {
            filters.push(Filter::Finds(Words::read(shape, text)));
        }
        Ok(RecordQuery::new(Filter::All(filters), parsed.query.sort, false))
    }
}

/// Reads a page of tasks and builds the response.
fn listed(
    read: &mut Read,
    shape: &Shape,
    query: &RecordQuery,
    page: &OptIn,
    planner: &Planner,
) -> Result<OptInList<Task>> {
    let after = page.page().after::<ListPosition>()?;
    let need = usize::try_from(page.page().fetch()).unwrap_or(1);
    let after = after.as_ref().map(|ListPosition(place)| place.as_slice());
    let found = query::counted_page(read, planner, shape, query, after, need)?;
    let mut tasks = Vec::with_capacity(found.found.len());
    let mut places = Vec::with_capacity(found.found.len());
    for found in found.found {
        tasks.push(Task::of(&found.row)?);
        places.push((found.row.id, ListPosition(found.place)));
    }
    let place = |task: &Task| {
        let place = places.iter().find(|(id, _)| id.0 == task.id.0);
        place.map(|(_, place)| place.to_string()).unwrap_or_default()
    };
    Ok(page.answer(tasks, place))
}

/// List tasks
///
/// Lists the tasks that match all filters of the request, in the given order. Without `paginate=true`, at most 100 are
/// returned.
#[operation(get "/workspaces/{workspaceId}/tasks", scope = "tasks:read", ceiling = 100)]
pub fn list_tasks(
    read: &mut Read,
    caller: &Caller,
    filters: TaskFilters,
    page: OptIn,
    shapes: State<Shapes>,
    planner: State<Planner>,
) -> Result<OptInList<Task>> {
    let shape = sets::for_read(read, &shapes.0, caller.workspace_id(), &TASKS)?;
    let query = filters.read(read, &shape)?;
    listed(read, &shape, &query, &page, &planner.0)
}

/// Its subtasks
///
/// Lists the tasks directly below this one, newest first.
#[operation(get "/workspaces/{workspaceId}/tasks/{taskId}/subtasks", scope = "tasks:read", ceiling = 100)]
pub fn list_subtasks(
    read: &mut Read,
    caller: &Caller,
    Path(task_id): Path<TaskId>,
    page: OptIn,
    shapes: State<Shapes>,
    planner: State<Planner>,
) -> Result<OptInList<Task>> {
    let shape = sets::for_read(read, &shapes.0, caller.workspace_id(), &TASKS)?;
    rows::live(read, &shape, task_id.into())?;
    let own = OwnFilters { parent_id: Some(task_id), ..OwnFilters::default() };
    let query = TaskFilters { params: QueryParams::default(), own }.read(read, &shape)?;
    listed(read, &shape, &query, &page, &planner.0)
}

/// Returns the ends of the day and of the week that contain a moment.
pub(crate) fn bounds(zone: Tz, now: Timestamp) -> Option<(Timestamp, Timestamp)> {
    use chrono::Datelike;
    let today = calendar::local(zone, now).date();
    let tomorrow = today.checked_add_days(Days::new(1))?;
    let left = 7 - u64::from(today.weekday().num_days_from_monday());
    Some((day_start(zone, tomorrow), day_start(zone, today.checked_add_days(Days::new(left))?)))
}
