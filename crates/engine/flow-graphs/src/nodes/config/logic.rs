//! Settings of nodes that only compute, and of the nodes that lead a run.

use model::string_enum;
use serde::Deserialize;
use serde_json::{Map, Value};
use utoipa::ToSchema;

/// Settings of `trigger`: where a run begins.
#[derive(Debug, Clone, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, default)]
#[schema(as = FlowTrigger, example = json!({ "input_schema": { "type": "object", "properties": { "order": { "type": "string" } } } }))]
pub struct Trigger {
    /// A JSON Schema of the input.
    pub input_schema: Option<Value>,
    /// A sample of the payload, for editors and test runs.
    pub sample: Option<Value>,
}

/// Settings of `condition`: the run continues at `true` or `false`.
#[derive(Debug, Clone, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = FlowCondition, example = json!({ "if": { "left": "$contact.$country", "op": "eq", "right": "ES" } }))]
pub struct Condition {
    /// The condition.
    #[serde(rename = "if")]
    pub condition: Value,
}

string_enum! {
    /// How many of the cases of a `switch` count.
    #[derive(Default)]
    pub enum FlowSwitchMode {
        /// The first that fits.
        #[default]
        First = "first",
        /// All that fit: the run continues at each of them.
        All = "all",
    }
}

/// Settings of `switch`: the run continues at the port of a case, or at `default`.
#[derive(Debug, Clone, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = FlowSwitch, example = json!({ "cases": [{ "id": "vip", "if": "'vip' in $contact.tags" }] }))]
pub struct Switch {
    /// The value that cases with `equals` are compared with.
    #[serde(default)]
    pub value: Option<Value>,
    /// The cases.
    #[schema(min_items = 1, max_items = 50)]
    pub cases: Vec<FlowCase>,
    /// How many count.
    #[serde(default)]
    pub mode: FlowSwitchMode,
}

/// A case of a `switch`.
#[derive(Debug, Clone, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({ "id": "vip", "equals": "vip" }))]
pub struct FlowCase {
    /// The id: the name of the port.
    #[schema(pattern = "^[a-z][a-z0-9_]{0,39}$")]
    pub id: String,
    /// The value for which it fits.
    #[serde(default)]
    pub equals: Option<Value>,
    /// The condition under which it fits.
    #[serde(default, rename = "if")]
    pub condition: Option<Value>,
}

/// Settings of `split`: a share of the runs goes each way.
#[derive(Debug, Clone, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = FlowSplit, example = json!({ "variants": [{ "id": "a", "weight": 50 }, { "id": "b", "weight": 50 }] }))]
pub struct Split {
    /// The variants, each of which is a port.
    #[schema(min_items = 2, max_items = 10)]
    pub variants: Vec<FlowVariant>,
    /// Whether the same contact always goes the same way.
    #[serde(default = "yes")]
    pub sticky: bool,
}

const fn yes() -> bool {
    true
}

/// A variant of a `split`.
#[derive(Debug, Clone, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({ "id": "a", "weight": 50 }))]
pub struct FlowVariant {
    /// The id: the name of the port.
    #[schema(pattern = "^[a-z][a-z0-9_]{0,39}$")]
    pub id: String,
    /// Its share, in proportion to those of the others.
    #[schema(minimum = 1, maximum = 1000)]
    pub weight: i64,
}

string_enum! {
    /// How a variable is changed.
    #[derive(Default)]
    pub enum FlowAssignment {
        /// It gets the value.
        #[default]
        Set = "set",
        /// The value is added to the end of the list.
        Append = "append",
        /// The number is added.
        Increment = "increment",
        /// It has no value any more.
        Unset = "unset",
    }
}

/// Settings of `set_variables`.
#[derive(Debug, Clone, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = FlowSetVariables, example = json!({ "assignments": [{ "name": "budget", "value": "{{ $input.budget }}" }] }))]
pub struct SetVariables {
    /// The changes, in order.
    #[schema(min_items = 1, max_items = 50)]
    pub assignments: Vec<FlowAssign>,
}

/// A change of a variable of the flow.
#[derive(Debug, Clone, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({ "name": "budget", "op": "set", "value": 100 }))]
pub struct FlowAssign {
    /// The variable.
    #[schema(pattern = "^[a-z][a-z0-9_]{0,63}$")]
    pub name: String,
    /// How it is changed.
    #[serde(default)]
    pub op: FlowAssignment,
    /// The value.
    #[serde(default)]
    pub value: Option<Value>,
}

/// Settings of `transform`: an object of computed values, or a changed list.
#[derive(Debug, Clone, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = FlowTransform, example = json!({ "fields": { "total": "{{ $input.price * 1.21 | round: 2 }}" } }))]
pub struct Transform {
    /// The members of the output.
    #[schema(value_type = Option<Object>)]
    #[serde(default)]
    pub fields: Option<Map<String, Value>>,
    /// The list to change. The following settings are for it, and are applied in their order.
    #[serde(default)]
    pub list: Option<Value>,
    /// A condition that elements must fulfil: it reads the element as `$loop.item`.
    #[serde(default)]
    pub filter: Option<Value>,
    /// The path within elements by which they are sorted, with `-` before it for descending order.
    #[serde(default)]
    pub sort: Option<String>,
    /// The path within elements by which they are grouped.
    #[serde(default)]
    pub group: Option<String>,
    /// How many elements are left out.
    #[schema(minimum = 0)]
    #[serde(default)]
    pub offset: Option<i64>,
    /// How many elements remain.
    #[schema(minimum = 0)]
    #[serde(default)]
    pub limit: Option<i64>,
}

string_enum! {
    /// What happens when the body of a loop fails for an element.
    #[derive(Default)]
    pub enum FlowItemError {
        /// The loop fails.
        #[default]
        Stop = "stop",
        /// The element is left out of the results.
        Skip = "skip",
        /// Its result is null.
        Null = "null",
    }
}

/// Settings of `for_each`: the nodes behind the port `each` are executed for each element of a list.
#[derive(Debug, Clone, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = FlowForEach, example = json!({ "list": "{{ $nodes.orders.output.items }}", "parallel": 4 }))]
pub struct ForEach {
    /// The list.
    pub list: Value,
    /// How many elements are worked on at a time.
    #[schema(minimum = 1, maximum = 10)]
    #[serde(default = "one")]
    pub parallel: i64,
    /// What happens when one fails.
    #[serde(default)]
    pub on_item_error: FlowItemError,
}

const fn one() -> i64 {
    1
}

/// Settings of `while`: the nodes behind the port `each` are executed as long as a condition holds.
#[derive(Debug, Clone, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = FlowWhile, example = json!({ "if": "$flow.tries < 3" }))]
pub struct While {
    /// The condition, checked before each time.
    #[serde(rename = "if")]
    pub condition: Value,
    /// The most times. Then the run continues at `limit`.
    #[schema(minimum = 1, maximum = 100)]
    #[serde(default = "hundred")]
    pub max_iterations: i64,
}

const fn hundred() -> i64 {
    100
}

/// Settings of `parallel`: the run continues at all branches at once.
#[derive(Debug, Clone, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = FlowParallel, example = json!({ "branches": [{ "id": "mail" }, { "id": "task" }] }))]
pub struct Parallel {
    /// The branches, each of which is a port.
    #[schema(min_items = 2, max_items = 10)]
    pub branches: Vec<FlowBranch>,
}

/// A branch of `parallel`.
#[derive(Debug, Clone, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({ "id": "mail" }))]
pub struct FlowBranch {
    /// The id: the name of the port.
    #[schema(pattern = "^[a-z][a-z0-9_]{0,39}$")]
    pub id: String,
}

string_enum! {
    /// What a `join` waits for.
    #[derive(Default)]
    pub enum FlowJoinMode {
        /// All branches that can still arrive.
        #[default]
        All = "all",
        /// The first branch. The others end.
        Any = "any",
        /// `count` branches. The others end.
        Count = "count",
    }
}

/// Settings of `join`: branches come together.
#[derive(Debug, Clone, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, default)]
#[schema(as = FlowJoin, example = json!({ "mode": "all" }))]
pub struct Join {
    /// What it waits for.
    pub mode: FlowJoinMode,
    /// The number of branches, with `count`.
    #[schema(minimum = 1, maximum = 10)]
    pub count: Option<i64>,
    /// How long it waits, in seconds. Then the branches that have not arrived end, and the run continues at `timeout`. `null`
    /// waits as long as the run may take.
    #[schema(minimum = 1, maximum = 31_536_000)]
    pub timeout_seconds: Option<i64>,
}

/// Settings of `jump`: the run continues at another node.
#[derive(Debug, Clone, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = FlowJump, example = json!({ "node_id": "question" }))]
pub struct Jump {
    /// The id of the node.
    #[schema(max_length = 40)]
    pub node_id: String,
}

string_enum! {
    /// How a run ends.
    #[derive(Default)]
    pub enum FlowEnding {
        /// It has done its work.
        #[default]
        Completed = "completed",
        /// It has failed.
        Failed = "failed",
    }
}

/// Settings of `end`: the run ends, with all its branches.
#[derive(Debug, Clone, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, default)]
#[schema(as = FlowEnd, example = json!({ "output": { "booked": true } }))]
pub struct End {
    /// How it ends.
    pub status: FlowEnding,
    /// The output of the run, or what failed.
    pub output: Option<Value>,
}

/// Settings of `sub_flow`: another flow is run.
#[derive(Debug, Clone, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = FlowSubFlow, example = json!({ "flow_id": 12, "input": { "order": "{{ $input.order }}" } }))]
pub struct SubFlow {
    /// The flow.
    pub flow_id: i64,
    /// Its input.
    #[schema(value_type = Object)]
    #[serde(default)]
    pub input: Map<String, Value>,
    /// Whether the run waits for its end.
    #[serde(default = "yes")]
    pub wait: bool,
}

/// Settings of `emit_event`: an event of your own.
#[derive(Debug, Clone, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = FlowEmitEvent, example = json!({ "name": "custom.order_checked", "data": { "order": "{{ $input.order }}" } }))]
pub struct EmitEvent {
    /// The type of the event.
    #[schema(pattern = r"^custom\.[a-z][a-z0-9_]*(\.[a-z][a-z0-9_]*)*$", max_length = 100)]
    pub name: String,
    /// Its data.
    #[schema(value_type = Object)]
    #[serde(default)]
    pub data: Map<String, Value>,
}
