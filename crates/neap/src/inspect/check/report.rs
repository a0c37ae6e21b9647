//! The findings of the checks, as text and as JSON.

use std::fmt::Write as _;

use neap_kit::area::{Finding, Level};
use serde::Serialize;
use serde_json::{Value, json};

use crate::{printable::printable_line, symbols::Symbols};

/// The least width of the column of names; a group with a longer name has a wider one.
const NAME_WIDTH: usize = 16;

/// The findings of one group of checks.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(super) struct FindingGroup {
    pub(super) about: &'static str,
    pub(super) checks: Vec<Finding>,
}

impl FindingGroup {
    pub(super) fn new(about: &'static str, checks: Vec<Finding>) -> Self {
        Self { about, checks }
    }
}

/// Counts the checks with this level.
pub(super) fn count(groups: &[FindingGroup], level: Level) -> usize {
    let all = groups.iter().flat_map(|group| &group.checks);
    all.filter(|check| check.level == level).count()
}

/// The report as text; with `short`, only notes and failures.
pub(super) fn text(groups: &[FindingGroup], symbols: Symbols, short: bool) -> String {
    let mut text = String::new();
    for group in groups {
        let shown = |check: &&Finding| !short || check.level != Level::Ok;
        let shown: Vec<_> = group.checks.iter().filter(shown).collect();
        if !shown.is_empty() {
            let _ = writeln!(text, "{}", group.about);
        }
        let width = shown.iter().map(|it| it.name.chars().count()).max();
        let width = width.unwrap_or_default().max(NAME_WIDTH);
        for check in shown {
            let mark = match check.level {
                Level::Ok => symbols.done,
                Level::Note => symbols.note,
                Level::Failed => symbols.failed,
            };
            let message = printable_line(&check.message);
            let _ = writeln!(text, "  {mark:<2} {:<width$} {message}", check.name);
            if !check.hint.is_empty() {
                let hint = printable_line(&check.hint);
                let _ = writeln!(text, "     {:<width$} {hint}", "");
            }
        }
    }
    let [ok, notes, failed] =
        [Level::Ok, Level::Note, Level::Failed].map(|level| count(groups, level));
    let s = if notes == 1 { "" } else { "s" };
    text + &format!("{ok} ok, {notes} note{s}, {failed} failed")
}

/// The report as JSON.
pub(super) fn json(groups: &[FindingGroup]) -> Value {
    json!({
        "ok": count(groups, Level::Failed) == 0,
        "groups": groups,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn groups() -> Vec<FindingGroup> {
        vec![
            FindingGroup::new(
                "here",
                vec![
                    Finding::ok("files", "many"),
                    Finding::note("ports", "few", "use others"),
                ],
            ),
            FindingGroup::new("there", vec![Finding::ok("server", "answers")]),
            FindingGroup::new("beyond", vec![Finding::failed("node", "away", "call it")]),
        ]
    }

    #[test]
    fn every_line_has_a_mark_and_problems_have_a_hint() {
        let expected = "\
here
  ok files            many
  !  ports            few
                      use others
there
  ok server           answers
beyond
  x  node             away
                      call it
2 ok, 1 note, 1 failed";
        assert_eq!(text(&groups(), Symbols::ASCII, false), expected);
    }

    #[test]
    fn a_long_name_moves_the_column_of_its_group() {
        let name = "a-very-long-name-of-a-check";
        let mut groups = groups();
        groups[0].checks.push(Finding::note(name, "new", "rest"));
        let text = text(&groups, Symbols::ASCII, false);
        let column = |message: &str| {
            let mut lines = text.lines();
            lines.find_map(|line| line.find(message)).unwrap()
        };
        assert_eq!(column("many"), column("new"));
        assert_eq!(column("rest"), column("new"));
        assert!(column("answers") < column("many"), "{text}");
    }

    #[test]
    fn the_short_form_lists_only_problems() {
        let short = text(&groups(), Symbols::ASCII, true);
        assert!(
            !short.contains("there") && !short.contains("files"),
            "{short}"
        );
        assert!(
            short.contains("away") && short.ends_with("2 ok, 1 note, 1 failed"),
            "{short}"
        );
        assert_eq!(json(&groups())["ok"], false);
    }
}
