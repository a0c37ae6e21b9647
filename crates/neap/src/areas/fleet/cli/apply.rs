//! `neap fleet versions apply`: the versions and role sets of a file become those of the provider.

use std::io::Write;

use http::Method;
use serde_json::{Value, json};

use super::{ApplyOptions, client::Provider, clusters::read};
use crate::{
    exit::{Exit, Failure},
    inspect::print,
    symbols::Symbols,
};

/// A list in the file, and the collection of the provider that it describes.
struct Section {
    /// The member of the file.
    member: &'static str,
    path: &'static str,
    /// The member that names an entry.
    name: &'static str,
}

const SECTIONS: [Section; 2] = [
    Section {
        member: "versions",
        path: "/admin/versions",
        name: "version",
    },
    Section {
        member: "roleSets",
        path: "/admin/platformworkloadidentityrolesets",
        name: "openShiftVersion",
    },
];

/// What is done about one entry.
#[derive(Debug, Clone, PartialEq)]
enum Change {
    Create(String, Value),
    Update(String, Value),
    Keep(String),
    Delete(String),
}

/// The changes that make `existing` what the file says, in the order in which they are done. Pure.
fn plan(section: &Section, wanted: &[Value], existing: &[Value]) -> Vec<Change> {
    let name = |entry: &Value| entry[section.name].as_str().unwrap_or_default().to_owned();
    let existing: Vec<_> = existing.iter().map(|it| &it["properties"]).collect();
    let mut changes: Vec<_> = wanted
        .iter()
        .map(|entry| {
            let found = existing.iter().find(|it| name(it) == name(entry));
            let is_same = |found: &&Value| {
                let mut members = entry.as_object().into_iter().flatten();
                members.all(|(member, value)| found[member] == *value)
            };
            match found {
                None => Change::Create(name(entry), entry.clone()),
                Some(_) if found.is_some_and(is_same) => Change::Keep(name(entry)),
                Some(_) => Change::Update(name(entry), entry.clone()),
            }
        })
        .collect();
    // The new default is there before the old one goes.
    let is_wanted = |found: &Value| wanted.iter().any(|it| name(it) == name(found));
    let gone = existing.iter().filter(|found| !is_wanted(found));
    changes.extend(gone.map(|found| Change::Delete(name(found))));
    changes
}

/// What is wrong with the lists of a file, before anything is changed. Pure.
fn problem(file: &Value) -> Option<&'static str> {
    if SECTIONS.iter().all(|it| !file[it.member].is_array()) {
        return Some("it has neither a list 'versions' nor a list 'roleSets'");
    }
    let named = SECTIONS.iter().all(|section| {
        let entries = file[section.member].as_array();
        let mut entries = entries.into_iter().flatten();
        entries.all(|it| it[section.name].as_str().is_some_and(|it| !it.is_empty()))
    });
    if !named {
        return Some("an entry has no 'version' or 'openShiftVersion'");
    }
    let versions = file["versions"].as_array()?;
    let is_default = |it: &&Value| it["default"] == true && it["enabled"] == true;
    (versions.iter().filter(is_default).count() != 1)
        .then_some("not exactly one of its versions is enabled and the default")
}

pub(super) async fn apply(
    options: &ApplyOptions,
    symbols: Symbols,
    out: &mut dyn Write,
) -> Result<(), Failure> {
    let file = read(&options.file)?;
    if let Some(why) = problem(&file) {
        let what = format!("cannot use {}", options.file.display());
        return Err(Failure::new("NT-FLEET-0012", Exit::Refused, &what, why)
            .remedy("correct the file; examples/fleet/versions.json is one"));
    }
    let provider = Provider::connect(&options.provider).await?;
    for section in &SECTIONS {
        let Some(wanted) = file[section.member].as_array() else {
            continue;
        };
        let answer = provider.call(Method::GET, section.path, None).await?;
        let existing = answer.body["value"].as_array().cloned();
        for change in plan(section, wanted, &existing.unwrap_or_default()) {
            if !options.dry_run {
                carry_out(&provider, section, &change).await?;
            }
            let (name, done) = match &change {
                Change::Create(name, _) => (name, "created"),
                Change::Update(name, _) => (name, "updated"),
                Change::Keep(name) => (name, "unchanged"),
                Change::Delete(name) => (name, "deleted"),
            };
            let (mark, would) = if options.dry_run {
                (symbols.dot, "would be ")
            } else {
                (symbols.done, "")
            };
            print::text(out, &format!("{mark} {name} {would}{done}"))?;
        }
    }
    Ok(())
}

async fn carry_out(provider: &Provider, section: &Section, change: &Change) -> Result<(), Failure> {
    match change {
        Change::Keep(_) => Ok(()),
        Change::Create(_, properties) | Change::Update(_, properties) => {
            let body = json!({"properties": properties});
            let put = provider.call(Method::PUT, section.path, Some(&body)).await;
            put.map(drop)
        }
        Change::Delete(name) => {
            let path = format!("{}/{name}", section.path);
            let deleted = provider.call(Method::DELETE, &path, None).await;
            deleted.map(drop)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(version: &str, default: bool) -> Value {
        json!({"version": version, "enabled": true, "default": default})
    }

    #[test]
    fn the_plan_creates_changes_keeps_and_then_deletes() {
        let found = |version: &str, default: bool| {
            let mut properties = entry(version, default);
            properties["openShiftPullspec"] = "kept".into();
            json!({ "properties": properties })
        };
        let existing = [
            found("4.18.1", false),
            found("4.19.9", true),
            found("4.19.8", false),
        ];
        let wanted = [
            entry("4.20.1", true),
            entry("4.19.9", false),
            entry("4.19.8", false),
        ];
        let expected = vec![
            Change::Create("4.20.1".to_owned(), wanted[0].clone()),
            Change::Update("4.19.9".to_owned(), wanted[1].clone()),
            Change::Keep("4.19.8".to_owned()),
            Change::Delete("4.18.1".to_owned()),
        ];
        assert_eq!(plan(&SECTIONS[0], &wanted, &existing), expected);
    }

    #[test]
    fn a_file_without_one_default_is_refused_before_anything_is_changed() {
        let versions = |all: &[Value]| json!({ "versions": all });
        assert_eq!(problem(&versions(&[entry("4.19.9", true)])), None);
        assert_eq!(problem(&json!({"roleSets": []})), None);
        for file in [
            json!({}),
            versions(&[]),
            versions(&[entry("4.19.9", false)]),
            versions(&[entry("4.19.9", true), entry("4.20.1", true)]),
            versions(&[entry("", true)]),
            json!({"roleSets": [{"openShiftVersion": 4}]}),
        ] {
            assert!(problem(&file).is_some(), "{file}");
        }
    }
}
