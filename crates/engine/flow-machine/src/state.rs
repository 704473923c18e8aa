//! Where a run is.

use flow_graphs::NodeType;
use flow_graphs::config::FlowEnding;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// The state of a run. It is stored as JSON.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct State {
    /// The variables of the flow: `$flow`.
    pub variables: Map<String, Value>,
    /// The nodes that were executed, among them those that only compute.
    pub steps: u32,
    /// The end of the run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ending: Option<Ending>,
    /// The places at which the run is.
    pub(crate) tokens: Vec<Token>,
    /// What nodes gave outside loops, by their ids: `{"output": …}`.
    pub(crate) outputs: Map<String, Value>,
    /// The last output, which is that of the run.
    pub(crate) last: Value,
    /// The loops that are under way. Those inside others come after them.
    pub(crate) loops: Vec<Loop>,
    pub(crate) next_id: u32,
    /// Settings that a person has edited, for the next time that their node is executed.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub(crate) edited: Map<String, Value>,
}

/// A place at which a run is.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Token {
    pub(crate) id: u32,
    /// The id of the node.
    pub(crate) node: String,
    /// The iteration of a loop to which it belongs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) iteration: Option<Iteration>,
    pub(crate) phase: Phase,
    /// The number of the attempt, from 1.
    pub(crate) attempt: u32,
    /// What failed before: `$error`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) error: Option<Fault>,
    /// At a `join`: the last nodes of the branches that have arrived.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) branches: Vec<String>,
}

/// What a token does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Phase {
    /// Its node comes next.
    Ready,
    /// The outside carries out its task.
    Busy,
    /// It is the first at a `join` and waits for others.
    Joining {
        /// The branches that have arrived.
        arrived: u32,
    },
    /// It stands at a loop whose body is executed.
    Looping,
    /// It waits for a person, after a failure.
    Paused,
}

/// An iteration of a loop that is under way.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(crate) struct Iteration {
    /// The token at the loop.
    pub(crate) of: u32,
    /// The number of the iteration, from 0.
    pub(crate) index: u32,
}

/// A loop that is under way.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Loop {
    /// The token at the loop.
    pub(crate) token: u32,
    /// The elements of a `for_each`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) elements: Vec<Value>,
    /// The number of the iteration that begins next.
    pub(crate) next: u32,
    /// What the nodes of the iterations under way gave, by the number of the iteration.
    pub(crate) running: Vec<Running>,
    /// The results of iterations that have ended, with their numbers.
    pub(crate) results: Vec<(u32, Value)>,
    /// The iterations that failed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) failed: Vec<(u32, Fault)>,
}

/// An iteration that is under way.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Running {
    pub(crate) index: u32,
    pub(crate) outputs: Map<String, Value>,
    pub(crate) last: Value,
}

/// Something that failed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fault {
    /// The id of the node.
    pub node_id: String,
    /// The reason as a word.
    pub code: String,
    /// A sentence for people.
    pub message: String,
}

/// The end of a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Ending {
    /// The run has done its work.
    Completed {
        /// Its output.
        output: Value,
    },
    /// An `end` node says that it has failed.
    Failed {
        /// Its output.
        output: Value,
    },
    /// A node failed.
    Fault(Fault),
}

impl Ending {
    pub(crate) fn of_end(status: FlowEnding, output: Value) -> Self {
        match status {
            FlowEnding::Completed => Self::Completed { output },
            FlowEnding::Failed => Self::Failed { output },
        }
    }
}

/// Something that the outside carries out.
#[derive(Debug, Clone, PartialEq)]
pub struct Task {
    /// The token, by which the outcome is put in.
    pub token: u32,
    /// The id of the node.
    pub node: String,
    /// Its type.
    pub kind: NodeType,
    /// The iterations of loops to which it belongs, such as `each[3].inner[0]`. Empty outside loops.
    pub path: String,
    /// The settings, with the values of their templates.
    pub config: Value,
    /// The number of the attempt, from 1.
    pub attempt: u32,
    /// After how many seconds the task begins.
    pub delay_seconds: u64,
}

/// A node that only computed, for the trace of the run.
#[derive(Debug, Clone, PartialEq)]
pub struct ComputedStep {
    /// The id of the node.
    pub node: String,
    /// Its type.
    pub kind: NodeType,
    /// The iterations of loops to which it belongs.
    pub path: String,
    /// The settings, with the values of their templates. `None` if these could not be computed.
    pub config: Option<Value>,
    /// The ports by which the run goes on, and the output; or what failed.
    pub result: Result<(Vec<String>, Value), Fault>,
    /// Whether the node was passed over.
    pub is_skipped: bool,
}

/// What came of a task.
#[derive(Debug, Clone, PartialEq)]
pub enum Outcome {
    /// It was carried out.
    Done {
        /// The port by which the run goes on.
        port: String,
        /// The output.
        output: Value,
    },
    /// It failed.
    Failed {
        /// The reason as a word.
        code: String,
        /// A sentence for people.
        message: String,
        /// Whether another attempt may succeed.
        is_transient: bool,
        /// After how many seconds the other side asks to be tried again.
        retry_after: Option<u64>,
    },
    /// Nobody knows whether it was carried out.
    Unknown,
}

impl Outcome {
    /// A success at the port `next`.
    pub fn done(output: Value) -> Self {
        Self::Done { port: "next".to_owned(), output }
    }
}

impl State {
    pub(crate) fn token(&self, id: u32) -> Option<&Token> {
        self.tokens.iter().find(|token| token.id == id)
    }

    pub(crate) fn token_mut(&mut self, id: u32) -> Option<&mut Token> {
        self.tokens.iter_mut().find(|token| token.id == id)
    }

    /// Adds a token that is ready at a node.
    pub(crate) fn add(&mut self, node: &str, iteration: Option<Iteration>, error: Option<Fault>) -> u32 {
        let id = self.next_id;
        self.next_id += 1;
        let node = node.to_owned();
        let branches = Vec::new();
        self.tokens.push(Token { id, node, iteration, phase: Phase::Ready, attempt: 1, error, branches });
        id
    }

    pub(crate) fn remove(&mut self, id: u32) {
        self.tokens.retain(|token| token.id != id);
    }

    pub(crate) fn loop_of(&self, token: u32) -> Option<&Loop> {
        self.loops.iter().find(|one| one.token == token)
    }

    pub(crate) fn loop_mut(&mut self, token: u32) -> Option<&mut Loop> {
        self.loops.iter_mut().find(|one| one.token == token)
    }

    pub(crate) fn running(&self, iteration: Iteration) -> Option<&Running> {
        self.loop_of(iteration.of)?.running.iter().find(|running| running.index == iteration.index)
    }

    pub(crate) fn running_mut(&mut self, iteration: Iteration) -> Option<&mut Running> {
        self.loop_mut(iteration.of)?.running.iter_mut().find(|running| running.index == iteration.index)
    }

    /// Returns the iteration that contains another.
    pub(crate) fn around(&self, iteration: Iteration) -> Option<Iteration> {
        self.token(iteration.of)?.iteration
    }

    /// Returns whether a token belongs to an iteration, or to one inside it.
    pub(crate) fn is_within(&self, token: &Token, iteration: Option<Iteration>) -> bool {
        let Some(wanted) = iteration else { return true };
        let mut at = token.iteration;
        while let Some(here) = at {
            if here == wanted {
                return true;
            }
            at = self.around(here);
        }
        false
    }

    /// Stores what a node gave, where its token is.
    pub(crate) fn keep(&mut self, node: &str, iteration: Option<Iteration>, output: &Value) {
        let stored = serde_json::json!({ "output": output });
        let place = match iteration {
            Some(iteration) => self.running_mut(iteration).map(|one| (&mut one.outputs, &mut one.last)),
            None => Some((&mut self.outputs, &mut self.last)),
        };
        if let Some((outputs, last)) = place {
            outputs.insert(node.to_owned(), stored);
            last.clone_from(output);
        }
    }

    /// Returns what a node gave in an iteration, or outside loops.
    pub(crate) fn output_in(&self, iteration: Option<Iteration>, node: &str) -> Option<&Value> {
        let outputs = match iteration {
            Some(iteration) => &self.running(iteration)?.outputs,
            None => &self.outputs,
        };
        outputs.get(node)?.get("output")
    }

    /// Returns why the run pauses: the failures of the nodes that wait for a person.
    pub fn pauses(&self) -> impl Iterator<Item = &Fault> {
        let paused = self.tokens.iter().filter(|token| token.phase == Phase::Paused);
        paused.filter_map(|token| token.error.as_ref())
    }

    /// Ends branches, with the loops that they are in the middle of.
    pub(crate) fn remove_all(&mut self, mut ids: Vec<u32>) {
        loop {
            let inside = |token: &Token| token.iteration.is_some_and(|one| ids.contains(&one.of));
            let found = self.tokens.iter().find(|token| inside(token) && !ids.contains(&token.id));
            let Some(found) = found.map(|token| token.id) else { break };
            ids.push(found);
        }
        self.loops.retain(|one| !ids.contains(&one.token));
        self.tokens.retain(|token| !ids.contains(&token.id));
    }

    /// Gives all places of the run new ids, by which the keys of effects are made.
    pub fn renew_all_keys(&mut self) {
        let all: Vec<u32> = self.tokens.iter().map(|token| token.id).collect();
        self.renew_keys(&all);
    }

    /// Gives places of the run new ids.
    pub(crate) fn renew_keys(&mut self, ids: &[u32]) {
        for old in ids {
            let new = self.next_id;
            self.next_id += 1;
            for token in &mut self.tokens {
                if token.id == *old {
                    token.id = new;
                }
                if let Some(iteration) = &mut token.iteration
                    && iteration.of == *old
                {
                    iteration.of = new;
                }
            }
            for one in &mut self.loops {
                if one.token == *old {
                    one.token = new;
                }
            }
        }
    }

    /// Returns whether the run still has a token.
    pub fn has(&self, token: u32) -> bool {
        self.token(token).is_some()
    }

    /// Returns the nodes at which the run is.
    pub fn nodes(&self) -> impl Iterator<Item = &str> {
        self.tokens.iter().map(|token| token.node.as_str())
    }

    /// Returns whether tasks are with the outside.
    pub fn is_busy(&self) -> bool {
        self.tokens.iter().any(|token| token.phase == Phase::Busy)
    }

    /// Returns the tokens whose tasks are with the outside, with their nodes.
    pub fn busy(&self) -> impl Iterator<Item = (u32, &str)> {
        let busy = self.tokens.iter().filter(|token| token.phase == Phase::Busy);
        busy.map(|token| (token.id, token.node.as_str()))
    }
}
