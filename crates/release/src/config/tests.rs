use serde_json::json;

use super::*;

fn parsed(value: &serde_json::Value) -> Result<ReleaseConfig, ConfigError> {
    parse(&value.to_string(), ANNOTATION_LIMIT)
}

fn problem(value: &serde_json::Value) -> String {
    parsed(value).unwrap_err().to_string()
}

#[test]
fn names_of_fields_have_any_case_and_unknown_ones_are_ignored() {
    let config = parsed(&json!({
        "NAME": "4.99.0-0.ci", "To": "release", "MAXUNREADYRELEASES": 2, "overrideCliImage": "cli",
        "verify": {"aws": {"PROWJOB": {"Name": "e2e"}, "maxretries": 3, "later": 1}, "none": null},
        "expires": "72h", "periodic": null, "novelty": {"a": 1},
    }))
    .unwrap();
    assert_eq!(
        (config.name.as_str(), config.max_unready_releases),
        ("4.99.0-0.ci", 2)
    );
    assert_eq!(config.override_cli_image, "cli");
    let jobs: Vec<_> = config
        .verified_by()
        .map(|(key, one, job)| (key, one.max_retries, job))
        .collect();
    assert_eq!(
        jobs,
        [("aws", 3, "e2e")],
        "the entry without a Prow job launches nothing"
    );
    let written = serde_json::to_value(&config).unwrap();
    assert_eq!(written["expires"], json!(259_200_000_000_000_u64));
    assert_eq!(written["to"], "release");
}

#[test]
fn errors_name_the_field() {
    for (config, wanted) in [
        (json!({"to": "release"}), "name: a stream has a name"),
        (json!({"name": "x"}), "to: a stream that is not Stable"),
        (
            json!({"name": "x", "to": "y", "verify": {"": {}}}),
            "verify: a verification has a name",
        ),
        (
            json!({"name": "x", "to": "y", "verify": {"a": {"upgradeFrom": "Later"}}}),
            "verify.a.upgradeFrom: it is Previous",
        ),
        (
            json!({"name": "x", "to": "y", "verify": {"a": {"prowJob": {}}}}),
            "verify.a.prowJob.name: a Prow job has a name",
        ),
        (
            json!({"name": "x", "to": "y", "publish": {"": {}}}),
            "publish: an entry has a name",
        ),
        (
            json!({"name": "x", "to": "y", "publish": {"p": {"tagRef": {}}}}),
            "publish.p.tagRef.name: a tag has a name",
        ),
        (
            json!({"name": "x", "to": "y", "publish": {"p": {"imageStreamRef": {"name": ""}}}}),
            "publish.p.imageStreamRef.name: an ImageStream has a name",
        ),
        (
            json!({"name": "x", "to": "y", "verify": {"a": {"maxRetries": "two"}}}),
            "verify.a.maxRetries: invalid type",
        ),
        (
            json!({"name": "x", "to": "y", "expires": 5}),
            "expires: invalid type",
        ),
        (
            json!({"name": "x", "to": "y", "expires": "5 days"}),
            "expires: \"5 days\" is not a duration",
        ),
    ] {
        let problem = problem(&config);
        assert!(problem.starts_with(wanted), "{problem} instead of {wanted}");
    }
    let stable = parsed(&json!({"name": "4-stable", "as": "Stable"}));
    assert!(stable.unwrap().is_stable());
}

#[test]
fn previous_minus_1_is_an_upgrade_source_of_a_verification() {
    for source in ["PreviousMinus1", "PreviousMicro", "PreviousPatch", ""] {
        let config = json!({"name": "x", "to": "y", "verify": {"a": {"upgradeFrom": source}}});
        assert!(parsed(&config).is_ok(), "{source}");
    }
}

#[test]
fn an_annotation_has_at_most_16_kilobytes() {
    let config = |message: usize| {
        let config = json!({"name": "x", "to": "y", "message": "m".repeat(message)});
        config.to_string()
    };
    let fits = ANNOTATION_LIMIT - config(0).len();
    assert!(parse(&config(fits), ANNOTATION_LIMIT).is_ok());
    let error = parse(&config(fits + 1), ANNOTATION_LIMIT).unwrap_err();
    assert!(
        error
            .to_string()
            .starts_with("release config must be less than 16k"),
        "{error}"
    );
    assert!(parse(&config(fits + 1), CONFIG_MAP_LIMIT).is_ok());
    assert!(matches!(
        parse("{", ANNOTATION_LIMIT),
        Err(ConfigError::NotJson(_))
    ));
}

#[test]
fn validation_refuses_what_controllers_only_ignore() {
    let checked = check(
        &json!({
            "name": "x", "to": "y", "bogus": 1,
            "verify": {
                "a": {"async": true, "maxRetries": 1, "prowjob": {"name": "a"}},
                "b": {"upgradeFrom": "Previous", "upgradeFromRelease": {"candidate": {"stream": "ci"}}},
                "c": {"optional": true, "aggregatedProwJob": {"analysisJobCount": 10}},
                "aws-4": {"qualifiers": {"rosa": {"approval": false, "badge": "x"}}},
                "4.10": {},
            },
            "periodic": {
                "p": {}, "q": {"interval": "1h", "cron": "@daily"}, "r": {"interval": "soon"},
                "s": {"cron": "* * *"}, "t": {"cron": "0 6 * * *"}, "u": {"cron": "@daily"},
            },
        })
        .to_string(),
    );
    let paths: Vec<_> = checked
        .problems
        .iter()
        .map(|problem| problem.path.as_str())
        .collect();
    assert_eq!(
        paths,
        [
            "bogus",
            "verify.aws-4.qualifiers.rosa.badge",
            "verify.a.async",
            "verify.a.maxRetries",
            "verify.aws-4",
            "verify.aws-4.qualifiers.rosa.approval",
            "verify.b.upgradeFromRelease",
            "verify.c.optional",
            "periodic.p",
            "periodic.q",
            "periodic.r.interval",
            "periodic.s.cron",
        ],
        "{:#?}",
        checked.problems
    );
}

#[test]
fn a_blocking_upgrade_that_would_never_run_is_refused_with_its_path() {
    let official = json!({"release": {"version": "4.20", "channel": "stable"}});
    let job = |from: &serde_json::Value, optional: bool| json!({"upgrade": true, "upgradeFromRelease": from, "optional": optional});
    let checked = check(
        &json!({"name": "x", "to": "y", "verify": {
            "a": job(&official, false), "b": job(&official, true), "c": job(&json!({}), false),
            "d": job(&json!({"candidate": {"stream": "ci", "version": "4.20"}}), false),
        }})
        .to_string(),
    );
    let paths = checked.problems.iter().map(|problem| problem.path.as_str());
    let paths: Vec<_> = paths.collect();
    let wanted = [
        "verify.a.upgradeFromRelease.release",
        "verify.c.upgradeFromRelease",
    ];
    assert_eq!(paths, wanted, "{:#?}", checked.problems);
}

#[test]
fn a_periodic_prow_job_belongs_to_one_place() {
    let config = |key: &str| {
        let config =
            json!({"name": key, "to": "y", "periodic": {key: {"prowJob": {"name": "soak"}}}});
        parsed(&config).unwrap()
    };
    let one = BTreeMap::from([("a.json".to_owned(), config("a"))]);
    assert_eq!(check_all(&one), []);
    let two = BTreeMap::from([
        ("a.json".to_owned(), config("a")),
        ("b.json".to_owned(), config("b")),
    ]);
    let problems = check_all(&two);
    assert_eq!(problems.len(), 2);
    assert_eq!(problems[1].1.path, "periodic.b.prowJob.name");
}

#[test]
fn settings_of_a_job_win_over_global_ones() {
    let text = "qualifiers:\n  dtk:\n    enabled: true\n    badgeName: dtk\n    failureLabels: [prevent_rc]\n    \
        notifications:\n      jira:\n        project: ART\n        escalations:\n        - {name: warn, failures: 4}\n        \
        - {name: alert, failures: 8, overPeriod: 72h}\n";
    let global = ReleaseQualifiers::parse(text).unwrap();
    let job: ReleaseQualifier = serde_json::from_value(json!({
        "badgeName": "other", "failureLabels": [],
        "notifications": {"jira": {"escalations": [{"name": "alert", "failures": 2}]}},
    }))
    .unwrap();
    let merged = global.0["dtk"].merged(&job);
    assert_eq!(
        (merged.enabled, merged.badge_name.as_str()),
        (Some(true), "other")
    );
    assert_eq!(merged.failure_labels, Some(Vec::new()));
    let jira = merged.notifications.unwrap().jira.unwrap();
    assert_eq!(jira.project, "ART");
    let escalations: Vec<_> = jira
        .escalations
        .iter()
        .map(|it| (it.name.as_str(), it.failures))
        .collect();
    assert_eq!(escalations, [("alert", 2), ("warn", 4)]);
    assert_eq!(
        jira.escalations[0].over_period, "",
        "an escalation is replaced as a whole"
    );
}

#[test]
fn qualifiers_are_read_strictly() {
    for (text, wanted) in [
        (
            "qualifiers:\n  qe: {approval: true, failureLabels: [x]}",
            "qualifiers.qe.failureLabels",
        ),
        (
            "qualifiers:\n  qe: {badge: x}",
            "qualifiers.qe.badge: there is no such field",
        ),
        ("qualifiers:\n  qe: {enabled: 5}", "enabled"),
        (
            "qualifiers:\n  qe: {enabled: true}\n  qe: {enabled: false}",
            "duplicate",
        ),
        (
            "qualifiers:\n  qe: {notifications: {jira: {escalations: [{name: a, passPercentage: 101}]}}}",
            "passPercentage: it is from 0 to 100",
        ),
        (
            "qualifiers:\n  qe: {notifications: {jira: {escalations: [{name: a, overPeriod: 0d}]}}}",
            "overPeriod: it is a number",
        ),
    ] {
        let error = ReleaseQualifiers::parse(text).unwrap_err().to_string();
        assert!(error.contains(wanted), "{error} instead of {wanted}");
    }
    assert_eq!(
        ReleaseQualifiers::parse("").unwrap(),
        ReleaseQualifiers::default()
    );
}

#[test]
fn a_stream_has_a_name_that_its_releases_may_have() {
    let path = |config: serde_json::Value| match parse(&config.to_string(), ANNOTATION_LIMIT) {
        Ok(_) => None,
        Err(ConfigError::Invalid(problems)) => Some(problems[0].path.clone()),
        Err(error) => panic!("{error}"),
    };
    let integration = |name: &str| path(json!({"name": name, "to": "release"}));
    let stable = |name: &str| path(json!({"name": name, "as": "Stable"}));
    for name in ["4.21.0-0.nightly-multi-priv", "a", &"a".repeat(45)] {
        assert_eq!(integration(name), None, "{name}");
    }
    let wrong = [
        "../../x",
        "a b",
        "A",
        "a..b",
        "-a",
        "a.",
        "\u{1b}[31m",
        &"a".repeat(46),
    ];
    for name in wrong {
        assert_eq!(integration(name).as_deref(), Some("name"), "{name:?}");
    }
    assert_eq!(stable("4-stable"), None);
    assert_eq!(stable("Stable_4.y"), None);
    for name in ["a/b", "-a", &"a".repeat(300)] {
        assert_eq!(stable(name).as_deref(), Some("name"), "{name:?}");
    }
    let prefixed = |prefix: &str| path(json!({"name": "a", "to": "b", "mirrorPrefix": prefix}));
    assert_eq!(prefixed("4.21-art-latest"), None);
    assert_eq!(prefixed("../x").as_deref(), Some("mirrorPrefix"));
    let tag = json!({"name": "a", "to": "b", "publish": {"p": {"tagRef": {"name": "x/y"}}}});
    assert_eq!(path(tag).as_deref(), Some("publish.p.tagRef.name"));
}

#[test]
fn two_streams_with_one_target_do_not_share_a_name() {
    let config = |name: &str, to: &str| {
        let text = json!({"name": name, "to": to}).to_string();
        parse(&text, ANNOTATION_LIMIT).unwrap()
    };
    let all = [
        ("a.json", config("nightly", "release")),
        ("b.json", config("nightly", "release")),
        ("c.json", config("nightly", "release-priv")),
        ("d.json", config("ci", "release")),
    ];
    let all = all.map(|(file, config)| (file.to_owned(), config)).into();
    let problems = check_all(&all);
    let files: Vec<_> = problems.iter().map(|(file, _)| file.as_str()).collect();
    assert_eq!(files, ["a.json", "b.json"]);
    assert!(problems[0].1.message.contains("a.json, b.json"));
}
