//! The settings of a tool that starts a flow.

use super::flow::{CalledFlow, PATIENCE};
use super::tool::ToolSettings;
use ports::StartableFlow;
use serde_json::{Map, Value};

impl ToolSettings {
    /// Builds the settings of a tool that starts a flow, with the defaults for everything else.
    pub(crate) fn of_flow(
        flow: StartableFlow,
        description: String,
        fixed_arguments: Map<String, Value>,
    ) -> Self {
        let grant = super::Grant::default();
        let plain = Self { grant: None, ..Self::granted(grant, description, fixed_arguments) };
        let mut settings = Self { timeout_seconds: PATIENCE, ..plain };
        settings.take_flow(flow);
        settings
    }

    /// Takes over the version of the flow that is published now, which its runs execute.
    pub(crate) fn take_flow(&mut self, flow: StartableFlow) {
        let StartableFlow { id, name, description, input_schema, .. } = flow;
        self.parameters = input_schema;
        self.flow = Some(CalledFlow { id, name, description: description.unwrap_or_default() });
    }
}
