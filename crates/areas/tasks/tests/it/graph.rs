//! Subtasks and dependencies.

use crate::Tasks;
use futures::future::join_all;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use testkit::Kind;

/// Returns whether the dependencies have a cycle.
fn has_cycle(edges: &BTreeMap<i64, Vec<i64>>) -> bool {
    let mut left: Vec<i64> = edges.keys().copied().collect();
    loop {
        let free = left.iter().position(|task| edges[task].iter().all(|blocker| !left.contains(blocker)));
        match free {
            Some(place) => left.swap_remove(place),
            None => return !left.is_empty(),
        };
    }
}

fn ids(value: &Value) -> Vec<i64> {
    value.as_array().unwrap().iter().map(|id| id.as_i64().unwrap()).collect()
}

#[testkit::both]
async fn subtasks_count_with_their_parent(kind: Kind) {
    let tasks = Tasks::open(kind).await;
    let parent = tasks.create(json!({ "title": "Parent", "checklist": [{ "text": "x" }] })).await;
    let mut children = Vec::new();
    for title in ["A", "B", "C"] {
        children.push(tasks.post(&parent, "/subtasks", json!({ "title": title })).await.expect(201));
    }
    assert_eq!(children[0]["parent_id"], parent["id"]);
    assert_eq!(tasks.get(&parent).await["progress"], json!({ "done": 0, "total": 4 }));
    tasks.complete(&children[0]).await;
    assert_eq!(tasks.get(&parent).await["progress"], json!({ "done": 1, "total": 4 }));
    tasks.patch(&children[1], json!({ "status": "cancelled" })).await.expect(200);
    assert_eq!(tasks.get(&parent).await["progress"], json!({ "done": 1, "total": 3 }));
    tasks.app.delete(&tasks.path(&children[2], ""), &tasks.key).await.expect(200);
    assert_eq!(tasks.get(&parent).await["progress"], json!({ "done": 1, "total": 2 }));
    let other = tasks.create(json!({ "title": "Other" })).await;
    tasks.patch(&children[0], json!({ "parent_id": other["id"] })).await.expect(200);
    assert_eq!(tasks.get(&parent).await["progress"], json!({ "done": 0, "total": 1 }));
    assert_eq!(tasks.get(&other).await["progress"], json!({ "done": 1, "total": 1 }));
    tasks.patch(&children[0], json!({ "parent_id": null })).await.expect(200);
    assert_eq!(tasks.get(&other).await["progress"], json!({ "done": 0, "total": 0 }));
    let answer = tasks.post(&parent, "/subtasks", json!({ "title": "X", "parent_id": other["id"] })).await;
    assert_eq!(answer.expect_error(400, "validation_error").as_deref(), Some("parent_id"));
}

#[testkit::both]
async fn subtasks_are_at_most_five_levels_deep_and_leave_together(kind: Kind) {
    let tasks = Tasks::open(kind).await;
    let mut levels = vec![tasks.create(json!({ "title": "1" })).await];
    for level in 2..=5 {
        let above = levels.last().unwrap().clone();
        levels.push(tasks.post(&above, "/subtasks", json!({ "title": level.to_string() })).await.expect(201));
    }
    let answer = tasks.post(&levels[4], "/subtasks", json!({ "title": "6" })).await;
    assert_eq!(answer.expect_error(400, "validation_error").as_deref(), Some("parent_id"));
    // A parent can be neither the task itself or below it, nor so deep that its subtasks would be too deep.
    for parent in [&levels[0], &levels[3]] {
        let answer = tasks.patch(&levels[0], json!({ "parent_id": parent["id"] })).await;
        assert_eq!(answer.expect_error(400, "validation_error").as_deref(), Some("parent_id"));
        assert_eq!(answer.body["error"]["errors"][0]["code"], "dependency_cycle");
    }
    let root = tasks.create(json!({ "title": "Root" })).await;
    let answer = tasks.patch(&levels[0], json!({ "parent_id": root["id"] })).await;
    assert_eq!(answer.expect_error(400, "validation_error").as_deref(), Some("parent_id"));
    tasks.patch(&levels[1], json!({ "parent_id": root["id"] })).await.expect(200);
    let waiting =
        tasks.create(json!({ "title": "Waiting", "depends_on": [levels[4]["id"], root["id"]] })).await;
    tasks.app.delete(&tasks.path(&levels[1], ""), &tasks.key).await.expect(200);
    assert_eq!(tasks.titles("sort=title").await, ["1", "Root", "Waiting"]);
    assert_eq!(tasks.get(&waiting).await["depends_on"], json!([root["id"]]));
    tasks.app.delete(&tasks.path(&root, ""), &tasks.key).await.expect(200);
    let free = tasks.get(&waiting).await;
    assert_eq!((&free["depends_on"], &free["is_blocked"]), (&json!([]), &json!(false)));
}

#[testkit::both]
async fn a_task_waits_for_those_that_it_depends_on(kind: Kind) {
    let tasks = Tasks::open(kind).await;
    let a = tasks.create(json!({ "title": "A" })).await;
    let b = tasks.create(json!({ "title": "B" })).await;
    let c = tasks.create(json!({ "title": "C", "depends_on": [b["id"], a["id"], a["id"]] })).await;
    assert_eq!((&c["depends_on"], &c["is_blocked"]), (&json!([a["id"], b["id"]]), &json!(true)));
    let answer = tasks.post(&c, "/complete", json!({})).await;
    answer.expect_error(409, "task_blocked");
    assert_eq!(answer.body["error"]["details"]["blocked_by"], json!([a["id"], b["id"]]));
    tasks.patch(&c, json!({ "status": "done" })).await.expect_error(409, "task_blocked");
    tasks.complete(&a).await;
    assert_eq!(tasks.get(&c).await["is_blocked"], true);
    tasks.patch(&b, json!({ "status": "cancelled" })).await.expect(200);
    let free = tasks.get(&c).await;
    assert_eq!((&free["is_blocked"], &free["depends_on"]), (&json!(false), &c["depends_on"]));
    tasks.post(&a, "/reopen", json!({})).await.expect(200);
    assert_eq!(tasks.get(&c).await["is_blocked"], true);
    let done = tasks.post(&c, "/complete", json!({ "force": true })).await.expect(200);
    assert_eq!(done["status"], "done");
    // A direct and an indirect cycle.
    for (task, blocker) in [(&a, &a), (&a, &c)] {
        let answer = tasks.patch(task, json!({ "depends_on": [blocker["id"]] })).await;
        assert_eq!(answer.expect_error(400, "validation_error").as_deref(), Some("depends_on"));
        assert_eq!(answer.body["error"]["errors"][0]["code"], "dependency_cycle");
    }
    tasks.patch(&c, json!({ "depends_on": [] })).await.expect(200);
    tasks.patch(&a, json!({ "depends_on": [c["id"]] })).await.expect(200);
    let many: Vec<i64> = (1..=51).collect();
    let answer = tasks.patch(&a, json!({ "depends_on": many })).await;
    assert_eq!(answer.expect_error(400, "validation_error").as_deref(), Some("depends_on"));
}

#[testkit::both]
async fn crossing_dependencies_leave_no_circle(kind: Kind) {
    let tasks = Tasks::open(kind).await;
    for _ in 0..5 {
        let mut ring = Vec::new();
        for title in ["A", "B", "C", "D"] {
            ring.push(tasks.create(json!({ "title": title })).await);
        }
        // Close a ring of dependencies by concurrent requests: at least one must be rejected.
        let crossing = (0..4).map(|place| {
            let blocker = ring[(place + 1) % 4]["id"].clone();
            let (tasks, task) = (&tasks, &ring[place]);
            async move { tasks.patch(task, json!({ "depends_on": [blocker] })).await.status }
        });
        let statuses = join_all(crossing).await;
        assert_eq!(statuses.iter().filter(|status| **status == 400).count(), 1, "{statuses:?}");
        let mut edges = BTreeMap::new();
        for task in &ring {
            edges.insert(task["id"].as_i64().unwrap(), ids(&tasks.get(task).await["depends_on"]));
        }
        assert!(!has_cycle(&edges), "{edges:?}");
    }
}

#[testkit::both]
async fn a_task_is_free_when_all_others_are_done_at_once(kind: Kind) {
    let tasks = Tasks::open(kind).await;
    let mut blockers = Vec::new();
    for number in 0..16 {
        blockers.push(tasks.create(json!({ "title": number.to_string() })).await);
    }
    let ids: Vec<_> = blockers.iter().map(|task| task["id"].clone()).collect();
    let parent = tasks.create(json!({ "title": "Parent" })).await;
    let waiting =
        tasks.create(json!({ "title": "Waiting", "depends_on": ids, "parent_id": parent["id"] })).await;
    join_all(blockers.iter().map(|task| tasks.complete(task))).await;
    assert_eq!(tasks.get(&waiting).await["is_blocked"], false);
    // Subtasks that are completed concurrently are all counted.
    let mut children = Vec::new();
    for number in 0..8 {
        children
            .push(tasks.post(&parent, "/subtasks", json!({ "title": number.to_string() })).await.expect(201));
    }
    join_all(children.iter().map(|task| tasks.complete(task))).await;
    assert_eq!(tasks.get(&parent).await["progress"], json!({ "done": 8, "total": 9 }));
}

#[testkit::both]
async fn random_dependencies_stay_without_circles(kind: Kind) {
    use proptest::strategy::{Strategy, ValueTree};
    use proptest::test_runner::TestRunner;
    let tasks = Tasks::open(kind).await;
    let mut all = Vec::new();
    for number in 0..8 {
        all.push(tasks.create(json!({ "title": number.to_string() })).await);
    }
    let mut edges: BTreeMap<i64, Vec<i64>> =
        all.iter().map(|task| (task["id"].as_i64().unwrap(), Vec::new())).collect();
    let mut runner = TestRunner::deterministic();
    let steps = proptest::collection::vec((0usize..8, proptest::collection::btree_set(0usize..8, 0..4)), 60);
    let steps = steps.new_tree(&mut runner).unwrap().current();
    let mut refused = 0;
    for (task, blockers) in steps {
        let (task, blockers): (_, Vec<i64>) =
            (&all[task], blockers.iter().map(|place| all[*place]["id"].as_i64().unwrap()).collect());
        let mut wanted = edges.clone();
        wanted.insert(task["id"].as_i64().unwrap(), blockers.clone());
        let answer = tasks.patch(task, json!({ "depends_on": blockers })).await;
        // A change is rejected exactly if it would close a cycle.
        assert_eq!(answer.status == 400, has_cycle(&wanted), "{wanted:?}");
        if answer.status == 200 {
            edges = wanted;
        } else {
            refused += 1;
        }
        let now = tasks.get(task).await;
        let kept = &edges[&task["id"].as_i64().unwrap()];
        assert_eq!(
            (&ids(&now["depends_on"]), now["is_blocked"].as_bool().unwrap()),
            (kept, !kept.is_empty())
        );
    }
    assert!(refused > 5, "{refused}");
}
