//! The answers that are being made at one time: the start of a run, then its end and the sending of what it said. A slow
//! agent keeps its own contact waiting, and no others.

use super::Worker;
use super::replies::{Due, Question};
use crate::wakes::Work;
use futures::StreamExt;
use futures::future::BoxFuture;
use futures::stream::FuturesUnordered;
use model::{ConversationId, Result, RunId};
use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// How often it is looked for answers that have become due.
const LOOK: Duration = Duration::from_millis(100);

/// Answers that are being made.
#[derive(Default)]
struct Answers<'a> {
    worker: Option<&'a Worker>,
    /// The conversations for which runs are being started.
    asking: HashSet<ConversationId>,
    /// The runs whose ends are awaited, or whose answers are being sent.
    runs: HashSet<RunId>,
    under_way: FuturesUnordered<BoxFuture<'a, Step>>,
}

/// What was done for an answer.
enum Step {
    /// Its run was started, or none is needed.
    Asked(Arc<Question>, Result<Option<RunId>>),
    /// It was sent, or was not to be sent.
    Delivered(RunId, Result<()>),
}

impl<'a> Answers<'a> {
    /// Starts the run that answers, while others are being started.
    fn ask(&mut self, worker: &'a Worker, question: Question) {
        if self.asking.insert(question.conversation) {
            self.worker = Some(worker);
            let question = Arc::new(question);
            self.under_way.push(Box::pin(async move {
                let asked = worker.ask(question.clone()).await;
                Step::Asked(question, asked)
            }));
        }
    }

    /// Waits for the end of a run, and sends what it said. Meanwhile what it answers is shown as read, if that is said.
    fn await_end(&mut self, worker: &'a Worker, run: RunId, question: Option<Arc<Question>>) {
        if self.runs.insert(run.clone()) {
            let ended = worker.parts.runs.ended(worker.channel.workspace_id, run.clone());
            self.under_way.push(Box::pin(async move {
                let delivered = async { worker.deliver(&run, ended.await).await };
                let (delivered, ()) = tokio::join!(delivered, worker.show_as_read(question.as_deref()));
                Step::Delivered(run, delivered)
            }));
        }
    }

    /// Goes on until something was done. What failed is looked at again.
    ///
    /// # Errors
    /// What that failed with.
    async fn next(&mut self) -> Result<()> {
        match self.under_way.next().await {
            None => Ok(()),
            Some(Step::Delivered(run, delivered)) => {
                self.runs.remove(&run);
                delivered
            }
            Some(Step::Asked(question, asked)) => {
                self.asking.remove(&question.conversation);
                if let (Some(run), Some(worker)) = (asked?, self.worker) {
                    self.await_end(worker, run, Some(question));
                }
                Ok(())
            }
        }
    }
}

impl Worker {
    /// Answers what is due. Says whether anything was.
    pub(super) async fn answer_due(&self) -> Result<bool> {
        let mut answers = Answers::default();
        let mut did = self.begin_answers(&mut answers).await?;
        while !answers.under_way.is_empty() {
            answers.next().await?;
            did = true;
        }
        Ok(did)
    }

    /// Begins to answer what is due, and waits for the answers that an earlier worker began. Says whether any was due.
    async fn begin_answers<'a>(&'a self, answers: &mut Answers<'a>) -> Result<bool> {
        let Due { runs, mut questions, mut idle } = self.due_answers().await?;
        questions.retain(|question| !answers.asking.contains(&question.conversation));
        idle.retain(|(_, conversation, _)| !answers.asking.contains(conversation));
        let any = !questions.is_empty() || !idle.is_empty();
        for run in runs {
            answers.await_end(self, run, None);
        }
        for question in questions {
            answers.ask(self, question);
        }
        if !idle.is_empty() {
            self.leave_to_people(idle).await?;
        }
        Ok(any)
    }

    /// Starts answers that are due, and sends those that are there.
    pub(super) async fn answer(&self, done: &CancellationToken) {
        let mut answers = Answers::default();
        while !done.is_cancelled() {
            self.log_answers(self.begin_answers(&mut answers).await.map(drop));
            let next_look = tokio::time::sleep(LOOK);
            tokio::pin!(next_look);
            loop {
                tokio::select! {
                    () = done.cancelled() => break,
                    () = self.bells.heard(Work::Replies) => break,
                    () = &mut next_look => break,
                    result = answers.next(), if !answers.under_way.is_empty() => self.log_answers(result),
                }
            }
        }
        // A run that was started is known to its conversation before another worker looks for what to answer.
        while !answers.asking.is_empty() {
            self.log_answers(answers.next().await);
        }
    }

    fn log_answers(&self, result: Result<()>) {
        if let Err(error) = result {
            tracing::error!(channel = %self.channel.id, %error, "an answer could not be started or sent");
        }
    }
}
