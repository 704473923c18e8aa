//! The program as its operator meets it: commands, settings, the demo workspace, and what the documents say of them.

use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::io::{BufRead, BufReader};
use std::net::TcpListener;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use testkit::{Client, Kind, Program, until};

const SVC: &str = env!("CARGO_BIN_EXE_svc");

/// The program in a folder of its own, with nothing set but what a test sets.
fn svc(folder: &Path) -> Command {
    let mut command = Command::new(SVC);
    command.current_dir(folder).stdin(Stdio::null());
    // No profile of whoever runs the tests.
    command.env("XDG_CONFIG_HOME", "/nonexistent");
    for (name, _) in std::env::vars().filter(|(name, _)| name.starts_with("SVC_")) {
        command.env_remove(name);
    }
    command
}

fn text(output: &Output) -> String {
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout.clone()).unwrap()
}

fn slugs(output: &Output) -> Vec<String> {
    let rows: Vec<Value> = serde_json::from_str(&text(output)).unwrap();
    rows.iter().map(|row| row["slug"].as_str().unwrap().to_owned()).collect()
}

#[testkit::both]
async fn a_key_takes_all_scopes_those_that_read_or_those_of_an_area(kind: Kind) {
    let program = Program::new(kind, SVC).await;
    program.run(&["workspace", "create", "--name", "Acme"]);
    let scopes = |words: &str| -> Vec<String> {
        let made = program.run(&["key", "create", "--workspace", "acme", "--env", "test", "--scopes", words]);
        serde_json::from_value(made["scopes"].clone()).unwrap()
    };
    let all = scopes("all");
    assert!(all.iter().any(|scope| scope == "contacts:write"), "{all:?}");
    let read = scopes("read");
    assert!(read.len() < all.len() && read.iter().all(|scope| scope.ends_with(":read")), "{read:?}");
    let area = scopes("contacts:*,contacts:read,runs:read");
    let of_area = all.iter().filter(|scope| scope.starts_with("contacts:")).count();
    assert_eq!(area.len(), of_area + 1, "{area:?}");
    assert!(area.iter().any(|scope| scope == "runs:read"), "{area:?}");
}

#[testkit::both]
async fn one_command_makes_an_installation_and_a_second_changes_nothing(kind: Kind) {
    let program = Program::new(kind, SVC).await;
    let log = program.data_dir().join("log");
    program.serve_logging(&program.listen, std::fs::File::create(&log).unwrap()).await.stop().await;
    let logged = std::fs::read_to_string(&log).unwrap();
    assert!(logged.contains("svc init"), "{logged}");

    let words = ["init", "--name", "Acme & Sons", "--owner", "eva@example.com", "--owner-name", "Eva"];
    let made = program.run(&words);
    assert_eq!((&made["created"], &made["plan"]), (&json!(true), &json!("unlimited")));
    assert_eq!((&made["workspace"], &made["owner"]), (&json!("acme-sons"), &json!("eva@example.com")));
    let secret = made["secret"].as_str().unwrap();
    let again = program.run(&words);
    assert_eq!((&again["created"], &again["secret"]), (&json!(false), &Value::Null));
    for name in ["workspace_id", "workspace", "plan", "owner", "key_id"] {
        assert_eq!(again[name], made[name], "{name}");
    }
    assert_eq!(program.run(&["key", "list"]).as_array().unwrap().len(), 1);
    assert_eq!(program.run(&["team", "list", "--workspace", "acme-sons"]).as_array().unwrap().len(), 1);
    assert!(program.fails(&["init", "--name", "Other", "--plan", "gold"]).contains("catalogue"));
    assert_eq!(program.run(&["workspace", "list"]).as_array().unwrap().len(), 1);

    // Without Energy its agents run all the same, and what they would cost is seen.
    let serving = program.serve().await;
    let (client, bearer) = (program.client(), format!("Bearer {secret}"));
    let ask = |method: &str, path: &str| client.ask(method, path).header("authorization", &bearer);
    let agent = json!({ "name": "Assistant", "status": "active" });
    ask("POST", "/agents").json(&agent).send().await.expect(201);
    let run = ask("POST", "/runs").json(&json!({ "input": "Hi" })).send().await.expect(200);
    let cost = run["energy"]["amount"].as_i64().unwrap();
    assert!(cost > 0, "{run}");
    let energy = ask("GET", "/billing/energy").send().await.expect(200);
    assert_eq!((&energy["balance"], &energy["spent_this_month"]), (&json!(0), &json!(cost)));
    serving.stop().await;
}

#[testkit::both]
async fn plans_are_created_and_changed(kind: Kind) {
    let program = Program::new(kind, SVC).await;
    let built_in = program.run(&["plan", "list"]);
    assert_eq!(built_in[0]["id"], "trial");
    let words =
        "plan create gold --name Gold --price-cents 900 --currency EUR --rpm none --contacts none --quota 7";
    let made = program.run(&words.split(' ').collect::<Vec<_>>());
    assert_eq!((&made["rate_limit_rpm"], &made["monthly_quota"]), (&Value::Null, &json!(7)));
    assert_eq!((&made["position"], &made["energy_metered"]), (&json!(7), &json!(true)));
    assert!(program.fails(&["plan", "create", "gold"]).contains("svc plan update"));
    let changed = program.run(&["plan", "update", "gold", "--energy-metered", "false", "--rpm", "5"]);
    assert_eq!((&changed["energy_metered"], &changed["rate_limit_rpm"]), (&json!(false), &json!(5)));
    assert_eq!((&changed["name"], &changed["monthly_quota"]), (&json!("Gold"), &json!(7)));
    assert!(program.fails(&["plan", "update", "silver", "--rpm", "5"]).contains("svc plan list"));
    // What an operator changes of a built-in plan lasts.
    program.run(&["plan", "update", "pro", "--included-energy", "123"]);
    program.run(&["workspace", "create", "--name", "Acme"]);
    program.run(&["plan", "set", "--workspace", "acme", "--plan", "pro"]);
    let pro = program.run(&["plan", "list"]);
    assert_eq!(pro[2]["included_energy"], 123);
    let key =
        program.run(&["key", "create", "--workspace", "acme", "--env", "live", "--scopes", "billing:read"]);
    let serving = program.serve().await;
    let bearer = format!("Bearer {}", key["secret"].as_str().unwrap());
    let energy = program.client().ask("GET", "/billing/energy").header("authorization", &bearer).send().await;
    assert_eq!(energy.expect(200)["balance"], 123);
    serving.stop().await;
}

#[testkit::both]
async fn a_service_without_a_model_starts(kind: Kind) {
    let program = Program::new(kind, SVC).await.with("SVC_MODEL_FAST", "local");
    let key = program.key("agents:write,runs:execute,runs:read");
    let serving = program.serve().await;
    let client = program.client();
    let agent = |tier: &str| json!({ "name": tier, "status": "active", "model": tier });
    let make = async |tier: &str| {
        client.ask("POST", "/agents").key(&key).json(&agent(tier)).send().await.expect(201)["id"].clone()
    };
    let (fast, balanced) = (make("fast").await, make("balanced").await);
    let run = async |agent: &Value| {
        client.ask("POST", "/runs").key(&key).json(&json!({ "input": "Hi", "agent_id": agent })).send().await
    };
    let refused = run(&fast).await;
    refused.expect_error(409, "model_not_configured");
    for setting in ["SVC_MODEL_FILE", "SVC_MODEL_FAST", "SVC_OPENAI_BASE_URL"] {
        assert!(refused.text.contains(setting), "{}", refused.text);
    }
    run(&balanced).await.expect(200);
    serving.stop().await;
    let demo = program.fails(&["serve", "--demo"]);
    assert!(demo.contains("the demo needs a model"), "{demo}");
}

#[testkit::both]
async fn nothing_is_logged_before_an_answer(kind: Kind) {
    let program = Program::new(kind, SVC).await;
    program.run(&["init", "--name", "Acme"]);
    for words in [
        "plan set --workspace acme --plan starter --json",
        "energy grant --workspace acme --amount 5 --json",
        "key list --json",
        "team add --workspace acme --name Eva --email eva@example.com --json",
    ] {
        let mut command = program.command();
        command.env_remove("SVC_LOG").args(words.split(' '));
        let output = command.output().unwrap();
        assert!(output.status.success(), "{words}");
        assert_eq!(String::from_utf8_lossy(&output.stderr), "", "{words}");
    }
}

#[testkit::both]
async fn every_command_prints_json(kind: Kind) {
    let program = Program::new(kind, SVC).await;
    let workspace = program.run(&["workspace", "create", "--name", "Acme & Sons"]);
    assert_eq!(workspace["slug"], "acme-sons");
    let listed = program.run(&["workspace", "list"]);
    assert_eq!(listed[0]["id"], workspace["id"]);

    let set = program.run(&["plan", "set", "--workspace", "acme-sons", "--plan", "pro"]);
    assert_eq!(set["id"], workspace["id"]);
    let granted = program.run(&["energy", "grant", "--workspace", "acme-sons", "--amount", "500"]);
    assert_eq!(granted["amount"], 500);

    let words = "--workspace acme-sons --env test --rpm 700 --quota 9000 --budget-cents 300 --cutoff";
    let mut create = vec!["key", "create", "--scopes", "runs:read,agents:read"];
    create.extend(words.split(' '));
    let made = program.run(&create);
    assert!(made["secret"].as_str().unwrap().starts_with("svc_test_"));
    let id = made["id"].as_str().unwrap();
    let budget = program.run(&["key", "budget", id, "--cents", "500"]);
    assert_eq!((&budget["budget_cents"], &budget["budget_cutoff"]), (&500.into(), &true.into()));
    let warns = program.run(&["key", "budget", id, "--cents", "500", "--cutoff=false"]);
    assert_eq!(warns["budget_cutoff"], false);
    assert!(program.run(&["key", "budget", id, "--none"])["budget_cents"].is_null());
    let key = &program.run(&["key", "list", "--workspace", "acme-sons"])[0];
    assert_eq!((&key["rate_limit_rpm"], &key["monthly_quota"]), (&700.into(), &9000.into()));
    assert!(key["secret"].is_null(), "a secret is shown once");

    let of_acme = |words: &[&'static str]| [words, &["--workspace", "acme-sons"]].concat();
    let words = of_acme(&["team", "add", "--name", "Eva", "--email", "eva@example.com", "--capacity", "5"]);
    let eva = program.run(&words);
    assert_eq!((&eva["role"], &eva["capacity"]), (&json!("agent"), &json!(5)));
    let member = eva["id"].to_string();
    let words =
        ["team", "set", &member, "--workspace", "acme-sons", "--no-capacity", "--availability", "away"];
    let away = program.run(&words);
    assert_eq!((&away["capacity"], &away["availability"]["status"]), (&Value::Null, &json!("away")));
    assert_eq!(program.run(&of_acme(&["team", "list"]))[0]["name"], "Eva");
    assert_eq!(program.run(&["team", "remove", &member, "--workspace", "acme-sons"])["removed"], true);
    assert_eq!(program.run(&of_acme(&["team", "list"])), json!([]));
    let set = program.run(&of_acme(&["business", "set", "{\"time_zone\": \"Europe/Madrid\"}"]));
    assert_eq!(set, program.run(&of_acme(&["business", "show"])));
    assert_eq!((&set["name"], &set["time_zone"]), (&json!("Acme & Sons"), &json!("Europe/Madrid")));

    let serving = program.serve().await;
    let (client, bearer) = (program.client(), format!("Bearer {}", made["secret"].as_str().unwrap()));
    let me = async || client.ask("GET", "/me").header("authorization", &bearer).send().await;
    assert_eq!(me().await.expect(200)["workspace"]["slug"], "acme-sons");
    program.run(&["workspace", "block", "acme-sons", "--reason", "Unpaid."]);
    // The service remembers workspaces for some seconds, and asks again then.
    let blocked = until("the workspace is blocked", async || Some(me().await).filter(|me| me.status == 403));
    assert_eq!(blocked.await.body["error"]["message"], "Unpaid.");
    assert!(program.run(&["workspace", "unblock", "acme-sons"])["blocked_reason"].is_null());
    assert_eq!(program.run(&["key", "revoke", id])["status"], "revoked");
    serving.stop().await;
}

#[test]
fn a_flag_beats_a_variable_beats_the_file() {
    let folder = tempfile::tempdir().unwrap();
    for name in ["file", "variable", "flag"] {
        let database = format!("sqlite:{name}.db");
        let words = ["workspace", "create", "--name", name, "--database-url", &database];
        text(&svc(folder.path()).args(words).output().unwrap());
    }
    std::fs::write(folder.path().join("svc.toml"), "database_url = \"sqlite:file.db\"\nlog = \"warn\"\n")
        .unwrap();
    let list = || {
        let mut command = svc(folder.path());
        command.args(["workspace", "list", "--json"]).env("SVC_CONFIG", "svc.toml");
        command
    };
    assert_eq!(slugs(&list().output().unwrap()), ["file"]);
    let variable = || {
        let mut command = list();
        command.env("SVC_DATABASE_URL", "sqlite:variable.db");
        command
    };
    assert_eq!(slugs(&variable().output().unwrap()), ["variable"]);
    let flag = variable().args(["--database-url", "sqlite:flag.db"]).output().unwrap();
    assert_eq!(slugs(&flag), ["flag"]);

    std::fs::write(folder.path().join("svc.toml"), "colour = \"red\"\n").unwrap();
    let refused = list().output().unwrap();
    assert!(!refused.status.success());
    assert!(String::from_utf8_lossy(&refused.stderr).contains("there is no setting `colour`"));
}

#[test]
fn the_document_names_every_setting_and_no_other() {
    let folder = tempfile::tempdir().unwrap();
    let help = text(&svc(folder.path()).args(["serve", "--help"]).output().unwrap());
    let variables = |text: &str, before: &str| -> BTreeSet<String> {
        let pieces = text.split(before).skip(1);
        pieces
            .map(|piece| {
                piece.chars().take_while(|letter| letter.is_ascii_uppercase() || *letter == '_').collect()
            })
            .filter(|name: &String| name.starts_with("SVC_"))
            .collect()
    };
    let document = include_str!("../../../../../docs/configuration.md");
    let helped = variables(&help, "[env: ");
    assert!(helped.len() > 15, "{help}");
    assert_eq!(helped, variables(document, "| `"));
}

#[tokio::test]
async fn tokens_cost_what_the_operator_says() {
    let program = Program::new(Kind::Sqlite, SVC).await.with("SVC_PRICE_BALANCED", "0,0,1000");
    let key = program.key("agents:write,runs:execute");
    let serving = program.serve().await;
    let client = program.client();
    let agent = json!({ "name": "Assistant", "status": "active" });
    client.ask("POST", "/agents").key(&key).json(&agent).send().await.expect(201);
    let run = client.ask("POST", "/runs").key(&key).json(&json!({ "input": "Hi" })).send().await.expect(200);
    assert!(run["usage"]["output_tokens"].as_i64().unwrap() > 0, "{run}");
    assert_eq!(run["energy"]["amount"], run["usage"]["output_tokens"]);
    serving.stop().await;

    let folder = tempfile::tempdir().unwrap();
    let refused = svc(folder.path()).args(["serve", "--price-fast", "1,2"]).output().unwrap();
    assert!(!refused.status.success());
    assert!(String::from_utf8_lossy(&refused.stderr).contains("three whole numbers"));
}

/// Serves the demo workspace until its lines are printed. Gives them.
async fn welcome(folder: &Path, listen: &str) -> Vec<String> {
    let model = ["--model-fast", "openai:x", "--model-balanced", "openai:x", "--model-advanced", "openai:x"];
    let mut command = svc(folder);
    command.args(["serve", "--demo", "--listen", listen, "--data-dir", "kept"]).args(model);
    let mut serving = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let mut lines = Vec::new();
    for line in BufReader::new(serving.stdout.take().unwrap()).lines() {
        let line = line.unwrap();
        let is_last = line.starts_with("Reference: ");
        lines.push(line);
        if is_last {
            break;
        }
    }
    let client = Client::new(&format!("http://{listen}"));
    until("the service listens", async || client.ask("GET", "/me").try_send().await.ok()).await;
    if let Some(key) = lines.iter().find_map(|line| line.trim().strip_prefix("live: ")) {
        client.ask("GET", "/me").header("authorization", &format!("Bearer {key}")).send().await.expect(200);
    }
    let pid = serving.id().to_string();
    assert!(Command::new("kill").args(["-TERM", &pid]).status().unwrap().success());
    assert!(serving.wait().unwrap().success());
    lines
}

#[actix_web::test]
async fn the_demo_is_made_once_and_kept() {
    let folder = tempfile::tempdir().unwrap();
    let listen = Program::address();
    let first = welcome(folder.path(), &listen).await;
    assert!(first.iter().any(|line| line.contains("live: svc_live_")), "{first:?}");
    let second = welcome(folder.path(), &listen).await;
    assert!(!second.iter().any(|line| line.contains("svc_live_")), "{second:?}");

    let shown_command = second.iter().position(|line| line.contains("svc key create ")).unwrap();
    let shown_command = second[shown_command..shown_command + 2].concat().replace(['\\', '\''], " ");
    let words = shown_command.split_whitespace().skip(1);
    let made = text(&svc(folder.path()).args(words).arg("--json").output().unwrap());
    let made: Value = serde_json::from_str(&made).unwrap();
    assert_eq!((&made["owner_id"], &made["env"]), (&1.into(), &"live".into()));
}

#[test]
fn settings_are_shown_by_serve_and_by_help_all() {
    let folder = tempfile::tempdir().unwrap();
    let help = |words: &[&str]| text(&svc(folder.path()).args(words).output().unwrap());
    let setting = "--database-url";
    for words in [
        &["--help"][..],
        &["-h"],
        &["help", "key"],
        &["key", "create", "--help"],
        &["doctor", "-h"],
        &["api", "--help"],
        &["openapi", "--help"],
    ] {
        assert!(!help(words).contains(setting), "{words:?}");
    }
    for words in [
        &["serve", "--help"][..],
        &["serve", "-h"],
        &["--help-all"],
        &["key", "create", "--help-all"],
        &["openapi", "--help-all"],
    ] {
        assert!(help(words).contains(setting), "{words:?}");
    }
    // Hidden, but taken.
    text(&svc(folder.path()).args(["migrate", setting, "sqlite:x.db"]).output().unwrap());
    assert!(folder.path().join("x.db").exists());
}

#[test]
fn bash_completes_commands_and_flags() {
    let folder = tempfile::tempdir().unwrap();
    let complete = |line: &str| {
        let script = "source <(\"$0\" completion bash) || exit 1\n\
            COMP_WORDS=($1); COMP_CWORD=$((${#COMP_WORDS[@]} - 1))\n\
            _svc svc \"${COMP_WORDS[$COMP_CWORD]}\" \"${COMP_WORDS[$COMP_CWORD - 1]}\"\n\
            echo \"${COMPREPLY[@]}\"";
        let mut bash = Command::new("bash");
        text(&bash.current_dir(folder.path()).args(["-c", script, SVC, line]).output().unwrap())
    };
    assert_eq!(complete("svc works").trim(), "workspace");
    assert_eq!(complete("svc key cre").trim(), "create");
    assert_eq!(complete("svc key create --scopes a").split_whitespace().next(), Some("all"));
    let all = complete("svc --");
    assert!(all.contains("--database-url"), "{all}");
    let script = text(&svc(folder.path()).args(["completion", "bash"]).output().unwrap());
    let (_, root) = script.split_once("        svc)\n            opts=\"").unwrap();
    let words: Vec<&str> = root.split('"').next().unwrap().split_whitespace().collect();
    let commands = words.iter().take_while(|word| !word.starts_with('-')).count();
    assert!(commands > 15 && words[commands..].iter().all(|word| word.starts_with('-')), "{words:?}");
    assert_eq!(complete("svc api --inc").trim(), "--include");
    for (shell, line) in [("zsh", "#compdef svc"), ("fish", "complete -c svc")] {
        let script = text(&svc(folder.path()).args(["completion", shell]).output().unwrap());
        assert!(script.contains(line), "{shell}");
    }
}

#[test]
fn mistakes_are_reported_before_anything_is_created() {
    let folder = tempfile::tempdir().unwrap();
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let taken = format!("serve --listen {}", taken.local_addr().unwrap());
    let elsewhere = "serve --listen nonsense --database-url postgres://x@127.0.0.1:1/x --secret-key \
                     AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=";
    for (words, shown_command) in [
        ("serve --listen nonsense", "listening on nonsense"),
        (elsewhere, "listening on nonsense"),
        (&taken, "listening on 127.0.0.1"),
        ("serve --database-url mysql://x", "sqlite: or postgres://"),
        ("serve --database-url postgres://x@127.0.0.1:1/x", "SVC_SECRET_KEY is not set"),
        ("serve --database-connections 0", "a whole number from 1 to 1000"),
        ("serve --workers 1000", "a whole number from 1 to 512"),
        ("serve --shutdown-seconds 18446744073709551615", "a whole number from 0 to 86400"),
        ("serve --openai-context nonsense", "a whole number from 1"),
        ("serve --base-url ftp://example.com", "http:// or https://"),
        ("serve --openai-base-url nonsense", "http:// or https://"),
        ("serve --secret-key c2hvcnQ=", "SVC_SECRET_KEY: the secret key must have 32 bytes"),
        ("serve --allow-outbound 10.0.0.0/99", "SVC_ALLOW_OUTBOUND"),
        ("serve --redis-url memcached://x", "SVC_REDIS_URL"),
        ("serve --model-fast nonsense", "SVC_MODEL_FAST: `nonsense`"),
        ("serve --model-file absent.gguf", "model"),
        ("serve --config absent.toml", "reading absent.toml"),
        ("serve --log svc=loud", "SVC_LOG"),
        ("migrate --database-url mysql://x", "sqlite: or postgres://"),
        ("workspace list --database-connections 0", "a whole number from 1 to 1000"),
        ("workspace create --name=", "1 to 80 characters"),
        ("workspace create --name 日本", "--slug"),
        ("workspace create --name x --slug NO", "lower-case letters"),
        ("workspace create --name Acme --partner -5", "a whole number of at least 1"),
        ("partner create --name=", "1 to 80 characters"),
        ("plan set --workspace x --plan pro --status odd", "active, trialing"),
        ("plan set --workspace x --plan pro --status energy_depleted", "active, trialing"),
        ("plan set --workspace x --plan pro --until tomorrow", "RFC 3339"),
        ("energy grant --workspace x --amount -5", "a whole number from 1 to"),
        ("energy grant --workspace x --amount 1.5", "a whole number from 1 to"),
        ("energy grant --workspace x --amount 5 --kind gift", "purchase, plan, promo or adjustment"),
        ("energy grant --workspace x --amount 5 --expires soon", "RFC 3339"),
        ("energy void nonsense --workspace x", "the id of a grant"),
        ("key create --workspace x --env prod --scopes runs:read", "live or test"),
        ("key create --workspace x --env live --scopes runs:read,nonsense", "--help"),
        ("key create --workspace x --env live --scopes contacts", "is an area: write contacts:*"),
        ("init --name 日本", "--slug"),
        ("plan create none", "not none"),
        ("plan create gold --rpm 0", "from 1 to 1000000, or none"),
        ("plan update gold --currency euro", "three capital letters"),
        (
            "key create --workspace x --env live --scopes runs:read --rpm 0",
            "a whole number from 1 to 1000000",
        ),
        ("key create --workspace x --env live --scopes runs:read --budget-cents -1", "a whole number from 0"),
        ("key revoke nonsense", "the id of a key"),
        ("key budget key_1 --cents -5", "a whole number from 0"),
        ("events tail --key x --url nonsense", "http:// or https://"),
        ("events tail --key x --forward nonsense", "http:// or https://"),
        ("events tail --key x --count 0", "a whole number of at least 1"),
        ("secrets rotate --wait -5", "a whole number from 0 to 3600"),
        ("secrets rotate --wait 3601", "a whole number from 0 to 3600"),
        (
            "serve --secret-key-previous c2hvcnQ=",
            "SVC_SECRET_KEY_PREVIOUS: the secret key must have 32 bytes",
        ),
        ("doctor --model-fast nonsense --database-connections 0", "a whole number from 1 to 1000"),
        ("login --url nonsense --key x", "http:// or https://"),
        ("login --url http://127.0.0.1:1 --key=", "visible characters"),
        ("login --url http://127.0.0.1:1 --key x --profile ../x", "letters, digits"),
        ("login --url http://127.0.0.1:1", "--key -"),
        ("login --url http://127.0.0.1:1 --key x", "does not answer"),
        ("logout --profile absent", "there is no profile `absent`"),
        ("api GET /me", "svc login"),
        ("api FETCH /me", "must be GET, POST"),
        ("api GET /me --key x --query name", "must be name=value"),
        ("api GET /me --key x --header name", "must be `Name: value`"),
        ("api GET /me --key x --url ftp://x", "http:// or https://"),
        ("api POST /runs --key x -d @absent.json", "reading absent.json"),
        ("api GET /me --key x --url http://127.0.0.1:1", "does not answer"),
        ("completion tcsh", "bash, zsh, fish"),
    ] {
        let output = svc(folder.path()).args(words.split(' ')).output().unwrap();
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success(), "{words}");
        assert!(stderr.contains(shown_command), "{words}: {stderr}");
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0, "{words}");
    }
}

#[test]
fn a_reader_that_has_gone_ends_the_command_without_a_word() {
    let folder = tempfile::tempdir().unwrap();
    for words in ["openapi --table", "workspace list", "workspace list --json", "migrate"] {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let output = svc(folder.path()).args(words.split(' ')).stdout(writer).output().unwrap();
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{words}: {stderr}");
        assert_eq!(stderr, "", "{words}");
    }
}
