//! The pages for people: the commands of README.md and `docs/` run, in order, against a fresh demo, and answer what the
//! pages say. Each page works alone, and all of them work one after another against one demo.

pub(crate) mod fence;
mod sample;

use self::fence::{Fence, all, fences};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use testkit::{Kind, OpenAiServer, Program, completion, tool_call};

const BINARY: &str = env!("CARGO_BIN_EXE_svc");

/// A test for each page with commands, on both databases.
macro_rules! pages {
    ($($name:ident: $path:literal,)+) => {
        const PAGES: &[&str] = &[$($path),+];

        $(
            #[testkit::both]
            async fn $name(kind: Kind) {
                check(kind, &[$path]).await;
            }
        )+
    };
}

pages! {
    readme: "README.md",
    approvals: "docs/approvals.md",
    automations: "docs/automations.md",
    broadcasts: "docs/broadcasts.md",
    channels: "docs/channels.md",
    clients: "docs/clients.md",
    command_line: "docs/cli.md",
    configuration: "docs/configuration.md",
    contacts: "docs/contacts.md",
    conversations: "docs/conversations.md",
    data: "docs/data.md",
    errors: "docs/errors.md",
    files: "docs/files.md",
    flows: "docs/flows.md",
    functions: "docs/functions.md",
    getting_started: "docs/getting-started.md",
    inbound_webhooks: "docs/inbound-webhooks.md",
    mcp: "docs/mcp.md",
    reminders: "docs/reminders.md",
    runs: "docs/runs.md",
    sandbox: "docs/sandbox.md",
    security: "docs/security.md",
    simulator: "docs/simulator.md",
    skills: "docs/skills.md",
    stripe: "docs/stripe.md",
    tasks: "docs/tasks.md",
    webhooks: "docs/webhooks.md",
}

#[test]
fn every_command_of_every_page_is_run() {
    let mut mistakes = Vec::new();
    for page in all() {
        for fence in fences(&page) {
            let at = format!("{page}:{}", fence.line);
            match fence.language.as_str() {
                "sh" if fence.mark.is_none() && PAGES.contains(&page.as_str()) => {}
                "sh" if fence.mark.is_none() => {
                    mistakes.push(format!("{at}: no test runs this page: add it to `pages!`"));
                }
                "sh" if fence.is_marked("no_run") || fence.is_marked("drill") => {}
                "json" if fence.mark.is_none() || fence.is_marked("no_check") => {}
                "sh" | "json" => mistakes.push(format!("{at}: the mark needs a reason: `no_run: why`")),
                "bash" | "console" | "shell" | "zsh" => mistakes.push(format!("{at}: commands are `sh`")),
                _ if fence.mark.is_some() => mistakes.push(format!("{at}: only `sh` and `json` have marks")),
                _ => {}
            }
        }
    }
    assert!(mistakes.is_empty(), "\n{}\n", mistakes.join("\n"));
}

/// What the model of the demo answers. It can do what the pages ask for.
fn model(request: &Value) -> Value {
    let Some(messages) = request["messages"].as_array() else {
        return json!({ "object": "list", "data": [] });
    };
    let text = |message: &Value| message["content"].as_str().unwrap_or_default().to_lowercase();
    let last = messages.last().unwrap();
    if last["role"] == "user" && text(last).contains("refund") {
        return tool_call("refund", &json!({ "order": 4711, "cents": 100 }));
    }
    if last["role"] == "user" && text(last).contains("weather") {
        return tool_call("weather", &json!({ "city": "Rome" }));
    }
    if request["response_format"].is_object() {
        return completion(&json!({ "city": "Paris", "country": "France" }).to_string());
    }
    completion("I found:\n- Junior Wooden Train (price: 27.85, stock: 28)")
}

/// The addresses of examples: a weather service, a shop, a webhook's receiver.
const EXAMPLES: [&str; 3] =
    ["https://weather.example.com", "https://shop.example.com", "https://example.com"];

/// What answers at [`EXAMPLES`].
async fn other_servers() -> OpenAiServer {
    let server = OpenAiServer::start().await;
    server.answer(|_| json!({ "celsius": 21 }));
    server
}

/// A block of commands, written to a file.
struct Block {
    fence: Fence,
    file: PathBuf,
    /// The sample of an answer that the page shows below it.
    sample: Option<Fence>,
}

impl Block {
    /// What is kept of it beside its file.
    fn kept(&self, suffix: &str) -> String {
        let path = format!("{}.{suffix}", self.file.display());
        std::fs::read_to_string(path).unwrap_or_default()
    }

    fn answers(&self) -> Vec<Value> {
        let name = format!("{}.answer.", self.file.file_name().unwrap().display());
        let beside = std::fs::read_dir(self.file.parent().unwrap()).unwrap().map(|file| file.unwrap());
        let answers = beside.filter(|file| file.file_name().to_string_lossy().starts_with(&name));
        answers
            .filter_map(|file| serde_json::from_str(&std::fs::read_to_string(file.path()).unwrap()).ok())
            .collect()
    }

    fn mistakes(&self, page: &str) -> Vec<String> {
        let at = format!("{page}:{}", self.fence.line);
        let mut mistakes = Vec::new();
        let mut is_wrong = |what: String| {
            let text = &self.fence.text;
            let (out, err) = (self.kept("out"), self.kept("err"));
            mistakes.push(format!("{at}: {what}\n{text}\n--- printed\n{out}\n{err}\n"));
        };
        if !Path::new(&format!("{}.done", self.file.display())).exists() {
            is_wrong("a command failed, or one before it did".to_owned());
        }
        let statuses = self.kept("statuses");
        let (mut statuses, mut expected) = (statuses.lines().collect::<Vec<_>>(), self.fence.statuses());
        // How often a loop asks is not known.
        if self.fence.text.contains("until curl") {
            statuses.dedup();
            expected.dedup();
        }
        if statuses != expected {
            is_wrong(format!("the page promises {expected:?}, the commands were answered {statuses:?}"));
        }
        if let Some(sample) = &self.sample {
            let at = format!("{page}:{}", sample.line);
            match sample::read(&sample.text) {
                Ok(shown) if self.answers().iter().any(|answer| sample::is_part_of(&shown, answer)) => {}
                Ok(_) => is_wrong(format!("no answer has the fields of the sample at {at}")),
                Err(error) => {
                    is_wrong(format!("the sample at {at} is no JSON ({error}): `json no_check: why`"));
                }
            }
        }
        mistakes
    }
}

/// Writes the commands of a page into a folder, with the addresses of this test.
fn write(page: &str, folder: &Path, others: &OpenAiServer) -> Vec<Block> {
    let elsewhere = format!("http://{}", others.address);
    // Where a page starts a receiver of its own, it does so on port 9000.
    let receiver = Program::address();
    let (_, port) = receiver.split_once(':').unwrap();
    let is_on_port = |before: &str| (format!("{before}9000"), format!("{before}{port}"));
    let ports = [is_on_port("127.0.0.1:"), is_on_port("\"127.0.0.1\", ")];
    let mut blocks: Vec<Block> = Vec::new();
    let mut is_below_commands = false;
    for fence in fences(page) {
        let is_run = fence.language == "sh" && fence.mark.is_none();
        if is_run {
            let file = folder.join(format!("{:02}.sh", blocks.len()));
            let addresses = EXAMPLES.map(|address| (address.to_owned(), elsewhere.clone()));
            let text = addresses
                .iter()
                .chain(&ports)
                .fold(fence.text.clone(), |text, (from, to)| text.replace(from, to));
            std::fs::write(&file, text).unwrap();
            blocks.push(Block { fence, file, sample: None });
        } else if is_below_commands && fence.language == "json" && fence.mark.is_none() {
            blocks.last_mut().unwrap().sample = Some(fence);
        }
        is_below_commands = is_run;
    }
    blocks
}

/// Runs the commands of pages, one page after another, against one fresh demo.
async fn check(kind: Kind, pages: &[&str]) {
    let others = other_servers().await;
    // The addresses of examples lead to this machine, which the demo may reach.
    let program = Program::new(kind, BINARY).await;
    program.model.answer(model);
    let (serving, demo) = program.serve_demo().await;
    let mut mistakes = Vec::new();
    for page in pages {
        let folder = tempfile::tempdir().unwrap();
        let blocks = write(page, folder.path(), &others);
        assert!(!blocks.is_empty(), "{page} has no commands");
        let mut shell = program.shell();
        shell
            .arg(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/pages/run.sh"))
            .current_dir(folder.path())
            .env("BLOCKS", folder.path())
            .env("URL", format!("http://{}/api/v1", program.listen))
            .env("KEY", &demo.live)
            .env("CHAT", &demo.chat)
            .stdout(Stdio::null())
            .stderr(Stdio::inherit());
        // The servers of this test answer on its thread.
        tokio::task::spawn_blocking(move || shell.status().unwrap()).await.unwrap();
        mistakes.extend(blocks.iter().flat_map(|block| block.mistakes(page)));
    }
    assert!(mistakes.is_empty(), "\n{}", mistakes.join("\n"));
    serving.stop().await;
}

/// The pages with commands in the order in which README.md lists them.
fn in_order() -> Vec<&'static str> {
    let readme = std::fs::read_to_string(fence::root().join("README.md")).unwrap();
    let (_, list) = readme.split_once("## Documentation").unwrap();
    let place = |page: &str| match page {
        "README.md" => 0,
        page => list.find(&format!("]({page})")).unwrap_or_else(|| panic!("README.md does not list {page}")),
    };
    let mut pages = PAGES.to_vec();
    pages.sort_by_key(|page| place(page));
    pages
}

#[tokio::test]
async fn all_pages_one_after_another() {
    check(Kind::Sqlite, &in_order()).await;
}
