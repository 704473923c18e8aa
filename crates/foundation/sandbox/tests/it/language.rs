//! What functions have of the language, and what not: each row of the table in docs/functions.md is tried.

use crate::support::{function, run, sandbox};
use sandbox::Failure;

const PAGE: &str = include_str!("../../../../../docs/functions.md");

/// Feature, example and result of the rows of the table.
fn rows() -> Vec<[&'static str; 3]> {
    let code = |cell: &'static str| cell.trim().trim_matches('`');
    let table = PAGE.split("| Feature | Example | Result |\n").nth(1).expect("the page has the table");
    let lines = table.lines().skip(1).take_while(|line| line.starts_with('|'));
    lines
        .map(|line| {
            let cells: Vec<_> = line.trim_matches('|').split(" | ").collect();
            let [feature, example, result] = cells[..] else { panic!("three cells: {line}") };
            [feature, code(example), code(result)]
        })
        .collect()
}

#[tokio::test]
async fn the_page_says_what_works() {
    let (sandbox, rows) = (sandbox(), rows());
    assert!(rows.len() > 20, "{}", rows.len());
    let mut wrong = Vec::new();
    for [feature, example, result] in rows {
        // An example is an expression or a whole module.
        let is_module = example.contains("export default");
        let source = if is_module { example.to_owned() } else { function(&format!("return {example};")) };
        let found = match run(&sandbox, &source, "null").await.result {
            Ok(output) => output,
            Err(Failure::Compile { .. }) => "does not compile".to_owned(),
            Err(Failure::Thrown { name, .. }) => name,
            Err(other) => format!("{other:?}"),
        };
        if found != result {
            wrong.push(format!("{feature}: {example} is {found}, not {result}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
