//! Nodes that wait for what the contact writes: `ask` and `wait_for_reply`.

use super::calls::{done, done_at};
use super::messages::{Closed, send};
use super::{Arrival, NodeCall, NodeFailure, Wait, Work};
use crate::runs::waits::{FlowWaitType, WaitRow};
use crate::schema::flow_steps;
use crate::waits::replies::{BUTTON_PREFIX, ReplyDetails};
use diesel::prelude::*;
use flow_answers::{Fitting, Locale, Reply, answer};
use flow_graphs::NodeType;
use flow_graphs::config::{Ask, FlowChoice, WaitForReply};
use flow_machine::Outcome;
use input::read_json;
use model::{MessageId, Timestamp};
use ring::digest;
use serde_json::{Value, json};

/// The most buttons of a message. More choices become a list.
const MOST_BUTTONS: usize = 3;
/// The most characters of the title of a button.
const LONGEST_BUTTON: usize = 20;
/// The most characters of the title of a row.
const LONGEST_ROW: usize = 24;
/// The most characters of a text with choices.
const LONGEST_BODY: usize = 1024;

impl NodeCall {
    /// Asks the question.
    pub(super) async fn ask(&self) -> Result<Work, NodeFailure> {
        let ask: Ask = self.config()?;
        let (asked, timeout) = (self.send_question(&ask, &ask.text, &self.key).await?, ask.timeout_seconds);
        let details = ReplyDetails {
            asked,
            buttons: self.buttons(&ask),
            ..ReplyDetails::new(self.content.settings.when_human_active)
        };
        self.await_reply(details, timeout).await
    }

    /// Goes on with what the contact has answered.
    pub(super) async fn answered(&self, wait: &WaitRow, arrival: Arrival) -> Result<Work, NodeFailure> {
        let ask: Ask = self.config()?;
        let details: ReplyDetails = wait.details.parse()?;
        let Some(replies) = replies(arrival)? else {
            return self.timed_out(details, ask.timeout_seconds).await;
        };
        if let Some(Fitting { port, value, raw }) = self.fitting(&ask, &details, &replies).await? {
            let message = replies.last().map(|reply| reply.id);
            return Ok(done_at(&port, json!({ "value": value, "raw": raw, "message_id": message })));
        }
        let raw: Vec<&str> = replies.iter().map(|reply| reply.text.as_str()).collect();
        if details.misses >= ask.retries {
            let message = replies.last().map(|reply| reply.id);
            let output = json!({ "value": null, "raw": raw.join("\n"), "message_id": message });
            return Ok(done_at("invalid", output));
        }
        let misses = details.misses + 1;
        let text = ask.invalid_text.clone().unwrap_or_else(|| ask.text.clone());
        let asked = self.send_question(&ask, &text, &format!("{}:{misses}", self.key)).await?;
        // What was written before the question was repeated does not answer it.
        let asked = asked.or_else(|| replies.last().map(|reply| reply.id));
        let details = ReplyDetails { asked, misses, ..details };
        self.await_reply(details, ask.timeout_seconds).await
    }

    /// Waits for the next messages.
    pub(super) async fn wait_for_reply(&self) -> Result<Work, NodeFailure> {
        let wanted: WaitForReply = self.config()?;
        let details = ReplyDetails {
            since: Some(self.before().await?),
            keywords: wanted.keywords,
            pattern: wanted.pattern,
            ..ReplyDetails::new(self.content.settings.when_human_active)
        };
        self.await_reply(details, wanted.timeout_seconds).await
    }

    /// Goes on with what the contact has written. With `buffer_seconds`, further messages are gathered.
    pub(super) async fn wrote(&self, wait: &WaitRow, arrival: Arrival) -> Result<Work, NodeFailure> {
        let wanted: WaitForReply = self.config()?;
        let mut details: ReplyDetails = wait.details.parse()?;
        let Some(replies) = replies(arrival)? else {
            if details.gathered.is_empty() {
                return self.timed_out(details, wanted.timeout_seconds).await;
            }
            return Ok(gathered(&details.gathered));
        };
        let is_first = details.gathered.is_empty();
        details.gathered.extend(replies);
        let end = self.engine.now().plus_seconds(wanted.buffer_seconds);
        let due_at = if is_first { end } else { wait.due_at.unwrap_or(end) };
        if wanted.buffer_seconds == 0 || due_at <= self.engine.now() {
            return Ok(gathered(&details.gathered));
        }
        Ok(Work::Waits(reply_wait(self.contact()?, &details, Some(due_at))))
    }

    /// The beginning of the node before this one: what happened since then may be what this node waits for. What another wait has
    /// taken does not count again.
    pub(super) async fn before(&self) -> Result<Timestamp, NodeFailure> {
        let (run, position, began_at) = (self.run.id.clone(), self.position, self.began_at);
        let before = self.engine.db().read(move |read| {
            let before: Option<(String, Timestamp, Option<Timestamp>)> = flow_steps::table
                .filter(flow_steps::run_id.eq(&run))
                .filter(flow_steps::position.lt(position))
                .order(flow_steps::position.desc())
                .select((flow_steps::node_type, flow_steps::started_at, flow_steps::ended_at))
                .first(read.connection())
                .optional()?;
            let took = [NodeType::Ask, NodeType::WaitForReply, NodeType::WaitForEvent].map(NodeType::as_str);
            Ok(match before {
                None => began_at,
                Some((kind, _, ended_at)) if took.contains(&kind.as_str()) => ended_at.unwrap_or(began_at),
                Some((_, started_at, _)) => started_at,
            })
        });
        Ok(before.await?)
    }

    /// A wait for a reply. While a person answers the contact, and the flow is held, its time does not begin.
    async fn await_reply(&self, details: ReplyDetails, timeout_seconds: i64) -> Result<Work, NodeFailure> {
        let card = self.contact_card().await?;
        if self.is_held(card.autopilot) {
            let details = ReplyDetails { left_seconds: Some(timeout_seconds), ..details };
            return Ok(Work::Waits(reply_wait(card.id, &details, None)));
        }
        let due_at = self.engine.now().plus_seconds(timeout_seconds);
        Ok(Work::Waits(reply_wait(card.id, &details, Some(due_at))))
    }

    /// The time for an answer is over. If a person has just taken the conversation over, it begins again when that ends.
    async fn timed_out(&self, details: ReplyDetails, timeout_seconds: i64) -> Result<Work, NodeFailure> {
        let card = self.contact_card().await?;
        if self.is_held(card.autopilot) {
            return self.await_reply(details, timeout_seconds).await;
        }
        Ok(done_at("timeout", json!({ "value": null })))
    }

    /// The answer among messages.
    async fn fitting(
        &self,
        ask: &Ask,
        details: &ReplyDetails,
        replies: &[Reply],
    ) -> Result<Option<Fitting>, NodeFailure> {
        let (engine, workspace) = (self.engine.clone(), self.run.workspace_id);
        let (ask, buttons, replies) = (ask.clone(), self.buttons(ask), replies.to_vec());
        let buttons = if details.buttons.is_empty() { buttons } else { details.buttons.clone() };
        let look = move |read: &mut store::Read| {
            let country = engine.0.business.country(read, workspace)?;
            let read = std::cell::RefCell::new(read);
            let phone = |said: &str| engine.0.people.phone(&mut read.borrow_mut(), workspace, said).ok();
            let locale = Locale { month_first: country.as_deref() == Some("US"), phone: &phone };
            Ok(answer(&ask, &buttons, &replies, &locale))
        };
        Ok(self.engine.db().read(look).await?)
    }

    /// The ids of the buttons of the question, in the order of the choices. No other question has the same.
    fn buttons(&self, ask: &Ask) -> Vec<String> {
        let hash = digest::digest(&digest::SHA256, self.key.as_bytes());
        let hash = model::hex(hash.as_ref());
        let of = hash.get(..16).unwrap_or(&hash);
        ask.choices.iter().map(|choice| format!("{BUTTON_PREFIX}{of}:{}", choice.id)).collect()
    }

    /// Sends a question, with its choices as buttons or as a list. Returns the message. `None` if a person is to ask.
    async fn send_question(
        &self,
        ask: &Ask,
        text: &str,
        key: &str,
    ) -> Result<Option<MessageId>, NodeFailure> {
        let mut body = json!({ "channel_id": ask.channel_id });
        let (name, said) = match self.choices(ask, text)? {
            Some(interactive) => ("interactive", interactive),
            None => ("text", json!(text)),
        };
        if let Value::Object(members) = &mut body {
            members.insert(name.to_owned(), said);
        }
        let closed = Closed { policy: ask.if_window_closed, template: ask.template.as_ref(), text };
        let call = Self { key: key.to_owned(), ..self.clone() };
        let sent = send(&call, self.contact()?, body, &closed).await?;
        let Work::Ended(Outcome::Done { output, .. }) = sent else { return Ok(None) };
        Ok(output.get("message_id").and_then(Value::as_i64).map(MessageId))
    }

    /// The choices of a question, as a message with buttons or a list has them.
    fn choices(&self, ask: &Ask, text: &str) -> Result<Option<Value>, NodeFailure> {
        if ask.choices.is_empty() {
            return Ok(None);
        }
        if text.chars().count() > LONGEST_BODY {
            let message = format!("A question with choices has at most {LONGEST_BODY} characters.");
            return Err(NodeFailure::new("validation_error", message));
        }
        let with_ids = || ask.choices.iter().zip(self.buttons(ask));
        let fits = |choice: &FlowChoice| choice.title.chars().count() <= LONGEST_BUTTON;
        if ask.choices.len() <= MOST_BUTTONS && ask.choices.iter().all(fits) {
            let buttons: Vec<Value> =
                with_ids().map(|(choice, id)| json!({ "id": id, "title": choice.title })).collect();
            return Ok(Some(json!({ "body": text, "buttons": buttons })));
        }
        let rows: Vec<Value> = with_ids()
            .map(|(choice, id)| {
                let title: String = choice.title.chars().take(LONGEST_ROW).collect();
                if title == choice.title {
                    return json!({ "id": id, "title": title });
                }
                json!({ "id": id, "title": title, "description": choice.title })
            })
            .collect();
        Ok(Some(json!({ "body": text, "list": { "button": "▾", "sections": [{ "rows": rows }] } })))
    }
}

fn reply_wait(contact: model::ContactId, details: &ReplyDetails, due_at: Option<Timestamp>) -> Wait {
    Wait { contact: Some(contact), details: json!(details), due_at, ..Wait::new(FlowWaitType::Reply) }
}

/// The messages that arrived. `None` if the time was over.
fn replies(arrival: Arrival) -> Result<Option<Vec<Reply>>, NodeFailure> {
    let Arrival::Came(mut what) = arrival else { return Ok(None) };
    let messages = what.get_mut("messages").map(Value::take).unwrap_or_default();
    Ok(Some(read_json(messages, "messages", "reply")?))
}

fn gathered(replies: &[Reply]) -> Work {
    let texts: Vec<&str> = replies.iter().map(|reply| reply.text.as_str()).collect();
    done(json!({ "text": texts.join("\n"), "messages": replies }))
}
