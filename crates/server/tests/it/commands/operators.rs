//! `svc operator`, `svc team invite`, and the link that `serve` prints while nobody manages the installation.

use accounts::links::{self, Place, Purpose};
use accounts::{Actor, Email, PasswordHash, Passwords, Secret, first_operator, memberships};
use business::team;
use model::{MemberRole, SystemRandom};
use serde_json::json;
use std::fs::File;
use std::path::Path;
use std::sync::Arc;
use store::Tx;
use testkit::{Kind, Program, Serving, until};

const SVC: &str = env!("CARGO_BIN_EXE_svc");

/// The secret at the end of a link to this page, which is on the machine itself.
fn code(program: &Program, url: &str, page: &str) -> Secret {
    let start = format!("http://{}/{page}/", program.listen);
    Secret::parse(url.strip_prefix(&start).unwrap_or_else(|| panic!("{url}"))).unwrap()
}

async fn hash() -> PasswordHash {
    let passwords = Passwords::new(Arc::new(SystemRandom::default()));
    let email = Email::parse("nobody@example.com").unwrap();
    passwords.hash("correct horse battery".to_owned(), &email).await.unwrap()
}

/// Creates an operator by a link, as the page does.
async fn create(program: &Program, code: Secret) -> model::Result<accounts::Account> {
    let (hash, email) = (hash().await, Email::parse("marta@example.com").unwrap());
    let db = &program.data.db;
    db.write(move |tx| first_operator::create(tx, &code, &email, "Marta Ruiz", &hash, None)).await
}

fn role_of(tx: &mut Tx, place: Place) -> model::Result<MemberRole> {
    Ok(team::find(tx, place.workspace, place.member)?.role)
}

/// Serves until something is printed, or for as long as it would take. Returns the link.
async fn printed_link(program: &Program, file: &Path, is_expected: bool) -> (Serving, Option<String>) {
    let serving = program.serve_printing_to(File::create(file).unwrap()).await;
    let read = || {
        let text = std::fs::read_to_string(file).unwrap();
        text.split_whitespace().find(|word| word.contains("/start/")).map(str::to_owned)
    };
    let link = if is_expected { Some(until("a link is printed", async || read()).await) } else { read() };
    (serving, link)
}

#[testkit::both]
async fn operators_are_made_by_links_and_listed_and_removed(kind: Kind) {
    let program = Program::new(kind, SVC).await;
    let made = program.run(&["operator", "link"]);
    assert_eq!(made["works_for_minutes"], 30);
    assert_eq!(program.run(&["operator", "list"]), json!([]));
    let code_of = |url: &serde_json::Value, page| code(&program, url.as_str().unwrap(), page);
    create(&program, code_of(&made["url"], "start")).await.unwrap();
    let listed = program.run(&["operator", "list"]);
    assert_eq!(
        (&listed[0]["email"], &listed[0]["name"]),
        (&json!("marta@example.com"), &json!("Marta Ruiz"))
    );

    let reset = program.run(&["operator", "reset-password", "Marta@example.com"]);
    let reset = code_of(&reset["url"], "reset");
    let link = program.data.db.read(move |read| links::look(read, &reset, Purpose::PasswordReset)).await;
    assert_eq!(link.unwrap().account_id.unwrap().as_str(), listed[0]["id"].as_str().unwrap());
    assert!(
        program.fails(&["operator", "reset-password", "x@example.com"]).contains("not that of an account")
    );

    let removed = program.run(&["operator", "remove", "marta@example.com"]);
    assert_eq!((&removed["id"], &removed["removed"]), (&listed[0]["id"], &json!(true)));
    assert_eq!(program.run(&["operator", "list"]), json!([]));
    assert!(program.fails(&["operator", "remove", "marta@example.com"]).contains("not that of an operator"));
}

#[testkit::both]
async fn serve_prints_a_link_at_each_start_until_there_is_an_operator(kind: Kind) {
    let program = Program::new(kind, SVC).await;
    let file = program.data_dir().join("printed");
    let (serving, first) = printed_link(&program, &file, true).await;
    serving.kill();
    let (serving, second) = printed_link(&program, &file, true).await;
    let [first, second] = [first, second].map(|link| code(&program, &link.unwrap(), "start"));
    assert_ne!(first, second);
    create(&program, first).await.unwrap();
    // The link of the other start is over, too.
    assert_eq!(create(&program, second).await.unwrap_err().code().as_str(), "link_used");
    serving.stop().await;
    let (serving, third) = printed_link(&program, &file, false).await;
    serving.stop().await;
    assert_eq!(third, None);
    assert!(!std::fs::read_to_string(&file).unwrap().contains("/start/"));
}

#[testkit::both]
async fn the_link_of_the_demo_makes_its_owner(kind: Kind) {
    let program = Program::new(kind, SVC).await;
    let (serving, demo) = program.serve_demo().await;
    let line = demo.printed.lines().find(|line| line.starts_with("Sign in as the owner")).unwrap();
    let account =
        create(&program, code(&program, line.split(' ').next_back().unwrap(), "start")).await.unwrap();
    let found = program.data.db.read(move |read| {
        let [membership] = memberships::of_account(read, &account.id)?.try_into().unwrap();
        Ok((team::find(read, membership.workspace, membership.member)?, membership))
    });
    let (member, membership) = found.await.unwrap();
    assert_eq!((member.name.as_str(), member.role), ("Marta Ruiz", MemberRole::Owner));
    assert_eq!(membership.role, MemberRole::Owner);
    serving.stop().await;
}

#[testkit::both]
async fn members_are_invited_by_links(kind: Kind) {
    let program = Program::new(kind, SVC).await;
    program.run(&["workspace", "create", "--name", "Acme"]);
    let invite = |more: &[&str]| {
        let words = ["team", "invite", "--workspace", "acme", "--email", "eva@example.com"];
        program.run(&[&words[..], more].concat())
    };
    let made = invite(&["--name", "Eva", "--role", "manager"]);
    assert_eq!((&made["works_for_minutes"], &made["role"]), (&json!(7 * 24 * 60), &json!("manager")));
    let again = invite(&[]);
    assert_eq!((&again["member"], &again["role"]), (&made["member"], &json!("manager")));
    assert_eq!(invite(&["--role", "admin"])["role"], "admin");
    let team = program.run(&["team", "list", "--workspace", "acme"]);
    assert_eq!((team.as_array().unwrap().len(), &team[0]["name"]), (1, &json!("Eva")));

    // Only the newest invitation works.
    let newest = invite(&[]);
    let [old, newest] = [&again, &newest].map(|made| code(&program, made["url"].as_str().unwrap(), "invite"));
    let account = create(&program, {
        let made = program.run(&["operator", "link"]);
        code(&program, made["url"].as_str().unwrap(), "start")
    });
    let id = account.await.unwrap().id;
    let accept = async |code: Secret| {
        let id = id.clone();
        let db = &program.data.db;
        db.write(move |tx| memberships::accept(tx, &code, &id, &Actor::Service, role_of)).await
    };
    assert_eq!(accept(old).await.unwrap_err().code().as_str(), "link_used");
    assert_eq!(accept(newest).await.unwrap().role, MemberRole::Admin);
    let words = ["team", "invite", "--workspace", "acme", "--email", "EVA@example.com"];
    assert!(program.fails(&words).contains("has an account"));
}
