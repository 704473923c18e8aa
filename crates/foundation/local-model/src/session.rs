//! Processing of requests: prompt, grammar and generation. Runs on the engine's thread.

use std::{
    path::Path,
    sync::atomic::{AtomicBool, Ordering},
    time::{Duration, Instant},
};

use crate::{
    chat,
    choose::{self, Plan},
    constrain::{Constraint, Grammars},
    guard::Guard,
    llama::{self, Cache, Llama},
    prompt,
    sample::{Sampler, discourage_repetition, mix},
    search_terms,
    stream::Utf8Stream,
    tokenizer::Tokenizer,
    types::{Completion, Error, Finish, Request, Tool, ToolCall},
    weights::Gguf,
};

/// The number of tokens before the limit at which constrained output begins to close open structures.
const WIND_DOWN: usize = 32;
/// Models of a billion parameters or more have at least this width.
const SMALL: usize = 1_024;
/// The maximum number of tools compared by likelihood, because each costs the time of a few tokens.
const RANKED: usize = 8;

/// The model with its cache.
pub(crate) struct Session {
    model: Llama,
    tokenizer: Tokenizer,
    grammars: Grammars,
    cache: Cache,
    /// The tokens whose keys and values are cached. A request that begins with the same tokens, such as the next turn
    /// of a chat, continues after them.
    cached: Vec<u32>,
    label: String,
}

/// The interface of a request to its caller.
pub(crate) struct Listener<'a> {
    /// Set by the caller to cancel.
    pub(crate) cancelled: &'a AtomicBool,
    /// Receives the text as it is generated.
    pub(crate) token: &'a mut dyn FnMut(String),
}

impl Listener<'_> {
    fn check(&self) -> Result<(), Error> {
        if self.cancelled.load(Ordering::Relaxed) { Err(Error::Cancelled) } else { Ok(()) }
    }
}

impl Session {
    /// Loads the model.
    pub(crate) fn load(path: &Path) -> Result<Self, Error> {
        let mut file = Gguf::open(path)?;
        let model = Llama::load(&mut file)?;
        let tokenizer = Tokenizer::load(&file)?;
        let grammars = Grammars::new(&tokenizer)?;
        let cache = model.cache()?;
        let text = |key| file.string(key).ok();
        let label = match (text("general.basename"), text("general.size_label"), text("general.name")) {
            (Some(base), Some(size), _) => format!("{base}-{size}").to_lowercase(),
            (_, _, Some(name)) => name.to_owned(),
            _ => path.file_stem().map(|stem| stem.to_string_lossy().into_owned()).unwrap_or_default(),
        };
        Ok(Self { model, tokenizer, grammars, cache, cached: Vec::new(), label })
    }

    /// Returns the maximum number of tokens of a prompt and its answer together.
    pub(crate) fn context(&self) -> usize {
        self.model.shape.context
    }

    /// Returns whether the model has less than about a billion parameters.
    pub(crate) fn is_small(&self) -> bool {
        self.model.shape.width < SMALL
    }

    /// Returns a name of the model.
    pub(crate) fn label(&self) -> &str {
        &self.label
    }

    /// Clears the cache. Called after a failure, when its contents are unknown.
    pub(crate) fn forget(&mut self) {
        self.keep(0);
    }

    /// Processes one request.
    pub(crate) fn run(
        &mut self,
        request: &Request,
        listener: &mut Listener<'_>,
    ) -> Result<Completion, Error> {
        listener.check()?;
        let most = usize::try_from(request.max_output_tokens).unwrap_or(usize::MAX);
        // A prompt that is too long is truncated so that a quarter of the context is left for the answer, or less if
        // the request allows less.
        let reserve = most.min(self.context() / 4);
        // Prepare the grammar before the prompt, so that an unsupported schema fails at once.
        let (plan, mut constraint) = self.prepare(request)?;
        let callable: Vec<&Tool> = match &plan {
            Plan::Text => Vec::new(),
            Plan::Free => request.tools.iter().collect(),
            Plan::Call(tools) => tools.clone(),
        };
        let turns = chat::render(&request.messages, callable);
        let prompt = prompt::fit(&turns, &self.tokenizer, self.context() - reserve)?;
        let limit = most.min(self.context() - prompt.len());
        let kind = match plan {
            Plan::Text => Kind::Text,
            Plan::Free => Kind::Open,
            Plan::Call(_) => Kind::Call,
        };

        let started = Instant::now();
        let logits = self.process_prompt(&prompt, listener)?;
        let prompt_time = started.elapsed();

        let started = Instant::now();
        let sampler = Sampler::new(request.temperature, request.seed);
        let mut answer = Answer {
            kind,
            limit,
            sampler,
            output: Vec::new(),
            text: String::new(),
            stream: Utf8Stream::default(),
            guard: Guard::of(&request.messages),
        };
        let mut settled = Vec::new();
        if let Plan::Call(tools) = plan {
            let tool = self.most_likely(&tools)?;
            let for_terms =
                self.is_small().then(|| search_terms::with_terms(tool, &request.messages)).flatten();
            constraint = Some(self.grammars.call([for_terms.as_ref().unwrap_or(tool)])?);
            settled = self.call_start(tool)?;
        }
        let finish = self.generate(logits, settled, constraint, &mut answer, listener)?;
        // Derive the id from prompt and seed: equal requests get equal ids, and the calls of a conversation get
        // different ones.
        let id = format!(
            "call_{:016x}",
            prompt.iter().fold(request.seed, |id, token| mix(id ^ u64::from(*token)))
        );
        let prompt_tokens = u32::try_from(prompt.len()).unwrap_or(u32::MAX);
        Ok(answer.complete(finish, id, prompt_tokens, prompt_time, started.elapsed()))
    }

    /// Returns the plan and its grammar. Leaves out tools whose parameters have no grammar.
    fn prepare<'a>(&self, request: &'a Request) -> Result<(Plan<Vec<&'a Tool>>, Option<Constraint>), Error> {
        let schema = request.output_schema.as_ref();
        match choose::plan(&request.messages, &request.tools) {
            Plan::Call(places) => {
                let tools = places.iter().filter_map(|place| request.tools.get(*place));
                let tools = tools.filter(|tool| !self.lacks_terms(tool, request));
                let tools: Vec<&Tool> = tools.filter(|tool| self.grammars.call([*tool]).is_ok()).collect();
                if !tools.is_empty() {
                    return Ok((Plan::Call(tools), None));
                }
            }
            Plan::Free => {
                if let Ok(constraint) = self.grammars.free(&request.tools, schema) {
                    return Ok((Plan::Free, Some(constraint)));
                }
            }
            Plan::Text => (),
        }
        Ok((Plan::Text, schema.map(|schema| self.grammars.json(schema)).transpose()?))
    }

    /// Returns whether a tool searches but the user named no subject.
    fn lacks_terms(&self, tool: &Tool, request: &Request) -> bool {
        self.is_small()
            && search_terms::argument(tool).is_some()
            && search_terms::with_terms(tool, &request.messages).is_none()
    }

    /// Truncates the cache.
    fn keep(&mut self, length: usize) {
        self.cached.truncate(length);
        self.cache.truncate(length);
    }

    /// Computes and caches tokens. Returns the logits after the last one.
    fn forward(&mut self, tokens: &[u32]) -> Result<Vec<f32>, Error> {
        let mut logits = Vec::new();
        for chunk in tokens.chunks(self.model.shape.chunk()) {
            logits = llama::last_row(&self.model.forward(chunk, &mut self.cache, false)?)?;
            self.cached.extend_from_slice(chunk);
        }
        Ok(logits)
    }

    fn process_prompt(&mut self, prompt: &[u32], listener: &Listener<'_>) -> Result<Vec<f32>, Error> {
        let common = prompt.iter().zip(&self.cached).take_while(|(a, b)| a == b).count();
        // Always compute the last token, because the answer starts from its logits.
        let common = common.min(prompt.len().saturating_sub(1));
        self.keep(common);
        let mut logits = Vec::new();
        for chunk in prompt.get(common..).unwrap_or_default().chunks(self.model.shape.chunk()) {
            // Check for cancellation between two chunks.
            listener.check()?;
            logits = self.forward(chunk)?;
        }
        Ok(logits)
    }

    /// Returns the tool whose name is most likely, by the mean over the name's tokens.
    fn most_likely<'a>(&mut self, tools: &[&'a Tool]) -> Result<&'a Tool, Error> {
        let first = *tools.first().ok_or_else(|| Error::Inference("no tool to choose".to_owned()))?;
        if tools.len() == 1 {
            return Ok(first);
        }
        let base = self.cached.len();
        let opening = self.tokenizer.encode(&format!("{}{{\"name\":\"", chat::CALL_START))?;
        let longest = tools.iter().map(|tool| tool.name.len()).max().unwrap_or(0);
        if base + opening.len() + longest > self.context() {
            return Ok(first);
        }
        let before = self.model.forward(&opening, &mut self.cache, false)?;
        let mut best = (f32::NEG_INFINITY, first);
        for tool in tools.iter().take(RANKED) {
            // The closing quote distinguishes a name from a longer one that begins with it.
            let mut name = self.tokenizer.encode(&format!("{}\"", tool.name))?;
            name.truncate(self.model.shape.chunk());
            let mut logs = llama::log_probabilities(&before, &name)?;
            if let (Some((_, after)), Some((_, front))) = (name.split_first(), name.split_last())
                && !front.is_empty()
            {
                let rows = self.model.forward(front, &mut self.cache, true)?;
                logs.extend(llama::log_probabilities(&rows, after)?);
                self.cache.truncate(base + opening.len());
            }
            let mean = logs.iter().sum::<f32>() / logs.len().max(1) as f32;
            if mean > best.0 {
                best = (mean, tool);
            }
        }
        self.cache.truncate(base);
        Ok(best.1)
    }

    /// Returns the tokens that a call of this tool begins with.
    fn call_start(&self, tool: &Tool) -> Result<Vec<u32>, Error> {
        let name = serde_json::Value::from(tool.name.as_str());
        self.tokenizer.encode(&format!("{}{{\"name\":{name},\"arguments\":", chat::CALL_START))
    }

    /// Generates an answer from the logits after the prompt. Begins with the `settled` tokens, without asking the
    /// model.
    fn generate(
        &mut self,
        mut logits: Vec<f32>,
        mut settled: Vec<u32>,
        mut constraint: Option<Constraint>,
        answer: &mut Answer,
        listener: &mut Listener<'_>,
    ) -> Result<Finish, Error> {
        settled.truncate(answer.limit);
        for token in &settled {
            let bytes = self.tokenizer.bytes(*token);
            if let Some(constraint) = &mut constraint {
                constraint.accept(*token, bytes)?;
            }
            answer.write(*token, bytes, listener);
        }
        if !settled.is_empty() && answer.has_room() {
            logits = self.forward(&settled)?;
        }
        // Short answers have no room for the whole reserve, so use at most half of the limit.
        let wind_down = answer.limit - WIND_DOWN.min(answer.limit / 2);
        while answer.has_room() {
            listener.check()?;
            let token = match &mut constraint {
                Some(constraint) => {
                    let allowed = constraint.allowed()?;
                    let closing = (answer.output.len() >= wind_down).then(|| constraint.closing(&allowed));
                    closing.flatten().or_else(|| answer.sampler.pick(&logits, Some(&allowed)))
                }
                None => {
                    discourage_repetition(&mut logits, &answer.output);
                    answer.pick(&mut logits, &self.tokenizer)
                }
            };
            let token = token.ok_or_else(|| Error::Inference("no token is possible".to_owned()))?;
            if self.tokenizer.is_control(token) {
                answer.end(listener);
                return Ok(Finish::Stop);
            }
            let bytes = self.tokenizer.bytes(token);
            answer.write(token, bytes, listener);
            if let Some(constraint) = &mut constraint {
                constraint.accept(token, bytes)?;
                if constraint.is_complete() {
                    answer.end(listener);
                    return Ok(Finish::Stop);
                }
            }
            if answer.has_room() {
                logits = self.forward(&[token])?;
            }
        }
        answer.end(listener);
        let complete = constraint.is_some_and(|mut constraint| constraint.may_end().unwrap_or(false));
        Ok(if complete { Finish::Stop } else { Finish::Length })
    }
}

/// The kind of the answer.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// Text or JSON for the caller.
    Text,
    /// A tool call.
    Call,
    /// Unknown before the first token.
    Open,
}

/// The answer so far.
struct Answer {
    kind: Kind,
    limit: usize,
    sampler: Sampler,
    output: Vec<u32>,
    text: String,
    stream: Utf8Stream,
    guard: Guard,
}

impl Answer {
    /// Returns the next token of a text without a grammar.
    fn pick(&mut self, logits: &mut [f32], tokenizer: &Tokenizer) -> Option<u32> {
        let wanted = self.sampler.pick(logits, None)?;
        if self.may_say(wanted, tokenizer) {
            return Some(wanted);
        }
        // Exclude all forbidden tokens in one pass over the vocabulary. Drawing until a token is allowed would not be
        // bounded.
        for (token, logit) in (0..).zip(logits.iter_mut()) {
            if !self.may_say(token, tokenizer) {
                *logit = f32::NAN;
            }
        }
        self.sampler.pick(logits, None)
    }

    fn may_say(&self, token: u32, tokenizer: &Tokenizer) -> bool {
        if tokenizer.is_control(token) {
            self.guard.may_end(&self.text)
        } else {
            self.guard.allows(&self.text, tokenizer.bytes(token))
        }
    }

    fn has_room(&self) -> bool {
        self.output.len() < self.limit
    }

    fn write(&mut self, token: u32, bytes: &[u8], listener: &mut Listener<'_>) {
        if self.kind == Kind::Open {
            // The grammar allows `<` only at the beginning of a call.
            self.kind = if bytes.starts_with(b"<") { Kind::Call } else { Kind::Text };
        }
        self.output.push(token);
        let text = self.stream.push(bytes);
        self.emit(text, listener);
    }

    /// Emits the rest of the text.
    fn end(&mut self, listener: &mut Listener<'_>) {
        let text = self.stream.finish();
        self.emit(text, listener);
    }

    fn emit(&mut self, text: String, listener: &mut Listener<'_>) {
        self.text.push_str(&text);
        if self.kind == Kind::Text && !text.is_empty() {
            (listener.token)(text);
        }
    }

    fn complete(
        self,
        finish: Finish,
        id: String,
        prompt_tokens: u32,
        prompt_time: Duration,
        output_time: Duration,
    ) -> Completion {
        let mut completion = Completion {
            text: String::new(),
            tool_calls: Vec::new(),
            finish,
            prompt_tokens,
            output_tokens: u32::try_from(self.output.len()).unwrap_or(u32::MAX),
            prompt_time,
            output_time,
        };
        if self.kind != Kind::Call {
            completion.text = self.text;
        } else if let Some((name, arguments)) = chat::read_call(&self.text) {
            completion.tool_calls.push(ToolCall { id, name, arguments });
            completion.finish = Finish::ToolCalls;
        } else {
            // Truncated by the limit: an incomplete call is useless.
            completion.finish = Finish::Length;
        }
        completion
    }
}
