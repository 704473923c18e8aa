//! Tool calls of an answer: whole ones, and those that a stream brings in pieces.
//!
//! OpenAI sends the first piece of a call with its index, id and name, and the others with the index and a part of the
//! arguments. Other servers give all calls one index, or each piece another one; they leave ids empty, repeat names with
//! each piece, or send a new id with each. [`Calls`] reads all of these.

use crate::ToolCall;
use crate::json::{self, Node};

/// A call or a piece of one, as a server sends it.
#[derive(Debug, Clone, Default)]
pub(super) struct Piece {
    index: Option<i64>,
    id: String,
    name: String,
    arguments: String,
}

impl Piece {
    fn of(node: Node<'_>) -> Self {
        let function = node.get("function");
        let function = if function.is_object() { function } else { node };
        let arguments = function.get("arguments");
        Self {
            index: node.get("index").count(),
            id: node.get("id").text().unwrap_or_default(),
            name: function.get("name").text().unwrap_or_default(),
            // Some servers send the object, and not its text.
            arguments: match arguments.is_some() {
                true => arguments.text().unwrap_or_else(|| json::tidy(arguments.json())),
                false => String::new(),
            },
        }
    }

    fn len(&self) -> usize {
        // With something for the call itself, so that no number of empty calls is free.
        self.id.len() + self.name.len() + self.arguments.len() + 16
    }

    /// Returns whether the arguments can only be the rest of others.
    fn is_rest(&self) -> bool {
        let arguments = self.arguments.trim_start();
        !(arguments.is_empty() || arguments.starts_with('{') || arguments.starts_with("\"{"))
    }
}

/// The pieces in a message or a part of one. `function_call` is how they were called before `tool_calls`.
pub(super) fn pieces(message: Node<'_>) -> Vec<Piece> {
    let calls = message.get("tool_calls").items();
    let old = message.get("function_call");
    let calls = if calls.is_empty() && old.is_object() { vec![old] } else { calls };
    calls.into_iter().filter(|call| call.is_object()).map(Piece::of).collect()
}

/// The calls of an answer that was sent at once.
pub(super) fn whole(message: Node<'_>) -> Vec<ToolCall> {
    let call = |piece: Piece| ToolCall { id: piece.id, name: piece.name, arguments: piece.arguments };
    pieces(message).into_iter().map(call).collect()
}

/// The arguments of a call that has ended: of a call without any an empty object. Some servers write the text of the
/// arguments as a JSON string once more.
pub(super) fn settle(call: &mut ToolCall) {
    let arguments = call.arguments.trim();
    if arguments.is_empty() || arguments == "null" {
        call.arguments = "{}".to_owned();
    } else if let Some(inner) = serde_json::from_str::<String>(arguments).ok().filter(|text| is_object(text))
    {
        call.arguments = inner;
    }
}

fn is_object(text: &str) -> bool {
    text.trim_end().ends_with('}') && json::object_of(text).is_some()
}

/// The calls of a streamed answer so far.
#[derive(Debug, Default)]
pub(super) struct Calls {
    calls: Vec<(Option<i64>, ToolCall)>,
    /// The names of the tools that the model was given.
    names: Vec<String>,
}

impl Calls {
    /// The calls of a model that was given tools of these names.
    pub(super) fn of(names: impl Iterator<Item = String>) -> Self {
        Self { calls: Vec::new(), names: names.collect() }
    }

    /// Adds a piece, and returns its size in bytes.
    ///
    /// A piece with a name begins a call, unless it obviously continues the one of its id or index; a piece without one
    /// continues the call of its id, or else of its index, or else the last one.
    pub(super) fn add(&mut self, piece: Piece) -> usize {
        let size = piece.len();
        let place = if piece.name.is_empty() { self.continued(&piece) } else { self.repeated(&piece) };
        match place.and_then(|place| self.calls.get_mut(place)) {
            Some((_, call)) => extend(call, piece),
            None => {
                let Piece { index, id, name, arguments } = piece;
                self.calls.push((index, ToolCall { id, name, arguments }));
            }
        }
        size
    }

    fn last(&self, is_wanted: impl Fn(Option<i64>, &ToolCall) -> bool) -> Option<usize> {
        self.calls.iter().rposition(|(index, call)| is_wanted(*index, call))
    }

    fn of_id(&self, piece: &Piece) -> Option<usize> {
        if piece.id.is_empty() {
            return None;
        }
        let same = |call: &ToolCall| call.id == piece.id;
        self.last(|index, call| same(call) && index == piece.index)
            .or_else(|| self.last(|_, call| same(call)))
    }

    fn of_index(&self, piece: &Piece) -> Option<usize> {
        piece.index.and_then(|wanted| self.last(|index, _| index == Some(wanted)))
    }

    /// The call that a piece without a name belongs to; `None` where there is none yet.
    fn continued(&self, piece: &Piece) -> Option<usize> {
        self.of_id(piece).or_else(|| self.of_index(piece)).or_else(|| self.calls.len().checked_sub(1))
    }

    /// The call that a piece with a name belongs to; `None` where it begins one.
    fn repeated(&self, piece: &Piece) -> Option<usize> {
        let last = self.calls.len().checked_sub(1);
        let of_index = || if piece.index.is_none() { last } else { self.of_index(piece) };
        let known = self.of_id(piece).or_else(of_index);
        let place = if piece.is_rest() { known.or(last) } else { known }?;
        let (index, call) = self.calls.get(place)?;
        let is_same = !piece.id.is_empty() && piece.id == call.id;
        let may_be_same = is_same || piece.id.is_empty() || call.id.is_empty();
        let continues = if call.name.is_empty() || piece.is_rest() {
            true
        } else if self.extends_name(call, piece) {
            may_be_same
        } else if call.name != piece.name {
            false
        } else if is_object(&call.arguments) {
            // The same call once more, or only its name. Without an id it may be another one.
            is_same
                && *index == piece.index
                && [call.arguments.as_str(), ""].contains(&piece.arguments.as_str())
        } else {
            may_be_same
        };
        continues.then_some(place)
    }

    /// Returns whether this piece continues a name: together they begin the name of a tool, and the piece alone is no name.
    fn extends_name(&self, call: &ToolCall, piece: &Piece) -> bool {
        let joined = format!("{}{}", call.name, piece.name);
        call.arguments.is_empty()
            && !self.names.contains(&piece.name)
            && self.names.iter().any(|name| name.starts_with(&joined))
    }

    /// The calls. One without arguments is left out where the same index has brought arguments for the same tool: its
    /// server began the call twice.
    pub(super) fn end(self) -> Vec<ToolCall> {
        let calls = &self.calls;
        let has_arguments = |of: &(Option<i64>, ToolCall)| {
            calls.iter().any(|(index, call)| {
                *index == of.0 && call.name == of.1.name && !call.arguments.trim().is_empty()
            })
        };
        let is_kept =
            |call: &&(Option<i64>, ToolCall)| !call.1.arguments.trim().is_empty() || !has_arguments(call);
        calls.iter().filter(is_kept).map(|(_, call)| call.clone()).collect()
    }
}

fn extend(call: &mut ToolCall, piece: Piece) {
    if call.id.is_empty() {
        call.id = piece.id;
    }
    if call.name.is_empty() || call.arguments.is_empty() && call.name != piece.name {
        call.name.push_str(&piece.name);
    }
    let is_whole = is_object(&call.arguments);
    if is_whole && call.arguments.trim() == "{}" && !piece.arguments.trim().is_empty() {
        // Some servers begin with an empty object, and send the arguments after it.
        call.arguments = piece.arguments;
    } else if !(is_whole && call.arguments == piece.arguments) {
        // At the end some servers repeat the whole.
        call.arguments.push_str(&piece.arguments);
    }
}

#[cfg(test)]
mod tests;
