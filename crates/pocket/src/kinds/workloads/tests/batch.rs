use super::*;

fn job(spec: Value) -> Value {
    let mut all = json!({"template": pod_template("Never")});
    merge(&mut all, spec);
    json!({"metadata": {"name": "x1", "namespace": "default"}, "spec": all})
}

#[test]
fn a_job_selects_its_pods_by_its_uid() {
    let object = created("jobs", &job(json!({})));
    let uid = json!({"batch.kubernetes.io/controller-uid": UID});
    assert_eq!(object["spec"]["selector"], json!({"matchLabels": uid}));
    let labels = json!({
        "a": "b",
        "batch.kubernetes.io/controller-uid": UID,
        "batch.kubernetes.io/job-name": "x1",
        "controller-uid": UID,
        "job-name": "x1",
    });
    assert_eq!(object["spec"]["template"]["metadata"]["labels"], labels);
    assert_eq!(object["metadata"]["labels"], labels);
}

#[test]
fn a_job_keeps_labels_of_its_own() {
    let mut sent = job(json!({}));
    sent["metadata"]["labels"] = json!({"mine": "yes"});
    assert_eq!(
        created("jobs", &sent)["metadata"]["labels"],
        json!({"mine": "yes"})
    );
}

#[test]
fn a_manual_selector_is_left_alone() {
    let selector = json!({"matchLabels": {"a": "b"}});
    let sent = job(json!({"manualSelector": true, "selector": selector}));
    let object = created("jobs", &sent);
    assert_eq!(object["spec"]["selector"], selector);
    assert_eq!(
        object["spec"]["template"]["metadata"]["labels"],
        json!({"a": "b"})
    );
    assert_eq!(refusals("jobs", &sent), [""; 0]);
    let errors = refusals("jobs", &job(json!({"manualSelector": true})));
    assert_eq!(errors[0], "spec.selector: Required value");
}

#[test]
fn a_selector_made_up_by_the_client_is_refused() {
    let errors = refusals(
        "jobs",
        &job(json!({"selector": {"matchLabels": {"a": "b"}}})),
    );
    assert_eq!(errors.len(), 1);
    assert!(errors[0].starts_with("spec.selector: Invalid value: "));
    assert!(errors[0].ends_with(": `selector` not auto-generated"));
    let mut template = pod_template("Never");
    template["metadata"]["labels"] = json!({"job-name": "other"});
    let errors = refusals("jobs", &job(json!({"template": template})));
    assert_eq!(errors.len(), 1);
    assert!(errors[0].starts_with("spec.template.metadata.labels[job-name]: Invalid value: "));
    assert!(errors[0].ends_with(": must be 'x1'"));
}

#[test]
fn counts_of_a_job_depend_on_each_other() {
    for (spec, completions, parallelism, backoff) in [
        (json!({}), json!(1), json!(1), json!(6)),
        (json!({"parallelism": 3}), json!(null), json!(3), json!(6)),
        (json!({"completions": 3}), json!(3), json!(1), json!(6)),
        (
            json!({"completions": 3, "completionMode": "Indexed", "backoffLimitPerIndex": 1}),
            json!(3),
            json!(1),
            json!(i32::MAX),
        ),
    ] {
        let spec = &created("jobs", &job(spec))["spec"];
        assert_eq!(spec["completions"], completions);
        assert_eq!(spec["parallelism"], parallelism);
        assert_eq!(spec["backoffLimit"], backoff);
    }
}

#[test]
fn a_failure_policy_replaces_failed_pods_only() {
    let policy =
        json!({"rules": [{"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget"}]}]});
    let sent = job(json!({"podFailurePolicy": policy}));
    let spec = &created("jobs", &sent)["spec"];
    assert_eq!(spec["podReplacementPolicy"], json!("Failed"));
    let pattern = &spec["podFailurePolicy"]["rules"][0]["onPodConditions"][0];
    assert_eq!(pattern["status"], json!("True"));
    assert_eq!(refusals("jobs", &sent), [""; 0]);
}

#[test]
#[expect(clippy::too_many_lines, reason = "a table of cases")]
fn jobs_refuse_what_makes_no_sense() {
    for (spec, errors) in [
        (
            json!({"template": pod_template("Always")}),
            "spec.template.spec.restartPolicy: Required value: valid values: \"OnFailure\", \"Never\"",
        ),
        (
            json!({"backoffLimit": -1}),
            "spec.backoffLimit: Invalid value: -1: must be greater than or equal to 0",
        ),
        (
            json!({"completionMode": "Indexed", "parallelism": 2}),
            "spec.completions: Required value: when completion mode is Indexed",
        ),
        (
            json!({"backoffLimitPerIndex": 1}),
            "spec.backoffLimitPerIndex: Invalid value: 1: requires indexed completion mode",
        ),
        (
            json!({"completionMode": "Indexed", "completions": 5, "parallelism": 100_001}),
            "spec.parallelism: Invalid value: 100001: must be less than or equal to 100000 when completion mode is Indexed",
        ),
        (
            json!({"podReplacementPolicy": "TerminatingOrFailed", "podFailurePolicy": {"rules": []}}),
            "spec.podReplacementPolicy: Unsupported value: \"TerminatingOrFailed\": supported values: \"Failed\"",
        ),
        (
            json!({"template": pod_template("OnFailure"), "podFailurePolicy": {"rules": []}}),
            "spec.template.spec.restartPolicy: Invalid value: \"OnFailure\": only \"Never\" is supported when podFailurePolicy is specified",
        ),
        (
            json!({"podFailurePolicy": {"rules": [{"action": "FailJob", "onExitCodes": {"operator": "In", "values": [3], "containerName": "d"}}]}}),
            "spec.podFailurePolicy.rules[0].onExitCodes.containerName: Invalid value: \"d\": must be one of the container or initContainer names in the pod template",
        ),
        (
            json!({"podFailurePolicy": {"rules": [{"action": "FailJob", "onExitCodes": {"operator": "In", "values": [3, 3], "containerName": "c"}}]}}),
            "spec.podFailurePolicy.rules[0].onExitCodes.values[1]: Duplicate value: 3",
        ),
        (
            json!({"podFailurePolicy": {"rules": [{"action": "Count", "onPodConditions": [{"type": "T", "status": "Maybe"}]}]}}),
            "spec.podFailurePolicy.rules[0].onPodConditions[0].status: Unsupported value: \"Maybe\": supported values: \"False\", \"True\", \"Unknown\"",
        ),
        (
            json!({"managedBy": format!("acme.io/{}", "x".repeat(56))}),
            "spec.managedBy: Too long: may not be more than 63 bytes",
        ),
        (
            json!({"managedBy": "none"}),
            "spec.managedBy: Invalid value: \"none\": must be a domain-prefixed path (such as \"acme.io/foo\")",
        ),
        (
            json!({"podFailurePolicy": {"rules": [{"action": "Ignore"}]}}),
            "spec.podFailurePolicy.rules[0]: Invalid value: {\"action\":\"Ignore\"}: specifying one of OnExitCodes and OnPodConditions is required",
        ),
        (
            json!({"podFailurePolicy": {"rules": [{"action": "FailJob", "onExitCodes": {"operator": "In", "values": [0, 3]}}]}}),
            "spec.podFailurePolicy.rules[0].onExitCodes.values[0]: Invalid value: 0: must not be 0 for the In operator",
        ),
        (
            json!({"podFailurePolicy": {"rules": [{"action": "FailJob", "onExitCodes": {"operator": "In", "values": [5, 3]}}]}}),
            "spec.podFailurePolicy.rules[0].onExitCodes.values: Invalid value: [5,3]: must be ordered",
        ),
        (
            json!({"podFailurePolicy": {"rules": [{"action": "FailIndex", "onExitCodes": {"operator": "In", "values": [3]}}]}}),
            "spec.podFailurePolicy.rules[0].action: Invalid value: \"FailIndex\": requires the backoffLimitPerIndex to be set",
        ),
    ] {
        assert_eq!(refusals("jobs", &job(spec)), [errors]);
    }
}

#[test]
fn success_policies_name_indexes_that_exist() {
    let indexed = |rules: Value| {
        refusals(
            "jobs",
            &job(json!({
                "completionMode": "Indexed", "completions": 4, "successPolicy": {"rules": rules},
            })),
        )
    };
    assert_eq!(
        indexed(json!([{"succeededIndexes": "0,2-3", "succeededCount": 2}])),
        [""; 0]
    );
    for (rules, errors) in [
        (
            json!([]),
            "spec.successPolicy.rules: Required value: at least one rules must be specified when the successPolicy is specified",
        ),
        (
            json!([{}]),
            "spec.successPolicy.rules[0]: Required value: at least one of succeededCount or succeededIndexes must be specified",
        ),
        (
            json!([{"succeededCount": 5}]),
            "spec.successPolicy.rules[0].succeededCount: Invalid value: 5: must be less than or equal to 4 (the number of specified completions)",
        ),
        (
            json!([{"succeededIndexes": "4"}]),
            "spec.successPolicy.rules[0].succeededIndexes: Invalid value: \"4\": too large index",
        ),
    ] {
        assert_eq!(indexed(rules), [errors]);
    }
}

#[test]
fn an_indexed_job_leaves_room_for_its_indexes_in_host_names() {
    let mut sent = job(json!({"completionMode": "Indexed", "completions": 11}));
    sent["metadata"]["name"] = json!("n".repeat(60));
    assert_eq!(refusals("jobs", &sent), [""; 0]);
    sent["metadata"]["name"] = json!("n".repeat(61));
    let errors = refusals("jobs", &sent);
    assert_eq!(errors.len(), 1);
    assert!(
        errors[0].starts_with("metadata.name: Invalid value: "),
        "{errors:?}"
    );
}

#[test]
fn jobs_let_only_some_fields_change() {
    let sent = job(json!({"completions": 2, "parallelism": 2}));
    for (spec, refused) in [
        (json!({"parallelism": 5}), None),
        (json!({"suspend": true}), None),
        (
            json!({"activeDeadlineSeconds": 5, "backoffLimit": 1, "ttlSecondsAfterFinished": 3}),
            None,
        ),
        (json!({"completions": 3}), Some("spec.completions")),
        (
            json!({"podFailurePolicy": {"rules": []}, "podReplacementPolicy": "Failed"}),
            Some("spec.podFailurePolicy"),
        ),
        (json!({"managedBy": "acme.io/x"}), Some("spec.managedBy")),
    ] {
        let errors = refusals_of_change("jobs", &sent, |object| {
            merge(&mut object["spec"], spec.clone());
        });
        assert_eq!(errors.len(), usize::from(refused.is_some()), "{errors:?}");
        for text in errors {
            assert!(text.starts_with(refused.unwrap_or_default()), "{text}");
            assert!(text.ends_with("field is immutable"), "{text}");
        }
    }
}

#[test]
fn indexed_jobs_grow_with_their_parallelism() {
    let sent = job(json!({"completionMode": "Indexed", "completions": 2, "parallelism": 2}));
    let grow = |completions: i64, parallelism: i64| {
        refusals_of_change("jobs", &sent, |object| {
            object["spec"]["completions"] = json!(completions);
            object["spec"]["parallelism"] = json!(parallelism);
        })
    };
    assert_eq!(grow(4, 4), [""; 0]);
    assert_eq!(
        grow(4, 3),
        [
            "spec.completions: Invalid value: 4: can only be modified in tandem with spec.parallelism"
        ]
    );
}

#[test]
fn the_template_of_a_job_changes_only_before_it_starts_and_only_where_it_runs() {
    let image = |object: &mut Value| {
        object["spec"]["template"]["spec"]["containers"][0]["image"] = json!("y");
    };
    let place = |object: &mut Value| {
        let template = &mut object["spec"]["template"];
        template["spec"]["nodeSelector"] = json!({"zone": "z"});
        template["spec"]["affinity"] = json!({"nodeAffinity": {}});
        template["metadata"]["annotations"] = json!({"queue": "q"});
    };
    let running = job(json!({}));
    let waiting = job(json!({"suspend": true}));
    assert_eq!(refusals_of_change("jobs", &running, image).len(), 1);
    assert_eq!(refusals_of_change("jobs", &running, place).len(), 1);
    assert_eq!(refusals_of_change("jobs", &waiting, image).len(), 1);
    assert_eq!(refusals_of_change("jobs", &waiting, place), [""; 0]);

    // A job that ran and was suspended again may still have pods of the old template.
    let mut paused = created("jobs", &waiting);
    paused["status"]["startTime"] = json!("2026-01-01T00:00:00Z");
    let moved = updated("jobs", &paused, place);
    let mut problems = Problems::new();
    (rules("jobs").validate_update)(&moved, &paused, &mut problems);
    assert_eq!(problems.len(), 1);
}

#[test]
fn counts_in_the_status_of_a_job_are_not_negative() {
    let old = created("jobs", &job(json!({})));
    assert_eq!(
        refusals_of_status("jobs", &old, json!({"active": 1})),
        [""; 0]
    );
    assert_eq!(
        refusals_of_status("jobs", &old, json!({"failed": -1})),
        ["status.failed: Invalid value: -1: must be greater than or equal to 0"]
    );
}

fn cron_job(spec: Value) -> Value {
    let template = json!({"spec": {"template": pod_template("Never")}});
    let mut all = json!({"schedule": "*/5 * * * *", "jobTemplate": template});
    merge(&mut all, spec);
    json!({"metadata": {"name": "x1", "namespace": "default"}, "spec": all})
}

#[test]
fn cron_jobs_refuse_what_makes_no_sense() {
    let template = |spec: Value| {
        let mut all = json!({"template": pod_template("Never")});
        merge(&mut all, spec);
        json!({"jobTemplate": {"spec": all}})
    };
    for (spec, errors) in [
        (
            json!({"schedule": "soon"}),
            "spec.schedule: Invalid value: \"soon\": expected exactly 5 fields, found 1: [soon]",
        ),
        (
            json!({"schedule": "TZ=UTC * * * * *"}),
            "spec.schedule: Invalid value: \"TZ=UTC * * * * *\": cannot use TZ or CRON_TZ in schedule, use timeZone field instead",
        ),
        (
            json!({"timeZone": ""}),
            "spec.timeZone: Invalid value: \"\": timeZone must be nil or non-empty string",
        ),
        (
            json!({"timeZone": "Local"}),
            "spec.timeZone: Invalid value: \"Local\": timeZone must be an explicit time zone as defined in https://www.iana.org/time-zones",
        ),
        (
            json!({"timeZone": "../etc/passwd"}),
            "spec.timeZone: Invalid value: \"../etc/passwd\": unknown time zone",
        ),
        (
            json!({"failedJobsHistoryLimit": -1}),
            "spec.failedJobsHistoryLimit: Invalid value: -1: must be greater than or equal to 0",
        ),
        (
            template(json!({"selector": {}})),
            "spec.jobTemplate.spec.selector: Invalid value: {}: `selector` will be auto-generated",
        ),
        (
            template(json!({"manualSelector": true})),
            "spec.jobTemplate.spec.manualSelector: Unsupported value: true: supported values: \"nil\", \"false\"",
        ),
        (
            template(json!({"template": pod_template("Always")})),
            "spec.jobTemplate.spec.template.spec.restartPolicy: Required value: valid values: \"OnFailure\", \"Never\"",
        ),
    ] {
        assert_eq!(refusals("cronjobs", &cron_job(spec)), [errors]);
    }
}

#[test]
fn cron_jobs_with_zones_and_words_are_accepted() {
    for spec in [
        json!({}),
        json!({"schedule": "@hourly"}),
        json!({"timeZone": "Europe/Berlin"}),
        json!({"timeZone": "Etc/GMT+5"}),
    ] {
        assert_eq!(refusals("cronjobs", &cron_job(spec)), [""; 0]);
    }
}

#[test]
fn the_name_of_a_cron_job_leaves_room_for_its_jobs() {
    let mut sent = cron_job(json!({}));
    sent["metadata"]["name"] = json!("n".repeat(52));
    assert_eq!(refusals("cronjobs", &sent), [""; 0]);
    sent["metadata"]["name"] = json!("n".repeat(53));
    let errors = refusals("cronjobs", &sent);
    assert!(
        errors[0].ends_with("must be no more than 52 characters"),
        "{errors:?}"
    );
}

#[test]
fn a_deleted_job_leaves_its_pods_unless_told_otherwise() {
    assert!(rules("jobs").traits.orphan_by_default);
    assert!(!rules("cronjobs").traits.orphan_by_default);
}
