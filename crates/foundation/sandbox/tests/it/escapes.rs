//! What native code in a worker could do: as if the engine had a fault and a program used it.

use crate::support::{key, settings};
use sandbox::{Call, Error, Failure, NoHost, Program, Sandbox};

const ATTEMPTS: &[&str] = &[
    "environment",
    "read-file",
    "read-program",
    "read-environ",
    "read-memory",
    "list-processes",
    "list-descriptors",
    "write-file",
    "remove-file",
    "make-folder",
    "look-at-file",
    "change-folder",
    "tcp",
    "tcp-listen",
    "udp",
    "unix-socket",
    "abstract-socket",
    "raw-socket",
    "thread",
    "process",
    "copy-descriptor",
    "signal-parent",
    "signal-first",
    "signal-itself",
    "pidfd-of-parent",
    "outlive-parent",
    "more-descriptors",
    "more-memory",
    "much-memory",
    "priority",
    "session",
    "time-of-neighbours",
];

/// Which attempts succeed.
async fn possible(landlock: bool, seccomp: bool) -> Vec<&'static str> {
    let mut settings = settings();
    settings.arguments = vec!["probe".into()];
    (settings.landlock, settings.seccomp) = (landlock, seccomp);
    let sandbox = Sandbox::new(settings);
    let mut possible = Vec::new();
    // Not in the folder of `TMPDIR`, which may be closed to a process without rights, so that nothing would be tried.
    let folder = std::path::PathBuf::from(format!("/tmp/sandbox-probe-{}", std::process::id()));
    std::fs::create_dir(&folder).unwrap();
    std::fs::write(folder.join("file"), "x").unwrap();
    for attempt in ATTEMPTS {
        let input = format!("\"{attempt} {}\"", folder.display());
        let call = Call { strict: true, ..Call::new(&input) };
        let outcome = sandbox.call(&key("probe"), &Program::new(""), &call, &NoHost).await.unwrap();
        match outcome.result.as_deref() {
            Ok("true") => possible.push(*attempt),
            Ok("false") | Err(Failure::Crashed) => {}
            other => panic!("{attempt}: {other:?}"),
        }
    }
    std::fs::remove_dir_all(&folder).unwrap();
    possible
}

/// What each protection stops is a column of `docs/sandbox.md`. One test, because the probes share a folder.
#[tokio::test]
async fn with_all_protection_nothing_is_possible_and_each_part_stops_its_own() {
    assert_eq!(possible(true, true).await, [""; 0]);
    assert_eq!(possible(false, true).await, [""; 0]);
    // Its own zygote is within what a process may signal, its neighbours too.
    let landlock = [
        "look-at-file",
        "change-folder",
        "thread",
        "signal-parent",
        "signal-itself",
        "outlive-parent",
        "session",
    ];
    assert_eq!(possible(true, false).await, landlock);
    let limits = [
        "remove-file",
        "make-folder",
        "look-at-file",
        "change-folder",
        "thread",
        "process",
        "signal-parent",
        "signal-first",
        "signal-itself",
        "outlive-parent",
        "session",
    ];
    let mut found = possible(false, false).await;
    // Only the superuser may signal the first process.
    if !found.contains(&"signal-first") {
        found.push("signal-first");
    }
    found.sort_by_key(|one| ATTEMPTS.iter().position(|attempt| attempt == one));
    assert_eq!(found, limits);
}

#[tokio::test]
async fn required_protection_that_is_missing_refuses_to_run_code() {
    for (landlock, seccomp) in [(false, true), (true, false), (false, false)] {
        let mut settings = settings();
        (settings.landlock, settings.seccomp, settings.required) = (landlock, seccomp, true);
        let sandbox = Sandbox::new(settings);
        let refused = sandbox.call(&key("1"), &Program::new(""), &Call::new("1"), &NoHost).await.unwrap_err();
        let Error::Unprotected(protection) = refused else { panic!("{refused:?}") };
        assert!(!protection.is_complete());
        assert_eq!(protection.seccomp, seccomp);
    }
}

#[tokio::test]
async fn a_sandbox_that_is_off_starts_nothing() {
    let sandbox = Sandbox::new(sandbox::Settings { off: true, ..settings() });
    let refused = sandbox.call(&key("1"), &Program::new(""), &Call::new("1"), &NoHost).await.unwrap_err();
    assert!(refused == Error::Off && refused.to_string().contains("SVC_SANDBOX"), "{refused}");
    assert_eq!((sandbox.stats().zygotes, sandbox.stats().protection), (0, None));
}

/// The workers of a zygote.
fn workers(zygote: u32) -> Vec<String> {
    let children =
        std::fs::read_to_string(format!("/proc/{zygote}/task/{zygote}/children")).unwrap_or_default();
    children.split_whitespace().map(str::to_owned).collect()
}

#[tokio::test]
async fn a_process_has_no_environment_one_descriptor_and_no_rights() {
    let sandbox = Sandbox::new(settings());
    let program = Program::new("export default () => 1");
    sandbox.call(&key("1"), &program, &Call::new("1"), &NoHost).await.unwrap().result.unwrap();
    let zygote = sandbox.zygote_process().await.unwrap();
    let workers = workers(zygote);
    assert_eq!(workers.len(), 1);
    for process in [zygote.to_string(), workers[0].clone()] {
        let read = |name: &str| std::fs::read_to_string(format!("/proc/{process}/{name}")).unwrap();
        let status = read("status");
        let field =
            |name: &str| status.lines().find_map(|line| line.strip_prefix(name)).unwrap().trim().to_owned();
        assert_eq!(field("Threads:"), "1");
        assert_eq!(field("Seccomp:"), "2");
        assert_eq!(field("NoNewPrivs:"), "1");
        assert_eq!(field("CapEff:").trim_start_matches('0'), "");
        assert_eq!(field("CapPrm:").trim_start_matches('0'), "");
        // Only the superuser may look into a process that hides.
        if let Ok(descriptors) = std::fs::read_dir(format!("/proc/{process}/fd")) {
            let names: Vec<_> =
                descriptors.map(|one| one.unwrap().file_name().into_string().unwrap()).collect();
            assert_eq!(names, ["0"], "{process}");
            assert_eq!(read("environ"), "");
        }
    }
}
