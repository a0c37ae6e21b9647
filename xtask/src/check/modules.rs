//! Which module of a crate may use which: only those that `lib.rs` declares before it.
//!
//! The order of the `mod` lines in `lib.rs` is the order of dependencies, so a cycle cannot be written
//! down. Tests may use everything: `tests.rs`, folders named `tests`, and modules under `#[cfg(test)]`.

mod source;

use std::{
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result};

use self::source::Source;
use super::{Findings, Project, layout};
use crate::process;

/// The crates that are held to the order of their `lib.rs`.
const CRATES: [&str; 9] = [
    "crates/pocket",
    "crates/kit",
    "crates/world",
    "crates/idle",
    "crates/emulators",
    "crates/store",
    "crates/release",
    "crates/fleet",
    "crates/farm",
];

pub(super) fn check(_: &Project) -> Result<Findings> {
    let mut findings = Findings::default();
    let mut modules = 0;
    for folder in CRATES {
        let declared = Declared::read(&process::root().join(folder))?;
        modules += declared.order.len();
        for path in layout::sources_in(folder)? {
            let text = fs::read_to_string(process::root().join(&path))?;
            findings.problems.extend(declared.upward(&path, &text));
        }
    }
    findings.detail = format!("{modules} modules of {} crates", CRATES.len());
    Ok(findings)
}

/// The modules that a `lib.rs` declares.
struct Declared {
    /// The crate's `src` folder, relative to the workspace.
    src: PathBuf,
    /// Modules of the product, in the order of their `mod` lines.
    order: Vec<String>,
}

impl Declared {
    fn read(folder: &Path) -> Result<Self> {
        let lib = folder.join("src/lib.rs");
        let text = fs::read_to_string(&lib).with_context(|| lib.display().to_string())?;
        let src = folder.join("src");
        let src = src.strip_prefix(process::root()).unwrap_or(&src).to_owned();
        Ok(Self {
            src,
            order: Source::new(&text).declared_modules(),
        })
    }

    /// One problem for each module that the file `path` must not use.
    fn upward(&self, path: &Path, text: &str) -> Vec<String> {
        let Some(module_path) = module_path(&self.src, path) else {
            return Vec::new();
        };
        let Some(own) = self.position(&module_path[0]) else {
            return Vec::new();
        };
        let uses = Source::new(text).uses(module_path.len());
        let upward = uses
            .into_iter()
            .filter(|(used, _)| self.position(used).is_some_and(|used| used > own));
        upward
            .map(|(used, line)| {
                format!(
                    "{}:{line}: {} must not use {used}, which lib.rs declares after it",
                    path.display(),
                    module_path[0]
                )
            })
            .collect()
    }

    fn position(&self, module: &str) -> Option<usize> {
        self.order.iter().position(|other| other == module)
    }
}

/// The names of the modules from the crate's root down to the file; none for `lib.rs` and for tests.
fn module_path(src: &Path, path: &Path) -> Option<Vec<String>> {
    let inside = path.strip_prefix(src).ok()?.with_extension("");
    let names: Option<Vec<_>> = inside
        .iter()
        .map(|name| name.to_str().map(str::to_owned))
        .collect();
    let names = names?;
    let is_test = names.iter().any(|name| name == "tests");
    (!is_test && names != ["lib"]).then_some(names)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn declared(lib: &str) -> Declared {
        Declared {
            src: "crates/a/src".into(),
            order: Source::new(lib).declared_modules(),
        }
    }

    const LIB: &str = "pub mod api;\n\nmod service;\n\n#[cfg(test)]\nmod stage;\n\npub mod run;\n";

    #[test]
    fn modules_are_ordered_as_declared_and_test_modules_are_left_out() {
        assert_eq!(declared(LIB).order, ["api", "service", "run"]);
    }

    #[test]
    fn an_upward_use_is_named_with_its_line_and_a_downward_one_is_not() {
        let declared = declared(LIB);
        let upward = |path: &str, text: &str| declared.upward(Path::new(path), text);
        let found = upward(
            "crates/a/src/service/facts.rs",
            "\nuse crate::run::Runner;\n",
        );
        assert_eq!(
            found,
            [
                "crates/a/src/service/facts.rs:2: service must not use run, which lib.rs declares after it"
            ]
        );
        assert!(upward("crates/a/src/service/facts.rs", "use crate::api::Thing;").is_empty());
        assert!(upward("crates/a/src/run.rs", "use crate::{api, service};").is_empty());
    }

    #[test]
    fn every_way_to_name_a_module_is_found() {
        let declared = declared(LIB);
        for text in [
            "use crate::{\n    api::{Thing, run},\n    run::Runner,\n};",
            "fn f() { crate::run::go() }",
            "use super::super::run::go;",
            "use super::{super::run, facts};",
        ] {
            let found = declared.upward(Path::new("crates/a/src/service/act.rs"), text);
            assert_eq!(found.len(), 1, "{text}");
        }
    }

    #[test]
    fn comments_strings_and_tests_do_not_count() {
        let declared = declared(LIB);
        for text in [
            "// use crate::run;",
            "const A: &str = \"crate::run\";",
            "#[cfg(test)]\nmod tests {\n    use crate::run;\n    fn f() { {} }\n}",
            "use crate::api::{run, Thing};",
            "use super::run;",
        ] {
            let found = declared.upward(Path::new("crates/a/src/service/act.rs"), text);
            assert!(found.is_empty(), "{text}: {found:?}");
        }
        let test = Path::new("crates/a/src/service/tests/one.rs");
        assert!(declared.upward(test, "use crate::run;").is_empty());
    }
}
