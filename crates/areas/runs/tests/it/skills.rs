//! Skills in runs, with a scripted library.

use crate::fakes::Fakes;
use crate::recovery::{replica, take_over};
use crate::{ask, awaited, begin, call, check_books, give_tool, prompted, read, say, with_agent};
use ports::SkillActivation;
use serde_json::{Value, json};
use testkit::{Key, Kind, OpenAiServer, Script, TestApp};

async fn set_up(
    kind: Kind,
    skills: &[(&str, SkillActivation, Option<&[&str]>)],
) -> (Fakes, TestApp, Key, Value) {
    let fakes = Fakes::default();
    for (id, (name, activation, allowed)) in (1..).zip(skills) {
        fakes.add_skill(id, name, *activation, *allowed);
    }
    let app = fakes.app(kind).await;
    let (key, agent) = with_agent(&app, json!({ "instructions": "Be brief." })).await;
    let all: Vec<Value> = (1..=skills.len()).map(|id| json!({ "skill_id": id })).collect();
    let path = format!("/agents/{}/skills", agent["id"]);
    let agent = app.put(&path, &key, json!({ "skills": all })).await.expect(200);
    (fakes, app, key, agent)
}

fn system(app: &TestApp, prompt: usize) -> String {
    app.model.prompts()[prompt].messages[0].content.clone()
}

fn last(app: &TestApp) -> String {
    app.model.prompts().last().unwrap().messages.last().unwrap().content.clone()
}

fn outputs(run: &Value) -> Vec<Value> {
    let steps = run["steps"].as_array().unwrap().iter().filter(|step| step["type"] == "tool");
    steps.map(|step| step["output"].clone()).collect()
}

const RETURNS: (&str, SkillActivation, Option<&[&str]>) = ("returns", SkillActivation::Auto, None);

#[testkit::both]
async fn a_skill_is_offered_loaded_read_and_run(kind: Kind) {
    let (fakes, app, key, agent) = set_up(kind, &[RETURNS]).await;
    assert_eq!(agent["skills"], json!([{ "skill_id": 1, "version": null }]));
    app.model.then(call("load_skill", json!({ "name": "returns" })));
    app.model.then(call("read_skill_file", json!({ "skill": "returns", "path": "references/rules.md" })));
    app.model.then(call("read_skill_file", json!({ "skill": "returns", "path": "references/rule.md" })));
    app.model.then(call("run_skill_script", json!({ "skill": "returns", "path": "scripts/sum.py" })));
    let script =
        json!("{\"skill\": \"returns\", \"path\": \"scripts/sum.js\", \"input\": [12345678901234567890.5]}");
    app.model.then(call("run_skill_script", script));
    app.model.then(call("load_skill", json!({ "name": "returns" }))).then(say("Done."));
    let run = ask(&app, &key, json!({ "input": "A return." })).await.expect(200);
    assert_eq!(run["output"], "Done.");
    let told = system(&app, 0);
    assert!(told.starts_with("Be brief.\n\nSkills are procedures"), "{told}");
    assert!(told.contains("- returns: How to treat returns."), "{told}");
    let tools: Vec<String> = app.model.prompts()[0].tools.iter().map(|tool| tool.name.clone()).collect();
    assert_eq!(tools, ["load_skill", "read_skill_file", "run_skill_script"]);
    assert_eq!(app.model.prompts()[0].tools[0].parameters["properties"]["name"]["enum"], json!(["returns"]));
    let loaded = app.model.prompts()[1].messages.last().unwrap().content.clone();
    assert!(
        loaded.starts_with("<skill name=\"returns\" version=\"3\">\nFirst ask about returns.&lt;/skill>"),
        "{loaded}"
    );
    assert!(
        loaded.ends_with("\n</skill>") && loaded.contains("- scripts/sum.js (10 bytes, run_skill_script)")
    );
    let file = app.model.prompts()[2].messages.last().unwrap().content.clone();
    assert!(
        file.contains("<skill_file skill=\"returns\" path=\"references/rules.md\">\nRules of version 3."),
        "{file}"
    );
    let run = read(&app, &key, &run).await;
    let outputs = outputs(&run);
    assert_eq!((&outputs[0]["ok"], &outputs[0]["result"]["version"]), (&json!(true), &json!(3)));
    assert!(outputs[2]["result"].as_str().unwrap().contains("there is `references/rules.md`"));
    assert!(outputs[3]["result"].as_str().unwrap().contains("only JavaScript"));
    assert_eq!(outputs[4], json!({ "ok": true, "result": { "got": "input" } }));
    assert_eq!(fakes.scripts()[0].input.as_str(), "[12345678901234567890.5]");
    let note = "The skill is loaded already: nothing changed.";
    assert_eq!(outputs[5], json!({ "ok": true, "result": { "skill": "returns", "note": note } }));
    let first = &run["steps"][0]["input"]["messages"][0]["content"];
    assert_eq!(*first, json!(told), "the trace shows the prompt as it was");
    check_books(&app, key.workspace).await;
}

#[testkit::both]
async fn skills_that_are_always_there_or_are_named_are_loaded_at_the_start(kind: Kind) {
    let manual = ("refunds", SkillActivation::Manual, None);
    let (_, app, key, _) = set_up(kind, &[("greeting", SkillActivation::Always, None), manual]).await;
    ask(&app, &key, json!({ "input": "Hello, no refunds" })).await.expect(200);
    let told = system(&app, 0);
    assert!(
        told.contains("<skill name=\"greeting\" version=\"3\">") && !told.contains("<skill name=\"refunds\""),
        "{told}"
    );
    let tools: Vec<String> = app.model.prompts()[0].tools.iter().map(|tool| tool.name.clone()).collect();
    assert_eq!(tools, ["read_skill_file", "run_skill_script"], "there is nothing to load");
    assert_eq!(
        app.model.prompts()[0].tools[0].parameters["properties"]["skill"]["enum"],
        json!(["greeting"])
    );
    ask(&app, &key, json!({ "input": "Please /refunds my order" })).await.expect(200);
    assert!(system(&app, 1).contains("<skill name=\"refunds\" version=\"3\">"));
}

#[testkit::both]
async fn a_loaded_skill_narrows_the_tools_and_grants_none(kind: Kind) {
    let lists: [(&str, SkillActivation, Option<&[&str]>); 3] = [
        ("returns", SkillActivation::Auto, Some(&["orders", "nothing"])),
        ("prices", SkillActivation::Auto, Some(&["prices"])),
        ("broken", SkillActivation::Auto, Some(&[])),
    ];
    let (_, app, key, agent) = set_up(kind, &lists).await;
    let server = OpenAiServer::start().await;
    for name in ["orders", "prices"] {
        give_tool(&app, &key, &agent, name, &server, json!({ "http": { "method": "GET" } })).await;
    }
    give_tool(&app, &key, &agent, "pay", &server, json!({ "http": {}, "approval": "always" })).await;
    let load = |name: &str| ("load_skill".to_owned(), json!({ "name": name }));
    let tool = |name: &str| (name.to_owned(), json!({}));
    app.model.then(Script::Call(vec![tool("prices"), load("returns"), tool("prices"), tool("orders")]));
    app.model.then(Script::Call(vec![tool("pay"), tool("nothing"), load("prices")]));
    app.model.then(Script::Call(vec![tool("prices")])).then(say("Done."));
    let run = ask(&app, &key, json!({ "input": "A return." })).await.expect(200);
    assert_eq!(run["status"], "completed", "nobody is asked about a call that is not left");
    let outputs = outputs(&read(&app, &key, &run).await);
    let fine: Vec<bool> = outputs.iter().map(|output| output["ok"] == true).collect();
    assert_eq!(fine, [true, true, false, true, false, false, true, true], "{outputs:?}");
    let why =
        "the call was not made: with the loaded skills `returns` you may call only the tools nothing, orders";
    assert_eq!((&outputs[2]["result"], &outputs[4]["result"]), (&json!(why), &json!(why)));
    assert_eq!(outputs[5]["result"], "there is no tool called `nothing`", "a list grants nothing");
    // A list that cannot be read leaves no tool.
    app.model.then(Script::Call(vec![load("broken"), tool("orders")])).then(say("Done."));
    let run = ask(&app, &key, json!({ "input": "A return." })).await.expect(200);
    let outputs = self::outputs(&read(&app, &key, &run).await);
    assert!(outputs[1]["result"].as_str().unwrap().ends_with("you may call no tools"), "{outputs:?}");
    // What is loaded still needs the approval of its tools.
    give_tool(&app, &key, &agent, "orders", &server, json!({ "http": {}, "approval": "always" })).await;
    app.model.then(Script::Call(vec![load("returns"), tool("orders")]));
    let run = begin(&app, &key, json!({ "input": "A return." })).await;
    awaited(&app, &key, &run, "requires_action").await;
}

#[testkit::both]
async fn loaded_skills_survive_a_crash_and_their_own_end(kind: Kind) {
    let always: (&str, SkillActivation, Option<&[&str]>) =
        ("house", SkillActivation::Always, Some(&["prices"]));
    let auto: (&str, SkillActivation, Option<&[&str]>) =
        ("returns", SkillActivation::Auto, Some(&["orders"]));
    let (fakes, app, key, agent) = set_up(kind, &[auto, always]).await;
    let server = OpenAiServer::start().await;
    give_tool(&app, &key, &agent, "look", &server, json!({ "http": { "method": "GET" } })).await;
    app.model.then(call("load_skill", json!({ "name": "returns" }))).then(Script::Wait("too late".into()));
    let run = begin(&app, &key, json!({ "input": "A return." })).await;
    prompted(&app, 2).await;
    let other = replica(&app).await;
    other.model.then(call("look", json!({}))).then(Script::Wait("too late".into()));
    assert_eq!(take_over(&other).await, 1);
    prompted(&other, 2).await;
    let prompt = &other.model.prompts()[0];
    assert_eq!(prompt.messages.last().unwrap().content, last(&app));
    assert_eq!(prompt.messages[0].content, system(&app, 0));
    let refused = last(&other);
    assert!(refused.contains("`house`, `returns` you may call only the tools orders, prices"), "{refused}");
    // The skills are switched off: what they left is still all that is left.
    fakes.remove_skills();
    let third = replica(&app).await;
    third.model.then(call("look", json!({ "again": 1 }))).then(say("Done."));
    assert_eq!(take_over(&third).await, 1);
    let run = awaited(&app, &key, &run, "completed").await;
    assert!(last(&third).contains("you may call only the tools orders, prices"));
    assert_eq!(server.requests(), 0);
    app.model.release();
    other.model.release();
    app.service.engine.idle().await;
    other.service.engine.idle().await;
    third.service.engine.idle().await;
    assert_eq!(run["output"], "Done.");
}

#[testkit::both]
async fn loaded_skills_are_not_cut_from_a_long_run(kind: Kind) {
    let (_, app, key, agent) = set_up(kind, &[RETURNS]).await;
    let server = OpenAiServer::start().await;
    give_tool(&app, &key, &agent, "look", &server, json!({ "http": { "method": "GET" } })).await;
    app.model.then(call("load_skill", json!({ "name": "returns" })));
    for letter in ["x", "y", "z"] {
        server.then(200, None, json!(letter.repeat(60_000)));
        app.model.then(call("look", json!({ "page": letter })));
    }
    let run = ask(&app, &key, json!({ "input": "A return." })).await.expect(200);
    assert_eq!(run["status"], "completed");
    let texts: Vec<String> =
        app.model.prompts().pop().unwrap().messages.into_iter().map(|message| message.content).collect();
    assert!(texts.iter().any(|text| text.contains("First ask about returns.")));
    assert!(texts.iter().any(|text| text.contains("[left out to make room")));
}

#[testkit::both]
async fn skills_of_agents_must_be_there(kind: Kind) {
    let (_, app, key, agent) = set_up(kind, &[RETURNS]).await;
    let path = format!("/agents/{}/skills", agent["id"]);
    for (skills, param) in [
        (json!([{ "skill_id": 1 }, { "skill_id": 2 }]), "skills[1].skill_id"),
        (json!([{ "skill_id": 1, "version": 4 }]), "skills[0].version"),
        (json!([{ "skill_id": 1 }, { "skill_id": 1, "version": 2 }]), "skills[1].skill_id"),
    ] {
        let refused = app.put(&path, &key, json!({ "skills": skills })).await;
        assert_eq!(refused.expect_error(400, "validation_error").as_deref(), Some(param));
    }
    let pinned = json!({ "skills": [{ "skill_id": 1, "version": 2 }] });
    assert_eq!(app.put(&path, &key, pinned.clone()).await.expect(200)["version"], 3);
    assert_eq!(app.put(&path, &key, pinned).await.expect(200)["version"], 3, "nothing changed");
    let versions = format!("/agents/{}/versions", agent["id"]);
    let earlier = app.get(&format!("{versions}/2"), &key).await.expect(200);
    assert_eq!(earlier["skills"], json!([{ "skill_id": 1, "version": null }]));
    let restored = app.post(&format!("{versions}/2/restore"), &key, json!({})).await.expect(200);
    assert_eq!(restored["skills"], json!([{ "skill_id": 1, "version": null }]));
}

#[testkit::both]
async fn a_published_skill_is_loaded(kind: Kind) {
    let app = TestApp::new(kind).await;
    let (key, agent) = with_agent(&app, json!({})).await;
    let body = json!({
        "name": "returns", "description": "How to treat returns.", "instructions": "Ask for the order.", "allowed_tools": ["pay"],
    });
    let skill = app.post("/skills", &key, body).await.expect(201);
    let path = format!("/skills/{}", skill["id"]);
    let skills = json!({ "skills": [{ "skill_id": skill["id"] }] });
    app.put(&format!("/agents/{}/skills", agent["id"]), &key, skills).await.expect(200);
    ask(&app, &key, json!({ "input": "A return." })).await.expect(200);
    assert!(app.model.prompts()[0].tools.is_empty(), "it is not published");
    let server = OpenAiServer::start().await;
    for name in ["pay", "look"] {
        give_tool(&app, &key, &agent, name, &server, json!({ "http": { "method": "GET" } })).await;
    }
    app.post(&format!("{path}/publish"), &key, json!({})).await.expect(200);
    app.model
        .then(call("load_skill", json!({ "name": "returns" })))
        .then(call("look", json!({})))
        .then(say("Done."));
    let run = ask(&app, &key, json!({ "input": "A return." })).await.expect(200);
    let outputs = outputs(&read(&app, &key, &run).await);
    assert!(outputs[0]["result"]["instructions"].as_str().unwrap().contains("Ask for the order."));
    assert!(
        outputs[1]["result"].as_str().unwrap().ends_with("you may call only the tools pay"),
        "{outputs:?}"
    );
    let refused = app.delete(&path, &key).await;
    refused.expect_error(409, "resource_in_use");
    assert_eq!(refused.body["error"]["details"]["used_by"][0]["name"], "Assistant");
}
