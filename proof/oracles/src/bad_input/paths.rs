//! Unknown paths, and invalid options.

use http::Method;

use super::{Attempt, MAP, MAPS};

/// Invalid selectors, limits and revisions.
pub fn invalid_options() -> Vec<Attempt> {
    let long = format!("labelSelector={}", "a%3Db,".repeat(9_000) + "%21");
    let parentheses = format!("labelSelector=a+in+{}", "(".repeat(10_000));
    let value = format!("labelSelector=a%3D{}", "v".repeat(50_000));
    let queries = [
        "labelSelector=%3D%3D%3D",
        "labelSelector=a+in",
        "labelSelector=a+in+(",
        "labelSelector=%00",
        "labelSelector=a%3D%FF%FE",
        "fieldSelector=spec.nodeName%3Dx",
        "fieldSelector=metadata.name%3E1",
        "fieldSelector=%3D",
        "limit=-9999999999999999999",
        "limit=many",
        "continue=%FF%00garbage",
        "resourceVersion=minus",
        "resourceVersion=-1",
        "resourceVersionMatch=Exact",
        "watch=1&timeoutSeconds=forever",
        "watch=1&sendInitialEvents=true",
        &long,
        &parentheses,
        &value,
    ];
    let attempts = queries
        .into_iter()
        .map(|query| Attempt::new(Method::GET, format!("{MAPS}?{query}"), &[400, 422]));
    attempts.collect()
}

/// Objects that do not exist, and methods that a path does not support.
pub fn unknown_paths() -> Vec<Attempt> {
    let long = format!("{MAPS}/{}", "n".repeat(5000));
    let mut attempts = Vec::new();
    for (codes, method, path) in [
        (&[404], Method::GET, format!("{MAPS}/none")),
        (&[404], Method::GET, format!("{MAPS}/..%2f..%2fsecrets")),
        (&[404], Method::GET, format!("{MAPS}/%00")),
        (&[404], Method::GET, long),
        (&[405], Method::POST, MAP.to_owned()),
        (&[405], Method::TRACE, MAPS.to_owned()),
        (&[405], Method::PUT, MAPS.to_owned()),
    ] {
        attempts.push(Attempt::new(method, path, codes).with(super::JSON, "{}"));
    }
    attempts
}
