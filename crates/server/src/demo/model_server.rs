//! The search for a model server that the demo can use: one that was configured, one that runs on this machine, or the one
//! of the key in `OPENAI_API_KEY`. All are asked for their models at once, and briefly: a start does not wait for them.

use crate::Config;
use crate::tiers::operator_policy;
use egress::{Connector, Limits, Request};
use futures::future::join_all;
use serde_json::Value;
use std::time::Duration;

/// The usual ports of model servers: Ollama, LM Studio, vLLM, and llama.cpp on its own port and the next one.
const PORTS: [u16; 5] = [11434, 1234, 8000, 8080, 8081];
/// The longest that a start may wait for the answers.
const PATIENCE: Duration = Duration::from_millis(900);
const OPENAI: &str = "https://api.openai.com/v1";

/// Models that are chosen first where a server has many: good enough for a demo, and inexpensive.
const PREFERRED: [&str; 3] = ["gpt-4o-mini", "gpt-4.1-mini", "gpt-5-mini"];
/// Parts of the names of models that do not chat.
const OTHER_USES: [&str; 20] = [
    "embed",
    "bge-",
    "e5-",
    "gte-",
    "minilm",
    "rerank",
    "whisper",
    "tts",
    "transcri",
    "audio",
    "realtime",
    "speech",
    "image",
    "dall-e",
    "diffusion",
    "sora",
    "moderation",
    "guard",
    "babbage",
    "davinci",
];

/// A server that may be there.
pub(super) struct Candidate {
    /// Such as `http://127.0.0.1:11434/v1`.
    pub(super) base_url: String,
    pub(super) api_key: Option<String>,
    /// Why it was tried, as the end of a sentence.
    pub(super) origin: &'static str,
    /// A server that somebody configured is named if it cannot be used.
    is_configured: bool,
}

/// A server that is there, with the model to use.
pub(super) struct Found<'a> {
    pub(super) candidate: &'a Candidate,
    pub(super) model: String,
    /// Tokens of prompt and answer together, if the server tells.
    pub(super) context_tokens: Option<i64>,
}

/// What came of a search.
pub(super) struct Search<'a> {
    pub(super) found: Option<Found<'a>>,
    /// What is wrong with servers that were configured.
    pub(super) notes: Vec<String>,
}

impl Candidate {
    /// The servers to ask, the preferred one first: only the one of the settings, if its URL `is_set`. `environment` has the
    /// variables of the process.
    pub(super) fn all(
        config: &Config,
        is_set: bool,
        environment: impl Fn(&str) -> Option<String>,
    ) -> Vec<Self> {
        let configured = |base_url: String, api_key, origin| {
            let base_url = base_url.trim_end_matches('/').to_owned();
            Self { base_url, api_key, origin, is_configured: true }
        };
        if is_set {
            let (url, key) = (config.openai_base_url.clone(), config.openai_api_key.clone());
            return vec![configured(url, key, "the server of SVC_OPENAI_BASE_URL")];
        }
        if let Some(key) = &config.openai_api_key {
            return vec![configured(
                OPENAI.to_owned(),
                Some(key.clone()),
                "with the key in SVC_OPENAI_API_KEY",
            )];
        }
        let is_ours = |port: &u16| {
            let ours = [Some(&config.listen), config.admin_listen.as_ref()];
            ours.into_iter().flatten().any(|address| address.ends_with(&format!(":{port}")))
        };
        let ports = PORTS.into_iter().filter(|port| !is_ours(port));
        let mut all: Vec<Self> = ports.map(Self::on_this_machine).collect();
        all.extend(environment("OPENAI_API_KEY").map(|key| {
            let url = environment("OPENAI_BASE_URL").unwrap_or_else(|| OPENAI.to_owned());
            configured(url, Some(key), "with the key in OPENAI_API_KEY")
        }));
        all
    }

    fn on_this_machine(port: u16) -> Self {
        Self {
            base_url: format!("http://127.0.0.1:{port}/v1"),
            api_key: None,
            origin: "a server that was found on this machine",
            is_configured: false,
        }
    }

    /// Its models, or why there are none.
    async fn models(&self) -> Result<Value, String> {
        let policy = operator_policy("the URL of the model server", &self.base_url);
        let connector = policy.and_then(|policy| Ok(Connector::new(policy)?));
        let connector = connector.map_err(|error| format!("{error:#}"))?;
        let limits =
            Limits { connect: PATIENCE, total: PATIENCE, max_response_bytes: 4 << 20, ..Limits::default() };
        let mut request = Request::get(format!("{}/models", self.base_url)).limits(limits);
        if let Some(key) = &self.api_key {
            request = request.header("authorization", format!("Bearer {key}"));
        }
        let response = connector.send(request).await.map_err(|error| error.to_string())?;
        match response.status {
            200 => serde_json::from_slice(&response.body).map_err(|_| "its answer is not JSON".to_owned()),
            401 | 403 => Err(format!("it does not accept the key (HTTP {})", response.status)),
            status => Err(format!("it answered HTTP {status}")),
        }
    }

    async fn ask(&self) -> Result<Found<'_>, String> {
        let models = self.models().await?;
        let model = chat_model(&models).ok_or("it lists no chat model")?;
        let context_tokens =
            ["max_model_len", "context_length"].iter().find_map(|name| model.get(*name)?.as_i64());
        let context_tokens = context_tokens.filter(|tokens| *tokens > 0);
        let model = name(model).ok_or("it lists no chat model")?.to_owned();
        Ok(Found { candidate: self, model, context_tokens })
    }
}

/// Asks all candidates at once, and takes the first of them that has a chat model.
pub(super) async fn search(candidates: &[Candidate]) -> Search<'_> {
    let mut found = None;
    let mut notes = Vec::new();
    for (candidate, asked) in candidates.iter().zip(join_all(candidates.iter().map(Candidate::ask)).await) {
        match asked {
            Ok(server) => found = found.or(Some(server)),
            Err(why) if candidate.is_configured => notes.push(format!(
                "The model server {}, {}, is not used: {why}.",
                candidate.base_url, candidate.origin
            )),
            Err(_) => {}
        }
    }
    Search { found, notes }
}

fn name(model: &Value) -> Option<&str> {
    model.get("id")?.as_str()
}

/// The model to chat with in the answer to `GET /models`.
fn chat_model(answer: &Value) -> Option<&Value> {
    let listed = answer.get("data")?.as_array()?.iter();
    let chats = |model: &&Value| {
        let kind = model.get("type").and_then(Value::as_str).unwrap_or("chat");
        let named = name(model).unwrap_or_default().to_lowercase();
        // Commas separate models in the settings.
        let is_name = !named.is_empty() && !named.contains(',');
        let has_other_use = OTHER_USES.iter().any(|part| named.contains(part));
        is_name && matches!(kind, "chat" | "llm" | "vlm" | "model") && !has_other_use
    };
    let chatting: Vec<&Value> = listed.filter(chats).collect();
    let preferred =
        PREFERRED.iter().find_map(|wanted| chatting.iter().find(|model| name(model) == Some(wanted)));
    let instructed = || {
        let is_instructed = |model: &&&Value| {
            let named = name(model).unwrap_or_default().to_lowercase();
            ["instruct", "chat", "-it"].iter().any(|part| named.contains(part))
        };
        chatting.iter().find(is_instructed)
    };
    preferred.or_else(instructed).or_else(|| chatting.first()).copied()
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::{Args, FromArgMatches};
    use serde_json::json;
    use std::io::{BufRead, BufReader, Write};
    use std::net::TcpListener;

    #[test]
    fn what_is_configured_is_asked_first() {
        let candidates = |words: &[&str], is_set: bool, environment: &[(&str, &str)]| {
            let matches = Config::augment_args(clap::Command::new("svc")).get_matches_from(words);
            let config = Config::from_arg_matches(&matches).unwrap();
            let variable = |name: &str| {
                let found = environment.iter().find(|(known, _)| *known == name);
                found.map(|(_, value)| (*value).to_owned())
            };
            let all = Candidate::all(&config, is_set, variable).into_iter();
            all.map(|one| (one.base_url, one.api_key.unwrap_or_default())).collect::<Vec<_>>()
        };
        let key = [("OPENAI_API_KEY", "sk-1")];
        let there = ["svc", "--openai-base-url", "http://10.0.0.5/v1/", "--openai-api-key", "sk-2"];
        assert_eq!(candidates(&there, true, &key), [("http://10.0.0.5/v1".to_owned(), "sk-2".to_owned())]);
        let ours = ["svc", "--openai-api-key", "sk-2"];
        assert_eq!(candidates(&ours, false, &key), [(OPENAI.to_owned(), "sk-2".to_owned())]);
        // Not the service itself, and the key's server last.
        let all = candidates(&["svc", "--listen", "127.0.0.1:8080"], false, &key);
        assert_eq!((all.len(), all[0].0.as_str()), (PORTS.len(), "http://127.0.0.1:11434/v1"));
        assert!(!all.iter().any(|(url, _)| url.contains(":8080/")), "{all:?}");
        assert_eq!(all.last().unwrap(), &(OPENAI.to_owned(), "sk-1".to_owned()));
        let elsewhere = [key[0], ("OPENAI_BASE_URL", "https://models.example/v1")];
        let all = candidates(&["svc"], false, &elsewhere);
        assert_eq!(all.last().unwrap().0, "https://models.example/v1");
    }

    #[test]
    fn a_chat_model_is_chosen() {
        let chosen = |ids: &[&str]| {
            let data: Vec<Value> = ids.iter().map(|id| json!({ "id": id, "object": "model" })).collect();
            chat_model(&json!({ "object": "list", "data": data })).and_then(name).map(str::to_owned)
        };
        assert_eq!(
            chosen(&["nomic-embed-text:latest", "llama3.2:latest"]).as_deref(),
            Some("llama3.2:latest")
        );
        assert_eq!(chosen(&["gpt-5", "whisper-1", "gpt-4o-mini"]).as_deref(), Some("gpt-4o-mini"));
        assert_eq!(chosen(&["base", "Qwen2.5-7B-Instruct"]).as_deref(), Some("Qwen2.5-7B-Instruct"));
        assert_eq!(chosen(&["bge-m3", "a,b", ""]), None);
        assert_eq!(chosen(&[]), None);
        let typed = json!({ "data": [{ "id": "x", "type": "embedding" }, { "id": "y", "type": "chat" }] });
        assert_eq!(chat_model(&typed).and_then(name), Some("y"));
        for other in [json!(null), json!([]), json!({ "data": {} }), json!({ "data": [1, {}, { "id": 5 }] })]
        {
            assert_eq!(chat_model(&other), None, "{other}");
        }
    }

    /// A server that gives each connection this answer, or none. Returns its port.
    fn server(answer: Option<(u16, Value)>) -> u16 {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        std::thread::spawn(move || {
            let mut connections = Vec::new();
            for connection in listener.incoming() {
                let mut connection = connection.unwrap();
                let mut line = String::new();
                BufReader::new(&connection).read_line(&mut line).unwrap();
                assert_eq!(line, "GET /v1/models HTTP/1.1\r\n");
                if let Some((status, body)) = &answer {
                    let body = body.to_string();
                    let length = body.len();
                    write!(connection, "HTTP/1.1 {status} X\r\ncontent-length: {length}\r\n\r\n{body}")
                        .unwrap();
                }
                connections.push(connection);
            }
        });
        port
    }

    #[tokio::test]
    async fn the_first_server_with_a_chat_model_is_used() {
        let listing =
            |model: Value| Candidate::on_this_machine(server(Some((200, json!({ "data": [model] })))));
        let candidates = [
            listing(json!({ "id": "bge-m3" })),
            listing(json!({ "id": "llama3.2", "max_model_len": 4096 })),
            listing(json!({ "id": "other" })),
        ];
        let found = search(&candidates).await.found.unwrap();
        assert_eq!((found.model.as_str(), found.context_tokens), ("llama3.2", Some(4096)));
        assert_eq!(found.candidate.base_url, candidates[1].base_url);
    }

    #[tokio::test]
    async fn a_server_that_does_not_answer_is_not_waited_for() {
        let mut refused = Candidate::on_this_machine(server(Some((401, json!({})))));
        refused.is_configured = true;
        let candidates = [Candidate::on_this_machine(server(None)), refused];
        // Its time is the connector's limit, which is less than a second.
        let Search { found, notes } = search(&candidates).await;
        assert!(found.is_none());
        assert_eq!(notes.len(), 1);
        assert!(notes[0].contains("does not accept the key"), "{notes:?}");
        assert!(PATIENCE < Duration::from_secs(1));
    }
}
