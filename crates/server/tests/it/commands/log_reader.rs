//! The log's reader may end or stop reading: the service serves on, and stops as it always does.

use std::io::{PipeReader, Read, pipe};
use testkit::{Kind, Program};

const BINARY: &str = env!("CARGO_BIN_EXE_svc");
/// What a pipe holds at least on Linux, whatever lines it is filled with.
const PIPE_BYTES: usize = 60 * 1024;

/// A program that says as much as it can.
async fn talkative(kind: Kind) -> Program {
    Program::new(kind, BINARY).await.with("SVC_LOG", "trace,actix_http::h1::dispatcher=trace")
}

/// Requests, each of which leaves lines in the log.
async fn ask(program: &Program, times: usize) {
    let client = program.client();
    for _ in 0..times {
        assert_eq!(client.ask_beside("GET", "/health").send().await.status, 200);
    }
}

/// Reads on until `text` has come, and gives what came.
fn read_until(reader: &mut PipeReader, text: &str) -> String {
    let mut bytes = Vec::new();
    let mut chunk = [0; 64 * 1024];
    loop {
        let read = reader.read(&mut chunk).unwrap();
        assert!(read > 0, "the log ends without `{text}`");
        bytes.extend_from_slice(&chunk[..read]);
        let log = String::from_utf8_lossy(&bytes);
        if log.contains(text) {
            return log.into_owned();
        }
    }
}

#[testkit::both]
async fn that_ends(kind: Kind) {
    let program = talkative(kind).await;
    let (mut reader, writer) = pipe().unwrap();
    let serving = program.serve_logging(&program.listen, writer).await;
    read_until(&mut reader, "serving");
    drop(reader);
    ask(&program, 20).await;
    serving.stop().await;
}

#[testkit::both]
async fn that_never_reads(kind: Kind) {
    let program = talkative(kind).await;
    let (mut reader, writer) = pipe().unwrap();
    let serving = program.serve_logging(&program.listen, writer).await;
    ask(&program, 200).await;
    serving.stop().await;
    let mut log = Vec::new();
    reader.read_to_end(&mut log).unwrap();
    assert!(log.len() >= PIPE_BYTES, "the pipe was never full: {}", log.len());
}

#[tokio::test]
async fn that_reads_again_gets_what_it_missed() {
    let program = talkative(Kind::Sqlite).await;
    let (mut reader, writer) = pipe().unwrap();
    let serving = program.serve_logging(&program.listen, writer).await;
    ask(&program, 3_000).await;
    read_until(&mut reader, "lines of the log were lost");
    let reading = tokio::task::spawn_blocking(move || read_until(&mut reader, "stopping"));
    serving.stop().await;
    reading.await.unwrap();
}

#[tokio::test]
async fn that_reads_gets_all_lines_of_an_orderly_end() {
    let program = Program::new(Kind::Sqlite, BINARY).await.with("SVC_LOG", "info");
    let (mut reader, writer) = pipe().unwrap();
    let serving = program.serve_logging(&program.listen, writer).await;
    serving.stop().await;
    let mut log = String::new();
    reader.read_to_string(&mut log).unwrap();
    assert!(log.contains("\"message\":\"serving\"") && log.contains("\"message\":\"stopping\""), "{log}");
    assert!(log.ends_with("}\n"), "{log}");
}
