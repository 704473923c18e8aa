//! Whether the network accepts the credentials of a channel: asked before it is connected, and by `svc doctor`.

use crate::commands::doctor::doctor;
use serde_json::json;
use simulator::{Settings, Simulator};
use testkit::{Kind, Program};

#[testkit::both]
async fn credentials_that_the_network_refuses_connect_nothing(kind: Kind) {
    let program =
        Program::new(kind, env!("CARGO_BIN_EXE_svc")).await.with("SVC_ALLOW_OUTBOUND", "127.0.0.0/8");
    let workspace = program.run(&["workspace", "create", "--name", "Acme"])["id"].to_string();
    let network = Simulator::start(Settings::default()).unwrap();
    let connection = network.connection();
    let words = |token: &str| {
        let words =
            ["channel", "connect", "--workspace", &workspace, "--name", "Shop", "--provider", "simulator"];
        let of_network = [
            "--network-url",
            &connection.base_url,
            "--number-id",
            &connection.number_id,
            "--business-id",
            &connection.business_id,
            "--access-token",
            token,
            "--app-secret",
            &connection.app_secret,
            "--verify-token",
            &connection.verify_token,
        ];
        words.iter().chain(&of_network).map(|word| (*word).to_owned()).collect::<Vec<String>>()
    };
    let (findings, _) = doctor(&program, &[]).await;
    assert_eq!(findings["channels"].0, "ok", "{findings:?}");

    let wrong = words("not-the-access-token");
    let wrong: Vec<&str> = wrong.iter().map(String::as_str).collect();
    let refused = program.fails(&wrong);
    assert!(
        refused.contains("does not accept the credentials") && refused.contains("--no-check"),
        "{refused}"
    );
    testkit::assert_absent(&refused, "not-the-access-token");
    assert_eq!(program.run(&["channel", "list"]), json!([]));
    let all_the_same = [&wrong[..], &["--no-check"]].concat();
    assert_eq!(program.run(&all_the_same)["status"], "connecting");
    let (findings, is_success) = doctor(&program, &[]).await;
    let (status, message) = &findings["channels"];
    assert!(!is_success && status == "fail", "{findings:?}");
    assert!(message.contains("Shop: the network does not accept the credentials"), "{message}");

    let right = words(&connection.access_token);
    let right: Vec<&str> = right.iter().map(String::as_str).collect();
    assert_eq!(right[9], connection.base_url);
    program.run(&right);
    let (findings, _) = doctor(&program, &[]).await;
    assert_eq!(findings["channels"].0, "ok", "{findings:?}");
    let mut elsewhere = right;
    elsewhere[9] = "http://127.0.0.1:1/v23.0";
    let unreachable = program.fails(&elsewhere);
    assert!(
        unreachable.contains("the number was not confirmed: The network could not be reached"),
        "{unreachable}"
    );
}
