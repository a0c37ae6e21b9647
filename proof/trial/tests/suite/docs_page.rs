//! The listings of the page about the trial are what is compiled and run.

const PAGE: &str = include_str!("../../../../docs/platform/trial.md");

#[test]
fn the_page_shows_a_controller_under_trial_as_it_is_tested() {
    let whole = format!("```rust\n{}```\n", include_str!("your_own.rs"));
    assert!(
        PAGE.contains(&whole),
        "docs/platform/trial.md and your_own.rs differ"
    );
}

#[test]
fn the_page_shows_a_test_as_it_is_printed() {
    let tests = include_str!("regression_test.rs");
    let from = tests.find("/// O1 step").unwrap_or_default();
    let shown = tests[from..]
        .find("\n}\n")
        .map(|to| &tests[from..from + to + 3]);
    let shown = shown.unwrap_or("there is no such test");
    assert!(
        PAGE.contains(shown),
        "docs/platform/trial.md does not show {shown}"
    );
}

#[test]
fn the_trial_of_it_takes_thirty_lines_at_most() {
    let text = include_str!("your_own.rs");
    let trial = text.find("/// The trial:").map(|from| &text[from..]);
    let lines = trial.map(|trial| trial.lines().count());
    assert!(lines.is_some_and(|lines| lines <= 30), "{lines:?}");
}
