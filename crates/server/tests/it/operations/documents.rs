//! What the documents list, against the code that it is about.

use crate::operations::contract::repository_file;
use model::Code;
use std::collections::{BTreeMap, BTreeSet};
use testkit::{Kind, TestApp};

/// The words in backticks that begin the rows of a document's tables.
fn rows(document: &str) -> Vec<(&str, &str)> {
    let rows = document.lines().filter_map(|line| line.strip_prefix("| `"));
    rows.filter_map(|row| row.split_once("` |")).collect()
}

#[test]
fn the_document_of_formulas_is_up_to_date() {
    let document = repository_file("docs/formulas.md");
    assert_eq!(document, server::cli::formulas_document(), "run `make openapi`");
}

#[test]
fn every_error_code_is_explained_once_under_its_status() {
    let document = include_str!("../../../../../docs/errors.md");
    let mut status = "";
    for code in Code::ALL {
        let name = code.as_str();
        let explained = document.split("\n### ").skip(1).filter_map(|part| {
            let (title, table) = part.split_once('\n')?;
            let (_, cells) = rows(table).into_iter().find(|(row, _)| *row == name)?;
            status = title;
            Some(format!("{title} {cells}"))
        });
        let explained: Vec<String> = explained.collect();
        let expected = code.status().to_string();
        if explained.is_empty() {
            let reserved = document.split("### Reserved").nth(1).unwrap();
            assert!(reserved.contains(&format!("`{name}`")), "{name} is not in docs/errors.md");
        } else {
            assert_eq!(explained.len(), 1, "{name} is explained {} times", explained.len());
            assert!(explained[0].contains(&expected), "{name} is not explained under {expected}: {status}");
        }
    }
    let known: BTreeSet<&str> = Code::ALL.iter().map(|code| code.as_str()).collect();
    // What stands before the codes has tables of its own.
    let (_, codes) = document.split_once("\n### ").unwrap();
    let strange: Vec<&str> =
        rows(codes).into_iter().map(|(row, _)| row).filter(|row| !known.contains(row)).collect();
    assert_eq!(strange, [""; 0]);
}

#[test]
fn the_readme_counts_the_operations() {
    let readme = include_str!("../../../../../README.md");
    let registry = server::registry().unwrap();
    let mut areas: BTreeMap<&str, usize> = BTreeMap::new();
    // Those of the dashboard are no part of the API.
    for served in registry.operations().iter().filter(|served| served.meta().session.is_none()) {
        *areas.entry(served.area).or_default() += 1;
    }
    let all: usize = areas.values().sum();
    assert!(readme.contains(&format!("These {all} are implemented:")), "{all} operations are implemented");
    for (area, count) in areas {
        let row = format!("| {area} | {count} of ");
        assert!(readme.contains(&row), "README.md has no row `{row}`");
    }
}

#[actix_web::test]
async fn every_job_is_documented() {
    let app = TestApp::new(Kind::Sqlite).await;
    let document = include_str!("../../../../../docs/internals/jobs.md");
    let documented: Vec<&str> = document.lines().filter(|line| line.starts_with("| `")).collect();
    let row = |job: &jobs::Job| {
        assert!(!job.does().is_empty(), "{} does not say what it does", job.kind());
        assert!(!job.when().to_string().is_empty(), "{} does not say when it runs", job.kind());
        format!("| `{}` | {} | {} |", job.kind(), job.when(), job.does())
    };
    let mut declared: Vec<String> = app.service.jobs.jobs().map(row).collect();
    declared.sort();
    assert_eq!(documented, declared, "write this into docs/internals/jobs.md:\n{}\n", declared.join("\n"));
}

#[testkit::both]
async fn every_metric_is_documented(kind: Kind) {
    let app = TestApp::new(kind).await;
    let (_, section) =
        include_str!("../../../../../docs/monitoring.md").split_once("\n## Metrics\n").unwrap();
    let section = section.split("\n## ").next().unwrap();
    let documented = section.lines().filter(|line| line.starts_with("| `"));
    let documented: Vec<&str> =
        documented.filter(|line| kind == Kind::Sqlite || !line.contains("| `svc_sqlite_")).collect();
    let row = |metric: &operation::MetricInfo| {
        let labels: Vec<String> = metric.labels.iter().map(|label| format!("`{label}`")).collect();
        format!("| `{}` | {} | {} |", metric.name, labels.join(", "), metric.help)
    };
    let registered: Vec<String> = app.service.metrics.described().iter().map(row).collect();
    assert_eq!(documented, registered, "write this into docs/monitoring.md:\n{}\n", registered.join("\n"));
}
