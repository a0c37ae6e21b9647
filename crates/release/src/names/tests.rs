use std::collections::BTreeSet;

use proptest::prelude::*;

use super::*;

#[test]
fn names_of_prow_jobs_are_those_of_the_original() {
    let day = "4.9.0-0.ci-2021-08-30-130010";
    let other = "4.9.0-0.ci-2021-08-30-133010";
    for (name, suffix, wanted) in [
        (
            format!("{day}-job-name-fake"),
            "",
            format!("{day}-job-name-fake"),
        ),
        (
            format!("{day}-this-is-a-really-long-job-name-foo"),
            "",
            format!("{day}-this-is-a-really-long-job-name-foo"),
        ),
        (
            format!("{day}-this-is-a-really-long-job-name-fake"),
            "",
            format!("{day}-this-is-a-really-long-job-fwm2xib"),
        ),
        (
            format!("{day}-job-name"),
            "analysis-1",
            format!("{day}-job-name-analysis-1"),
        ),
        (
            format!("{other}-this-is-a-really-long-job-name"),
            "analysis-1",
            format!("{other}-this-is-a-reall-18k93xt-analysis-1"),
        ),
        (
            format!("{other}-fake-job-name-for-test1"),
            "analysis-1",
            format!("{other}-fake-job-name-for-test1-analysis-1"),
        ),
        (
            format!("{other}-this-is-a-really-really-really-really-really-really-long-job-name"),
            "analysis-1",
            format!("{other}-this-is-a-reall-gmlwrnb-analysis-1"),
        ),
        (
            "4.16.0-0.nightly-2024-02-07-125310-aggregated-hypershift-ovn-conformance-4.16".into(),
            "aggregator",
            "4.16.0-0.nightly-2024-02-07-125310-aggregate-44j0w6k-aggregator".into(),
        ),
        (
            "4.16.0-0.nightly-2024-02-07-125310-aggregated-hypershift-ovn-conformance-4.16".into(),
            "aggregator-2",
            "4.16.0-0.nightly-2024-02-07-125310-aggrega-44j0w6k-aggregator-2".into(),
        ),
        (
            "4.19.0-0.nightly-2025-06-19-224840-aws-ovn-upgrade-4.19-micro-fips".into(),
            "1",
            "4.19.0-0.nightly-2025-06-19-224840-aws-ovn-upgrade-4-mzdcpq2-1".into(),
        ),
    ] {
        assert_eq!(run_name(&name, suffix), wanted);
    }
}

#[test]
fn names_of_objects_follow_from_the_tag() {
    let tag = release_tag(
        "4.21.0-0.nightly",
        "2026-01-02T03:04:05.9Z".parse().unwrap(),
    );
    assert_eq!(tag, "4.21.0-0.nightly-2026-01-02-030405");
    assert_eq!(
        mirror("4.21-art-latest", "4.21.0-0.nightly", &tag),
        "4.21-art-latest-2026-01-02-030405"
    );
    assert_eq!(verification_run("t", "aws", 0), "t-aws");
    assert_eq!(verification_run("t", "aws", 2), "t-aws-2");
    assert_eq!(aggregator_run("t", "agg", 0), "t-agg-aggregator");
    assert_eq!(aggregator_run("t", "agg", 1), "t-agg-aggregator-1");
    assert_eq!(analysis_run("t", "agg", 9), "t-agg-analysis-9");
    assert_eq!(
        upgrade_run("4.11.22", "4.10.18", "aws"),
        "4.11.22-upgrade-from-4.10.18-aws"
    );
}

#[test]
fn the_hash_of_inputs_has_nothing_between_them() {
    let hash = input_hash(["ab", "c"]);
    assert_eq!(hash, input_hash(["a", "bc"]));
    assert_eq!(
        hash,
        "sha256:ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
    );
}

#[test]
#[expect(clippy::too_many_lines, reason = "a table of cases")]
fn names_are_read_back() {
    let day = "2021-08-30-130010";
    let named = |name: &str| RunStream::Named(name.to_owned());
    for (name, stream, job, attempt, from) in [
        (
            format!("4.9.0-0.ci-{day}-aws-serial"),
            named("ci"),
            "aws-serial",
            0,
            None,
        ),
        (
            format!("4.9.0-0.nightly-arm64-{day}-aws-2"),
            named("nightly"),
            "aws",
            2,
            None,
        ),
        (
            format!("4.15.0-0.okd-{day}-e2e-aws"),
            named("okd"),
            "e2e-aws",
            0,
            None,
        ),
        (
            format!("4.20.0-0.okd-scos-{day}-aws"),
            named("okd-scos"),
            "aws",
            0,
            None,
        ),
        (
            "4.11.22-upgrade-from-4.10.18-aws".into(),
            RunStream::Stable,
            "aws",
            0,
            Some("4.10.18"),
        ),
        (
            "4.11.0-rc.1-upgrade-from-4.10.0-rc.3-gcp-1".into(),
            RunStream::Candidate,
            "gcp",
            1,
            Some("4.10.0-rc.3"),
        ),
        (
            "4.20.0-okd-scos.ec.5-aws".into(),
            named("okd-scos"),
            "aws",
            0,
            None,
        ),
        (
            "4.19.0-okd-scos.5-e2e-aws-3".into(),
            named("okd-scos"),
            "e2e-aws",
            3,
            None,
        ),
        (
            "4.12.0-rc.4-aws-sdn".into(),
            RunStream::Candidate,
            "aws-sdn",
            0,
            None,
        ),
        (
            "4.12.9-aws-sdn-1".into(),
            RunStream::Stable,
            "aws-sdn",
            1,
            None,
        ),
    ] {
        let parsed = RunName::parse(&name).unwrap();
        let found = (
            parsed.stream,
            parsed.job.as_str(),
            parsed.attempt,
            parsed.upgrade_from.as_deref(),
        );
        assert_eq!(found, (stream, job, attempt, from), "{name}");
    }
    for name in [
        "0b5f9a5e-8c3a-4f0e-a5d6-2f9f4d1c7b11",
        "e2e-aws",
        "4.9.0",
        "",
    ] {
        assert!(RunName::parse(name).is_err(), "{name}");
    }
}

proptest! {
    #[test]
    fn names_fit_and_different_jobs_have_different_names(
        keys in prop::collection::btree_set("[a-z][a-z0-9.-]{0,80}", 1..20),
        attempt in 0_u32..4,
    ) {
        let tag = "4.16.0-0.nightly-2024-02-07-125310";
        let names: BTreeSet<_> = keys.iter().map(|key| verification_run(tag, key, attempt)).collect();
        prop_assert!(names.iter().all(|name| name.len() <= MAX_RUN_NAME));
        let unsuffixed: BTreeSet<_> = keys.iter().map(|key| short_hash(&format!("{tag}-{key}"))).collect();
        prop_assert!(names.len() >= unsuffixed.len());
    }
}
