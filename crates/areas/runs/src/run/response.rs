//! Responses with a run.

use super::object::Run;
use model::Result;
use operation::{Answer, Describe, Json, Reply};
use serde_json::json;

/// 200 with the run; 202 where it goes on longer than a request should wait.
pub struct RunAnswer(pub(crate) Reply);

impl Answer for RunAnswer {
    fn reply(self) -> Result<Reply> {
        Ok(self.0)
    }

    fn describe(describe: &mut Describe) {
        <Json<Run> as Answer>::describe(describe);
        let data = json!({ "status": "in_progress", "output": null, "completed_at": null });
        describe.also(202, json!({ "data": data }));
        describe.events(
            "With `stream: true`: server-sent events with JSON data. `run.created` has the run; `step.started`, \
             `output.delta` and `step.completed` follow. The last event is named after the final status, such as \
             `run.completed`, and has the body of the response without `stream`.",
        );
    }
}

pub(crate) fn reply(run: Run, still_running: bool) -> Result<Reply> {
    let mut reply = Json(run).reply()?;
    if still_running {
        reply.status = 202;
    }
    Ok(reply)
}
