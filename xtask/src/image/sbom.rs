//! The bill of materials: every crate that is linked into `neap`, in SPDX 2.3.

use anyhow::Result;
use serde_json::{Value, json};

use crate::{image::archive::digest, process};

/// The document, the same for the same dependencies.
pub(crate) fn document() -> Result<Vec<u8>> {
    let text = process::output(process::cargo().args([
        "tree",
        "--package",
        "neap",
        "--locked",
        "--edges=normal",
        "--prefix=none",
        "--no-dedupe",
        "--format={p}|{l}",
        "--target",
        "x86_64-unknown-linux-gnu",
    ]))?;
    Ok(serde_json::to_vec_pretty(&spdx(&text))?)
}

/// A crate that is part of the program.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Component {
    name: String,
    version: String,
    licence: String,
}

fn spdx(tree: &str) -> Value {
    let mut components: Vec<_> = tree.lines().filter_map(component).collect();
    components.sort();
    components.dedup();
    let packages: Vec<_> = components.iter().map(package).collect();
    let contains = components.iter().filter(|it| it.name != "neap").map(|it| {
        json!({
            "spdxElementId": identifier("neap", env!("CARGO_PKG_VERSION")),
            "relationshipType": "DEPENDS_ON",
            "relatedSpdxElement": identifier(&it.name, &it.version),
        })
    });
    let describes = json!({
        "spdxElementId": "SPDXRef-DOCUMENT",
        "relationshipType": "DESCRIBES",
        "relatedSpdxElement": identifier("neap", env!("CARGO_PKG_VERSION")),
    });
    let relationships: Vec<_> = std::iter::once(describes).chain(contains).collect();
    // Derived from the content, so that equal content is an equal document.
    let content = serde_json::to_vec(&packages).unwrap_or_default();
    json!({
        "spdxVersion": "SPDX-2.3",
        "dataLicense": "CC0-1.0",
        "SPDXID": "SPDXRef-DOCUMENT",
        "name": concat!("neap-", env!("CARGO_PKG_VERSION")),
        "documentNamespace": format!("urn:neap:{}", digest(&content)),
        "creationInfo": {"created": "1970-01-01T00:00:00Z", "creators": ["Tool: cargo-xtask"]},
        "packages": packages,
        "relationships": relationships,
    })
}

/// Of a line such as `serde v1.0.1|MIT OR Apache-2.0`.
fn component(line: &str) -> Option<Component> {
    let (package, licence) = line.split_once('|')?;
    let mut words = package.split_whitespace();
    let name = words.next()?.to_owned();
    let version = words.next()?.strip_prefix('v')?.to_owned();
    let licence = licence.trim();
    Some(Component {
        name,
        version,
        licence: if licence.is_empty() {
            "NOASSERTION"
        } else {
            licence
        }
        .replace('/', " OR "),
    })
}

fn package(component: &Component) -> Value {
    let Component {
        name,
        version,
        licence,
    } = component;
    json!({
        "SPDXID": identifier(name, version),
        "name": name,
        "versionInfo": version,
        "downloadLocation": "NOASSERTION",
        "licenseDeclared": licence,
        "licenseConcluded": "NOASSERTION",
        "copyrightText": "NOASSERTION",
        "externalRefs": [{
            "referenceCategory": "PACKAGE-MANAGER",
            "referenceType": "purl",
            "referenceLocator": format!("pkg:cargo/{name}@{version}"),
        }],
    })
}

fn identifier(name: &str, version: &str) -> String {
    let plain = |it: char| if it.is_ascii_alphanumeric() { it } else { '-' };
    let text: String = format!("{name}-{version}").chars().map(plain).collect();
    format!("SPDXRef-{text}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_crate_is_named_once_with_its_licence_and_what_depends_on_it() {
        let tree = "neap v0.1.0 (/somewhere)|Apache-2.0\nserde v1.0.1|MIT OR Apache-2.0\n\
                    ring-core v2.0.0 (*)|\nserde v1.0.1|MIT OR Apache-2.0\nold v1.0.0|MIT/Apache-2.0\n";
        let document = spdx(tree);
        let packages = document["packages"].as_array().unwrap();
        let shown: Vec<_> = packages
            .iter()
            .map(|it| {
                format!(
                    "{} {} {}",
                    it["name"], it["versionInfo"], it["licenseDeclared"]
                )
                .replace('"', "")
            })
            .collect();
        let expected = [
            "neap 0.1.0 Apache-2.0",
            "old 1.0.0 MIT OR Apache-2.0",
            "ring-core 2.0.0 NOASSERTION",
            "serde 1.0.1 MIT OR Apache-2.0",
        ];
        assert_eq!(shown, expected);
        assert_eq!(document["relationships"].as_array().unwrap().len(), 4);
        assert_eq!(spdx(tree), document);
    }
}
