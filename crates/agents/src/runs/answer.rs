//! A run as an answer.

use super::model::{Run, RunRow};
use model::Result;
use operation::{Answer, Describe, Json, Reply};

/// 200 with the run; 202 where it goes on longer than a request should wait.
pub struct RunAnswer(pub(super) Reply);

impl Answer for RunAnswer {
    fn reply(self) -> Result<Reply> {
        Ok(self.0)
    }

    fn describe(describe: &mut Describe) {
        <Json<Run> as Answer>::describe(describe);
        describe.also(202);
    }
}

pub(super) fn reply(row: RunRow, still_running: bool) -> Result<Reply> {
    let mut reply = Json(row.run()?).reply()?;
    if still_running {
        reply.status = 202;
    }
    Ok(reply)
}
