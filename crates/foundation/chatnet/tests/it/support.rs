use chatnet::{Account, ChannelAdapter, Chatnet, Update};
use egress::{Connector, Policy};
use std::path::PathBuf;

pub const MESSAGE: &str = "wamid.HBgLMTY1MDU1NTEyMzQVAgASGBQzA1A==";
pub const OURS: &str = "wamid.HBgLMTY1MDU1NTEyMzQVAgASGBQzOURA==";
pub const USER: &str = "US.13491208655302741918";

pub fn adapter() -> Chatnet {
    Chatnet::new(Connector::new(Policy::public_only()).unwrap())
}

pub fn account() -> Account {
    Account {
        base_url: "https://chat.example/v23.0".to_owned(),
        number_id: "106540352242922".to_owned(),
        business_id: "102290129340398".to_owned(),
        access_token: "token".to_owned(),
    }
}

fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures")
}

pub fn fixture(name: &str) -> Vec<u8> {
    std::fs::read(folder().join(format!("{name}.json"))).unwrap()
}

pub fn fixtures() -> Vec<String> {
    let files = std::fs::read_dir(folder()).unwrap();
    let mut names: Vec<String> =
        files.map(|file| file.unwrap().path().file_stem().unwrap().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

pub fn parse(raw: &[u8]) -> Vec<Update> {
    adapter().parse_webhook(&account(), raw)
}

/// Returns the only update of a fixture.
pub fn update(name: &str) -> Update {
    let mut updates = parse(&fixture(name));
    assert_eq!(updates.len(), 1, "{name}: {updates:?}");
    updates.remove(0)
}
