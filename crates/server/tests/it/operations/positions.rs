//! Every list of the served contract reads what callers say of the place where a page begins: whatever it is, the answer
//! is a page or a 400.

use crate::operations::answers::seed;
use crate::operations::document::{Document, Op, well_formed};
use crate::operations::samples::Ids;
use crate::operations::sweep::Sweep;
use crate::operations::valid::sample_id;
use auth::Seal;
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use model::WorkspaceId;
use operation::Cursors;
use serde_json::json;
use std::collections::BTreeMap;
use std::sync::Arc;
use testkit::{Answer, Kind};

/// No list gives such positions. They come in cursors under the service's own key, which no caller can make.
const HOSTILE: [&str; 27] = [
    "",
    " ",
    "abc",
    "-1",
    "+1",
    "1.5",
    "1e3",
    "9223372036854775807",
    "9223372036854775808",
    "-9223372036854775809",
    "99999999999999999999999999999999999999999",
    "\0",
    "1\0",
    "led_\0",
    "é",
    "\u{fffd}",
    "';--",
    "%00",
    ":",
    "1:",
    ":1",
    "9223372036854775808:1",
    "-9223372036854775808:9223372036854775807",
    "out:1:1",
    "in:x:y",
    "2026-13-45T99:99:99Z",
    "null",
];

/// Each list reads one of these. A list with positions of another kind adds one.
const READABLE: [&str; 13] = [
    "1",
    "AAAAAAAAAAA",
    "1:1",
    "out:1:1:1",
    "led_00000000000000000000000000",
    "inv_00000000000000000000000000",
    "we_00000000000000000000000000",
    "wh_00000000000000000000000000",
    "imp_00000000000000000000000000",
    "frun_00000000000000000000000000",
    "atf_00000000000000000000000000",
    "aud_00000000000000000000000000",
    "acc_00000000000000000000000000",
];

/// What is no cursor at all.
const GARBAGE: [&str; 9] =
    ["", "garbage", "%00", "%FF", "A", "e30", "-1x", "eyJwb3NpdGlvbiI6ImFiYyIsInNlYWwiOiIifQ", "%C3%A9"];

/// A list, filled in.
struct List<'a> {
    op: &'a Op,
    /// With the beginning of a query.
    path: String,
    filters: String,
    cursors: Cursors,
}

impl<'a> List<'a> {
    fn new(sweep: &Sweep, document: &Document, op: &'a Op, ids: &Ids) -> Self {
        let named: BTreeMap<String, String> = document
            .ids(op)
            .into_iter()
            .map(|name| (name.clone(), sample_id(op, ids, &name).clone()))
            .collect();
        let path =
            named.iter().fold(op.path.clone(), |path, (name, id)| path.replace(&format!("{{{name}}}"), id));
        let filters = match op.id.as_str() {
            // It has filters of its own.
            "listItems" => json!([ids["collectionId"].parse::<i64>().unwrap(), [], null, false]),
            "searchConversations" => json!([["q", "espresso"]]),
            _ => json!(named.iter().collect::<Vec<_>>()),
        };
        let query = match (op.id.as_str(), op.paging.as_deref()) {
            ("searchItems", _) => "q=full&",
            ("searchConversations", _) => "q=espresso&paginate=true&",
            (_, Some("opt_in")) => "paginate=true&",
            _ => "",
        };
        let seal = Arc::new(Seal::new(&[7; 32]).unwrap());
        let workspace = WorkspaceId(sweep.workspace.parse().unwrap());
        let filters = filters.to_string();
        let cursors = Cursors::new(seal, op.id.clone().leak(), workspace, filters.clone());
        Self { op, path: format!("{path}?{query}"), filters, cursors }
    }

    async fn page(&self, sweep: &Sweep, position: &str) -> Answer {
        let path = format!("{}starting_after={position}", self.path);
        // A minute of its own. Its form is held against the contract elsewhere.
        sweep.app.data.clock.advance(chrono::Duration::seconds(61));
        let key = sweep.credential(self.op, sweep.key(self.op, true)).await;
        let answer = sweep.app.get(&path, &key).await;
        well_formed(&answer, &format!("{}: {position:?}", self.op.id));
        if answer.status != 200 {
            let param = answer.expect_error(400, "validation_error");
            assert_eq!(param.as_deref(), Some("starting_after"), "{}: {position:?}", self.op.id);
        }
        answer
    }
}

/// What the service gave before it had a key for cursors: anybody can make it.
fn unkeyed(op: &Op, workspace: i64, filters: &str, position: &str) -> String {
    let sealed = serde_json::to_vec(&json!(["v1", op.id, workspace, filters, position])).unwrap();
    let digest = ring::digest::digest(&ring::digest::SHA256, &sealed);
    let seal = URL_SAFE_NO_PAD.encode(&digest.as_ref()[..9]);
    URL_SAFE_NO_PAD.encode(json!({ "position": position, "seal": seal }).to_string())
}

#[testkit::both]
async fn garbage_is_no_position(kind: Kind) {
    let sweep = Sweep::begin(kind).await;
    let ids = seed(&sweep).await;
    for (document, op) in sweep.operations().filter(|(_, op)| op.paging.is_some()) {
        let list = List::new(&sweep, document, &op, &ids);
        let long = "x".repeat(1500);
        for garbage in GARBAGE.into_iter().chain([long.as_str()]) {
            let answer = list.page(&sweep, garbage).await;
            // Lists with offsets ignore it, but for what no query may have.
            let is_refused = op.paging.as_deref() != Some("offset") || garbage == "%00";
            assert_eq!(answer.status, if is_refused { 400 } else { 200 }, "{}: {garbage}", op.id);
        }
    }
}

#[testkit::both]
async fn a_cursor_holds_unchanged_and_for_its_list_only(kind: Kind) {
    let sweep = Sweep::begin(kind).await;
    let ids = seed(&sweep).await;
    let workspace: i64 = sweep.workspace.parse().unwrap();
    let mut earlier: Option<String> = None;
    for (document, op) in sweep.operations().filter(|(_, op)| op.has_cursors()) {
        let list = List::new(&sweep, document, &op, &ids);
        let cursor = list.cursors.encode("abc");
        let mut foreign: Vec<String> = [0, cursor.len() / 2, cursor.len() - 1]
            .map(|place| {
                let other = if cursor.as_bytes()[place] == b'A' { "B" } else { "A" };
                format!("{}{other}{}", &cursor[..place], &cursor[place + 1..])
            })
            .into();
        foreign.push(unkeyed(&op, workspace, &list.filters, "abc"));
        foreign.extend(earlier.replace(list.cursors.encode("1")));
        for cursor in foreign {
            assert_eq!(list.page(&sweep, &cursor).await.status, 400, "{}: {cursor}", op.id);
        }
    }
    assert!(earlier.is_some());
}

#[testkit::both]
async fn a_hostile_position_is_a_page_or_a_mistake(kind: Kind) {
    let sweep = Sweep::begin(kind).await;
    let ids = seed(&sweep).await;
    for (document, op) in sweep.operations().filter(|(_, op)| op.has_cursors()) {
        let list = List::new(&sweep, document, &op, &ids);
        let long = "9".repeat(1200);
        for position in HOSTILE.into_iter().chain([long.as_str()]) {
            list.page(&sweep, &list.cursors.encode(position)).await;
        }
        // What is sealed here is what the list opens: otherwise all of it would have been refused at the door.
        let mut is_read = false;
        for position in READABLE {
            is_read |= list.page(&sweep, &list.cursors.encode(position)).await.status == 200;
        }
        assert!(is_read, "{}: add a position to READABLE", op.id);
    }
}
