//! What checks found, and how it is told.

use std::fmt::Write as _;

use serde::Serialize;
use serde_json::{Value, json};

use crate::symbols::Symbols;

/// How a check ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub(super) enum Level {
    Ok,
    /// Worth knowing; nothing fails by it.
    Note,
    Failed,
}

/// What one check found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(super) struct Finding {
    pub(super) name: String,
    pub(super) level: Level,
    pub(super) says: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(super) hint: String,
}

impl Finding {
    pub(super) fn ok(name: &str, says: impl Into<String>) -> Self {
        Self {
            name: name.to_owned(),
            level: Level::Ok,
            says: says.into(),
            hint: String::new(),
        }
    }

    pub(super) fn note(name: &str, says: impl Into<String>, hint: &str) -> Self {
        Self {
            level: Level::Note,
            hint: hint.to_owned(),
            ..Self::ok(name, says)
        }
    }

    pub(super) fn failed(name: &str, says: impl Into<String>, hint: &str) -> Self {
        Self {
            level: Level::Failed,
            ..Self::note(name, says, hint)
        }
    }
}

/// Findings about one thing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(super) struct Group {
    pub(super) about: &'static str,
    pub(super) checks: Vec<Finding>,
}

impl Group {
    pub(super) fn new(about: &'static str, checks: Vec<Finding>) -> Self {
        Self { about, checks }
    }
}

/// How many checks ended so.
pub(super) fn count(groups: &[Group], level: Level) -> usize {
    let all = groups.iter().flat_map(|group| &group.checks);
    all.filter(|check| check.level == level).count()
}

/// For people; in short, only what is not well.
pub(super) fn text(groups: &[Group], symbols: Symbols, short: bool) -> String {
    let mut text = String::new();
    for group in groups {
        let told = |check: &&Finding| !short || check.level != Level::Ok;
        let mut told = group.checks.iter().filter(told).peekable();
        if told.peek().is_some() {
            let _ = writeln!(text, "{}", group.about);
        }
        for check in told {
            let mark = match check.level {
                Level::Ok => symbols.done,
                Level::Note => symbols.note,
                Level::Failed => symbols.failed,
            };
            let _ = writeln!(text, "  {mark:<2} {:<16} {}", check.name, check.says);
            if !check.hint.is_empty() {
                let _ = writeln!(text, "     {:<16} {}", "", check.hint);
            }
        }
    }
    let [ok, notes, failed] =
        [Level::Ok, Level::Note, Level::Failed].map(|level| count(groups, level));
    text + &format!("{ok} well, {notes} to note, {failed} failed")
}

/// For programs.
pub(super) fn json(groups: &[Group]) -> Value {
    json!({
        "ok": count(groups, Level::Failed) == 0,
        "groups": groups,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn groups() -> Vec<Group> {
        vec![
            Group::new(
                "here",
                vec![
                    Finding::ok("files", "many"),
                    Finding::note("ports", "few", "use others"),
                ],
            ),
            Group::new("there", vec![Finding::ok("server", "answers")]),
            Group::new("beyond", vec![Finding::failed("node", "away", "call it")]),
        ]
    }

    #[test]
    fn every_line_has_a_mark_and_what_is_not_well_a_hint() {
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
2 well, 1 to note, 1 failed";
        assert_eq!(text(&groups(), Symbols::ASCII, false), expected);
    }

    #[test]
    fn in_short_only_what_is_not_well_is_told() {
        let short = text(&groups(), Symbols::ASCII, true);
        assert!(
            !short.contains("there") && !short.contains("files"),
            "{short}"
        );
        assert!(
            short.contains("away") && short.ends_with("2 well, 1 to note, 1 failed"),
            "{short}"
        );
        assert_eq!(json(&groups())["ok"], false);
    }
}
