//! Skills as runs see them.

use crate::{bare, path, skill};
use model::{JsonText, SkillId};
use ports::{MissingSkill, OfferedFile, SkillActivation, SkillFileText, SkillLibrary, SkillPin, SkillScript};
use serde_json::{Value, json};
use std::time::Duration;
use testkit::{Kind, TestApp};

/// The library over the database of the app, as its group starts it.
fn library(app: &TestApp) -> SkillLibrary {
    let test = std::env::current_exe().unwrap();
    let program = test.ancestors().nth(2).unwrap().join("sandbox-fixture");
    let sandbox = sandbox::Sandbox::new(sandbox::Settings::new(program));
    let seal = || auth::Seal::new(&[7; 32]).unwrap();
    let objects = ::files::Files::new(app.objects.clone(), seal().into(), app.origin.clone());
    let services = operation::Services::default()
        .with(app.db().clone())
        .with(sandbox)
        .with(seal())
        .with(objects)
        .with(operation::BaseUrl(app.origin.clone()));
    (skills::GROUP.start)(&services).unwrap().services.cloned().unwrap()
}

fn pin(skill: &Value, version: Option<i64>) -> SkillPin {
    SkillPin { skill: SkillId(skill["id"].as_i64().unwrap()), version }
}

#[testkit::both]
async fn runs_are_offered_what_is_published_and_enabled(kind: Kind) {
    let app = TestApp::new(kind).await;
    let key = bare(&app).await;
    let library = library(&app);
    let published = skill(&app, &key, "published", json!({ "allowed_tools": ["load_skill"] })).await;
    let code = json!({ "content": "export default (ctx) => ({ sum: ctx.input.a + 1, live: ctx.livemode })" });
    app.put(&format!("{}/files/scripts/add.js", path(&published)), &key, code).await.expect(200);
    app.put(&format!("{}/files/image", path(&published)), &key, json!({ "content_base64": "/w==" }))
        .await
        .expect(200);
    app.post(&format!("{}/publish", path(&published)), &key, json!({})).await.expect(200);
    app.patch(&path(&published), &key, json!({ "activation": "always", "instructions": "Second.\n" }))
        .await
        .expect(200);
    app.post(&format!("{}/publish", path(&published)), &key, json!({})).await.expect(200);
    app.patch(&path(&published), &key, json!({ "instructions": "Not yet." })).await.expect(200);
    let draft = skill(&app, &key, "draft", json!({})).await;
    let off = skill(&app, &key, "off", json!({ "publish": true })).await;
    app.post(&format!("{}/disable", path(&off)), &key, json!({})).await.expect(200);
    let pins = [
        pin(&off, None),
        pin(&published, None),
        pin(&draft, None),
        pin(&published, Some(1)),
        pin(&published, Some(9)),
    ];
    let (from, workspace) = (library.clone(), key.workspace);
    let offered = app.db().read(move |read| from.offered(read, workspace, &pins)).await.unwrap();
    let versions: Vec<_> =
        offered.iter().map(|skill| (skill.name.as_str(), skill.version, skill.activation)).collect();
    assert_eq!(
        versions,
        [("published", 2, SkillActivation::Always), ("published", 1, SkillActivation::Auto)]
    );
    assert_eq!(offered[0].instructions, "Second.\n");
    assert_eq!(offered[0].allowed_tools, Some(vec!["load_skill".to_owned()]));
    assert_eq!(
        offered[0].files,
        [
            OfferedFile { path: "image".to_owned(), size: 1, runs: false },
            OfferedFile { path: "scripts/add.js".to_owned(), size: 70, runs: true },
        ]
    );
    let other = bare(&app).await;
    for (workspace, pins, missing) in [
        (key.workspace, vec![pin(&draft, None), pin(&published, Some(2))], None),
        (key.workspace, vec![pin(&draft, None), pin(&published, Some(9))], Some((1, true))),
        (other.workspace, vec![pin(&draft, None)], Some((0, false))),
    ] {
        let from = library.clone();
        let found = app.db().read(move |read| from.missing(read, workspace, &pins)).await.unwrap();
        assert_eq!(found, missing.map(|(place, is_version)| MissingSkill { place, is_version }));
    }
    let id = pin(&published, None).skill;
    for (workspace, path, text) in [
        (key.workspace, "image", SkillFileText::Binary),
        (key.workspace, "none", SkillFileText::Missing),
        (other.workspace, "image", SkillFileText::Missing),
    ] {
        assert_eq!(library.read_file(workspace, id, 1, path.to_owned()).await.unwrap(), text, "{path}");
    }
    let text = library.read_file(key.workspace, id, 2, "SKILL.md".to_owned()).await.unwrap();
    assert!(matches!(text, SkillFileText::Text(text) if text.ends_with("Second.\n")));
}

#[testkit::both]
async fn scripts_run_without_network_and_secrets(kind: Kind) {
    let app = TestApp::new(kind).await;
    let key = bare(&app).await;
    let library = library(&app);
    let made = skill(&app, &key, "made", json!({})).await;
    for (path_in, code) in [
        ("scripts/add.js", "export default (ctx) => ({ sum: ctx.input.a + 1, live: ctx.livemode })"),
        ("scripts/fetch.js", "export default async (ctx) => (await ctx.fetch('https://example.com')).status"),
        ("scripts/throw.js", "export default () => { throw new TypeError('no') }"),
        ("scripts/loop.js", "export default () => { for (;;) {} }"),
        ("scripts/secrets.js", "export default (ctx) => Object.keys(ctx.secrets ?? {}).length"),
        ("scripts/run.py", "print(1)"),
    ] {
        app.put(&format!("{}/files/{path_in}", path(&made)), &key, json!({ "content": code }))
            .await
            .expect(200);
    }
    app.post(&format!("{}/publish", path(&made)), &key, json!({})).await.expect(200);
    let run = async |path: &str| {
        let script = SkillScript {
            workspace: key.workspace,
            skill: pin(&made, None).skill,
            version: 1,
            path: path.to_owned(),
            input: JsonText::printed("{\"a\":1}".to_owned()),
            livemode: false,
            patience: Duration::from_secs(3),
        };
        library.run_script(script).await.unwrap().map(|output| output.as_str().to_owned())
    };
    assert_eq!(run("scripts/add.js").await, Ok("{\"sum\":2,\"live\":false}".to_owned()));
    assert_eq!(run("scripts/throw.js").await, Err("TypeError: no".to_owned()));
    assert_eq!(run("scripts/loop.js").await, Err("the function ran out of time".to_owned()));
    assert_eq!(run("scripts/secrets.js").await, Ok("0".to_owned()));
    assert!(run("scripts/fetch.js").await.is_err());
    assert_eq!(run("scripts/none.js").await, Err("The skill has no such script.".to_owned()));
    assert_eq!(run("scripts/run.py").await, Err("Only JavaScript in scripts/ is run here.".to_owned()));
}
