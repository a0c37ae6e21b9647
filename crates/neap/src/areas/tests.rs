use std::{collections::BTreeSet, fs, path::Path};

use clap::CommandFactory;

use super::*;
use crate::cli::Cli;

#[test]
fn every_area_is_registered_without_problems() {
    for area in all() {
        assert_eq!(area.problems(), [""; 0], "{}", area.name);
    }
}

#[test]
fn names_codes_kinds_and_keys_are_given_once() {
    let mut seen = BTreeSet::new();
    let codes = catalogue();
    let codes = codes.all().map(|entry| format!("code {}", entry.code));
    let names = all().map(|area| format!("area {}", area.name));
    let metrics = all().flat_map(|area| area.metrics);
    let metrics = metrics.map(|metric| format!("metric {}", metric.name));
    let kinds = kinds().flat_map(|kind| {
        let group = kind.resource.group();
        [
            format!("kind {}.{group}", kind.resource.plural),
            format!("key {}", kind.key),
        ]
    });
    for one in codes.chain(names).chain(metrics).chain(kinds) {
        assert!(!seen.contains(&one), "{one} is given twice");
        seen.insert(one);
    }
}

#[test]
fn the_commands_and_flags_of_all_areas_fit_together() {
    Cli::command().debug_assert();
    let cli = Cli::command();
    for area in all() {
        assert!(cli.find_subcommand(area.name).is_some(), "{}", area.name);
    }
}

/// The codes in the sources of all crates, except in tests, which invent some.
fn codes_below(folder: &Path, found: &mut BTreeSet<String>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap().to_owned();
        if path.is_dir() && !matches!(&*name, "tests" | "why" | "codes") {
            codes_below(&path, found);
        } else if path.extension().is_some_and(|end| end == "rs")
            && !matches!(&*name, "tests.rs" | "codes.rs")
        {
            let text = fs::read_to_string(&path).unwrap();
            let text = text.split("#[cfg(test)]\nmod tests {").next().unwrap();
            let codes = text
                .split('"')
                .filter(|word| word.starts_with("NT-") && word.len() > 3 && !word.contains('{'));
            found.extend(codes.map(str::to_owned));
        }
    }
}

#[test]
fn every_code_of_the_program_is_in_the_catalogue() {
    let mut found = BTreeSet::new();
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    for one in fs::read_dir(crates).unwrap() {
        let source = one.unwrap().path().join("src");
        if source.is_dir() {
            codes_below(&source, &mut found);
        }
    }
    assert!(found.len() > 30, "{found:?}");
    let catalogue = catalogue();
    let unknown: Vec<_> = found
        .iter()
        .filter(|code| catalogue.find(code).is_none())
        .collect();
    assert!(unknown.is_empty(), "not in the catalogue: {unknown:?}");
}
