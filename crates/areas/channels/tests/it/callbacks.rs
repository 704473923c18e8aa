//! Tests of the route for callbacks.

use testkit::{ChannelApp, Kind};

#[testkit::both]
async fn only_the_network_is_believed(kind: Kind) {
    let desk = ChannelApp::open(kind).await;
    let body = r#"{"object":"x","entry":[]}"#;
    let path = format!("/callbacks/{}", desk.channel);
    let post = |signature: Option<String>| {
        let ask = desk.app.ask_beside("POST", &path).bytes("application/json", body.as_bytes());
        match signature {
            Some(signature) => ask.header("X-Hub-Signature-256", &signature),
            None => ask,
        }
    };
    assert_eq!(post(None).send().await.status, 401);
    assert_eq!(post(Some("sha256=00".to_owned())).send().await.status, 401);
    let good = chatnet::sign(&desk.network.connection().app_secret, body.as_bytes());
    assert_eq!(post(Some(good)).send().await.status, 200);
    assert_eq!(desk.count("SELECT count(*) AS n FROM channel_callbacks").await, 1);
    desk.settle().await;
    assert_eq!(desk.count("SELECT count(*) AS n FROM channel_callbacks WHERE status = 'done'").await, 1);
    assert_eq!(
        desk.app
            .ask_beside("POST", "/callbacks/999")
            .bytes("application/json", body.as_bytes())
            .send()
            .await
            .status,
        404
    );
    assert_eq!(
        desk.app.ask_beside("PUT", &path).bytes("application/json", body.as_bytes()).send().await.status,
        405
    );
    let greet = |token: &str| format!("{path}?hub.mode=subscribe&hub.verify_token={token}&hub.challenge=42");
    let token = desk.network.connection().verify_token;
    assert_eq!(desk.app.ask_beside("GET", &greet(&token)).send().await.status, 200);
    assert_eq!(desk.app.ask_beside("GET", &greet("guess")).send().await.status, 403);
}

#[testkit::both]
async fn nonsense_that_is_signed_is_kept_and_harms_nothing(kind: Kind) {
    let desk = ChannelApp::open(kind).await;
    let secret = desk.network.connection().app_secret;
    for body in
        ["", "null", "[]", "{", r#"{"entry":[{"changes":[{"field":"future","value":{"a":1}}]}]}"#, "\u{0}"]
    {
        let ask = desk
            .app
            .ask_beside("POST", &format!("/callbacks/{}", desk.channel))
            .bytes("application/json", body.as_bytes());
        let answer = ask.header("X-Hub-Signature-256", &chatnet::sign(&secret, body.as_bytes())).send().await;
        assert_eq!(answer.status, 200);
    }
    desk.settle().await;
    assert_eq!(desk.count("SELECT count(*) AS n FROM channel_callbacks WHERE status = 'done'").await, 6);
}
