//! The answers that are being made at one time: the start of a run, then its end and the sending of what it said. A slow
//! agent keeps its own contact waiting, and no others.

use super::Worker;
use super::delivering::EndedRun;
use super::replies::{Due, Question};
use channels::work::Work;
use futures::future::BoxFuture;
use futures::stream::FuturesUnordered;
use futures::{FutureExt, StreamExt};
use model::{ConversationId, Result, RunId};
use ports::RunEnd;
use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// How often it is looked for answers that have become due.
const LOOK: Duration = Duration::from_millis(100);

/// The most answers that are written down in one transaction.
const TOGETHER: usize = 64;

/// Answers that are being made. What is written down of several at the same time shares a transaction, and so does all that
/// comes while one is on its way.
struct Answers<'a> {
    worker: &'a Worker,
    /// The conversations for which runs are being started.
    asking: HashSet<ConversationId>,
    /// The runs whose ends are awaited, or whose answers are being sent.
    runs: HashSet<RunId>,
    started: Vec<(Arc<Question>, RunId)>,
    is_noting: bool,
    ended: Vec<Arc<EndedRun>>,
    is_delivering: bool,
    under_way: FuturesUnordered<BoxFuture<'a, Step>>,
}

/// What was done for answers.
enum Step {
    /// A run was started, or none is needed.
    Asked(Arc<Question>, Result<Option<RunId>>),
    /// It is known which runs answer.
    Noted(Vec<(Arc<Question>, RunId)>, Result<()>),
    /// The contact sees that the answer is being written.
    Shown,
    /// A run has ended.
    Ended(RunId, Result<RunEnd>),
    /// Answers were sent, or were not to be sent.
    Delivered(Vec<Arc<EndedRun>>, Result<()>),
}

impl<'a> Answers<'a> {
    fn of(worker: &'a Worker) -> Self {
        Self {
            worker,
            asking: HashSet::new(),
            runs: HashSet::new(),
            started: Vec::new(),
            is_noting: false,
            ended: Vec::new(),
            is_delivering: false,
            under_way: FuturesUnordered::new(),
        }
    }

    /// Starts the run that answers, while others are being started.
    fn ask(&mut self, question: Question) {
        if self.asking.insert(question.conversation) {
            let (worker, question) = (self.worker, Arc::new(question));
            self.under_way.push(Box::pin(async move {
                let asked = worker.ask(&question).await;
                Step::Asked(question, asked)
            }));
        }
    }

    /// Waits for the end of a run.
    fn await_end(&mut self, run: RunId) {
        if self.runs.insert(run.clone()) {
            let ended = self.worker.parts.runs.ended(self.worker.channel.workspace_id, run.clone());
            self.under_way.push(Box::pin(async move { Step::Ended(run, ended.await) }));
        }
    }

    /// Goes on until something was done. What failed is looked at again.
    ///
    /// # Errors
    /// What the first that failed did so with.
    async fn next(&mut self) -> Result<()> {
        let Some(first) = self.under_way.next().await else { return Ok(()) };
        let mut result = self.take(first);
        while let Some(Some(step)) = self.under_way.next().now_or_never() {
            let taken = self.take(step);
            result = result.and(taken);
        }
        self.write_down();
        result
    }

    fn take(&mut self, step: Step) -> Result<()> {
        match step {
            Step::Asked(question, asked) => match asked {
                Ok(Some(run)) => {
                    self.started.push((question, run));
                    Ok(())
                }
                other => {
                    self.asking.remove(&question.conversation);
                    other.map(drop)
                }
            },
            Step::Noted(started, noted) => {
                self.is_noting = false;
                for (question, run) in started {
                    self.asking.remove(&question.conversation);
                    if noted.is_ok() {
                        self.await_end(run);
                        let worker = self.worker;
                        self.under_way.push(Box::pin(async move {
                            worker.show_as_read(&question).await;
                            Step::Shown
                        }));
                    }
                }
                noted
            }
            Step::Shown => Ok(()),
            Step::Ended(run, end) => {
                let end = self.worker.end_of(&run, end).inspect_err(|_| {
                    self.runs.remove(&run);
                })?;
                self.ended.push(Arc::new(EndedRun { run, end }));
                Ok(())
            }
            Step::Delivered(ended, delivered) => {
                self.is_delivering = false;
                for ended in ended {
                    self.runs.remove(&ended.run);
                }
                delivered
            }
        }
    }

    /// Begins to write down what was done, unless that is being done.
    fn write_down(&mut self) {
        let worker = self.worker;
        if !self.is_noting && !self.started.is_empty() {
            self.is_noting = true;
            let started = first_of(&mut self.started);
            self.under_way.push(Box::pin(async move {
                let noted = worker.note_started(&started).await;
                Step::Noted(started, noted)
            }));
        }
        if !self.is_delivering && !self.ended.is_empty() {
            self.is_delivering = true;
            let ended = first_of(&mut self.ended);
            self.under_way.push(Box::pin(async move {
                let delivered = worker.deliver(&ended).await;
                Step::Delivered(ended, delivered)
            }));
        }
    }
}

/// Takes as many as share a transaction.
fn first_of<T>(all: &mut Vec<T>) -> Vec<T> {
    all.drain(..all.len().min(TOGETHER)).collect()
}

impl Worker {
    /// Answers what is due. Says whether anything was.
    pub(super) async fn answer_due(&self) -> Result<bool> {
        let mut answers = Answers::of(self);
        let mut did = self.begin_answers(&mut answers).await?;
        while !answers.under_way.is_empty() {
            answers.next().await?;
            did = true;
        }
        Ok(did)
    }

    /// Begins to answer what is due, and waits for the answers that an earlier worker began. Says whether any was due.
    async fn begin_answers<'a>(&'a self, answers: &mut Answers<'a>) -> Result<bool> {
        self.offer_due(&answers.asking).await?;
        let Due { runs, questions, idle } = self.due_answers(&answers.asking).await?;
        let any = !questions.is_empty() || !idle.is_empty();
        for run in runs {
            answers.await_end(run);
        }
        for question in questions {
            answers.ask(question);
        }
        if !idle.is_empty() {
            self.leave_to_people(idle).await?;
        }
        Ok(any)
    }

    /// Starts answers that are due, and sends those that are there.
    pub(super) async fn answer(&self, done: &CancellationToken) {
        let mut answers = Answers::of(self);
        while !done.is_cancelled() {
            self.log_answers(self.begin_answers(&mut answers).await.map(drop));
            let next_look = tokio::time::sleep(LOOK);
            tokio::pin!(next_look);
            loop {
                tokio::select! {
                    () = done.cancelled() => break,
                    () = self.signals.notified(Work::Replies) => break,
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
