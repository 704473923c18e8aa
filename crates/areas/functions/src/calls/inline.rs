//! Code that belongs to no function, such as that of a flow's node.

use super::outcome::result_of;
use super::port::failure;
use super::service::FunctionCalls;
use crate::draft::compile::refused;
use model::{Error, JsonText, Result, hex};
use ports::{FunctionFailure, InlineCall};
use ring::digest::{SHA256, digest};
use sandbox::NoHost;
use serde_json::json;

impl FunctionCalls {
    /// Runs code without an outside.
    pub(super) async fn run_code(
        &self,
        call: InlineCall,
    ) -> Result<std::result::Result<JsonText, FunctionFailure>> {
        let limits = self.0.sandbox.settings().limits;
        for (name, size, most) in
            [("code", call.code.len(), limits.code), ("input", call.input.as_str().len(), limits.input)]
        {
            if size > most {
                return Err(Error::invalid(name, format_args!("must not be larger than {most} bytes")));
            }
        }
        // Calls of the same code share workers.
        let version = format!("inline/{}", hex(digest(&SHA256, call.code.as_bytes())));
        let key = sandbox::Key { workspace: call.workspace.to_string(), version };
        let program = sandbox::Program::new(&call.code);
        let run = sandbox::Call {
            contact: call.contact.map(|id| json!({ "id": id }).to_string()),
            run: Some(json!({ "id": call.run }).to_string()),
            idempotency_key: Some(call.once),
            livemode: call.livemode,
            deadline: Some(call.patience),
            ..sandbox::Call::new(call.input.as_str())
        };
        match self.0.sandbox.call(&key, &program, &run, &NoHost).await {
            Ok(outcome) => Ok(result_of(outcome).map_err(failure)),
            Err(error) => Err(refused(&error)),
        }
    }
}
