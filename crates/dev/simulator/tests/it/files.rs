use crate::support::{Net, PHONE};
use bytes::Bytes;
use chatnet::{
    ChannelAdapter, InboundContent, InboundMedia, MediaKind, MediaSource, OutboundContent, SendOutcome,
};
use egress::Request;
use serde_json::Value;
use simulator::{Action, Faults, MediaFaults};
use std::time::Duration;

const MOST: usize = 1 << 20;

async fn voice_note(net: &Net, words: &str) -> InboundMedia {
    let before = net.messages(0).await.len();
    net.sim.act(PHONE, &Action::VoiceNote { words: words.to_owned() }).unwrap();
    match net.messages(before + 1).await.pop().unwrap().content {
        InboundContent::Media(media) => media,
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn files_are_uploaded_and_sent() {
    let net = Net::start().await;
    net.customer();
    let content = Bytes::from_static(b"\x89PNG\r\n--x--\r\n");
    let id = net.adapter.upload_media(&net.account, "a\"b.png", "image/png", content.clone()).await.unwrap();
    let send = |kind, id: &str| {
        let source = MediaSource::Id(id.to_owned());
        net.send(OutboundContent::Media { kind, source, caption: None, file_name: None }, "")
    };
    assert!(matches!(send(MediaKind::Image, &id).await, SendOutcome::Accepted { .. }));
    assert!(matches!(send(MediaKind::Audio, &id).await, SendOutcome::Refused(_)));
    assert!(matches!(send(MediaKind::Image, "7").await, SendOutcome::Refused(_)));
    let media = net.adapter.fetch_media(&net.account, &id, MOST).await.unwrap();
    assert_eq!((media.mime_type.as_deref(), media.content), (Some("image/png"), content));
    let large = Bytes::from(vec![0; (5 << 20) + 1]);
    let error = net.adapter.upload_media(&net.account, "a.png", "image/png", large).await.unwrap_err();
    assert_eq!((error.provider_code, error.is_retryable), (Some(131_053), false));
}

#[tokio::test]
async fn files_of_customers_are_kept_for_seven_days() {
    let net = Net::start().await;
    net.customer();
    let note = voice_note(&net, "Hello").await;
    assert_eq!((note.kind, note.is_voice), (MediaKind::Audio, true));
    let fetch = || net.adapter.fetch_media(&net.account, &note.media_id, MOST);
    let media = fetch().await.unwrap();
    assert_eq!(media.mime_type.as_deref(), Some("audio/ogg; codecs=opus"));
    assert!(media.content.starts_with(b"OggS"));
    let error = net.adapter.fetch_media(&net.account, &note.media_id, 10).await.unwrap_err();
    assert!(!error.is_retryable && !error.is_gone);
    net.sim.advance(Duration::from_secs(7 * 24 * 3600 - 1));
    fetch().await.unwrap();
    net.sim.advance(Duration::from_secs(1));
    let error = fetch().await.unwrap_err();
    assert!(error.is_gone && !error.is_retryable, "{error:?}");
}

#[tokio::test]
async fn addresses_of_files_expire_and_want_the_token() {
    let net = Net::start().await;
    net.customer();
    let note = voice_note(&net, "Hello").await;
    let bearer = format!("Bearer {}", net.account.access_token);
    let get = |url: String, token: &str| net.connector.send(Request::get(url).header("authorization", token));
    let about = get(format!("{}/{}", net.account.base_url, note.media_id), &bearer).await.unwrap();
    let about: Value = serde_json::from_slice(&about.body).unwrap();
    let url = about["url"].as_str().unwrap().to_owned();
    assert_eq!(get(url.clone(), "Bearer other").await.unwrap().status, 401);
    assert_eq!(get(url.clone(), &bearer).await.unwrap().status, 200);
    net.sim.advance(Duration::from_secs(300));
    assert_eq!(get(url, &bearer).await.unwrap().status, 404);
}

#[tokio::test]
async fn files_meet_faults() {
    let net = Net::start().await;
    net.customer();
    let note = voice_note(&net, "Hello").await;
    let fetch = || net.adapter.fetch_media(&net.account, &note.media_id, MOST);
    let media = MediaFaults { not_found: 2, wrong_mime: Some("image/png".to_owned()), slow_ms: 20 };
    net.sim.set_faults(Faults { media, ..Faults::default() });
    for _ in 0..2 {
        let error = fetch().await.unwrap_err();
        assert!(error.is_retryable && !error.is_gone && !error.is_unauthorized);
    }
    let media = fetch().await.unwrap();
    assert_eq!(media.mime_type.as_deref(), Some("image/png"));
    assert!(media.content.starts_with(b"OggS"));
    let hasty = net.adapter.clone().with_patience(Duration::from_millis(200));
    let media = MediaFaults { slow_ms: 60_000, ..MediaFaults::default() };
    net.sim.set_faults(Faults { media, ..Faults::default() });
    assert!(hasty.fetch_media(&net.account, &note.media_id, MOST).await.unwrap_err().is_retryable);
}

async fn transcribe(net: &Net, file: &[u8]) -> (u16, Value) {
    let mut form = b"--b\r\nContent-Disposition: form-data; name=\"model\"\r\n\r\nwhisper-1\r\n--b\r\n\
        Content-Disposition: form-data; name=\"file\"; filename=\"a.ogg\"\r\nContent-Type: audio/ogg\r\n\r\n"
        .to_vec();
    form.extend_from_slice(file);
    form.extend_from_slice(b"\r\n--b--\r\n");
    let url = format!("{}/v1/audio/transcriptions", net.sim.connection().page);
    let request = Request::post(url, form).header("content-type", "multipart/form-data; boundary=b");
    let response = net.connector.send(request).await.unwrap();
    (response.status, serde_json::from_slice(&response.body).unwrap())
}

#[tokio::test]
async fn voice_notes_are_transcribed() {
    let net = Net::start().await;
    net.customer();
    let note = voice_note(&net, "Quero um café ☕").await;
    let file = net.adapter.fetch_media(&net.account, &note.media_id, MOST).await.unwrap().content;
    let (status, answer) = transcribe(&net, &file).await;
    assert_eq!((status, answer["text"].as_str()), (200, Some("Quero um café ☕")));
    assert_eq!(transcribe(&net, b"RIFF").await.0, 400);
    net.sim.set_faults(Faults { transcription_failures: 1, ..Faults::default() });
    assert_eq!(transcribe(&net, &file).await.0, 500);
    assert_eq!(transcribe(&net, &file).await.0, 200);
    // The duration follows the simulator's clock.
    net.sim.set_faults(Faults { transcription_delay_ms: 31_000, ..Faults::default() });
    let answer = transcribe(&net, &file);
    tokio::pin!(answer);
    assert!(futures::poll!(&mut answer).is_pending());
    net.sim.advance(Duration::from_secs(29));
    assert!(tokio::time::timeout(Duration::from_millis(50), &mut answer).await.is_err());
    net.sim.advance(Duration::from_secs(33));
    assert_eq!(answer.await.0, 200);
}
