//! Empty lists and maps.

use super::*;

/// Where nothing may be set, an empty list counts as set; everywhere else it is absent.
#[test]
fn empty_lists_are_kept_to_be_refused() {
    for (pointer, field, kept) in [
        ("/spec/ephemeralContainers/0", "ports", true),
        ("/spec/ephemeralContainers/0", "resizePolicy", true),
        ("/spec/ephemeralContainers/0", "restartPolicyRules", true),
        ("/spec/ephemeralContainers/0", "env", false),
        ("/spec/ephemeralContainers/0/resources", "claims", true),
        ("/spec/containers/0", "ports", false),
        ("/spec/containers/0/resources", "claims", false),
        ("/spec/resources", "claims", true),
        ("/metadata", "managedFields", true),
        ("/metadata", "finalizers", false),
    ] {
        let container = json!([{"name": "c", "resources": {}}]);
        let spec =
            json!({"containers": container, "ephemeralContainers": container, "resources": {}});
        let mut pod = json!({"metadata": {"name": "p"}, "spec": spec});
        pod.pointer_mut(pointer).unwrap()[field] = json!([]);
        let read = conformed("core.v1.Pod", &pod);
        let found = read.pointer(&format!("{pointer}/{field}")).is_some();
        assert_eq!(found, kept, "{pointer} {field}: {read}");
    }
    let amounts = json!([{"name": "c", "resources": {"limits": {}}}]);
    let read = conformed(
        "core.v1.Pod",
        &json!({"spec": {"containers": amounts, "ephemeralContainers": amounts}}),
    );
    for (containers, kept) in [("containers", false), ("ephemeralContainers", true)] {
        let limits = format!("/spec/{containers}/0/resources/limits");
        assert_eq!(read.pointer(&limits).is_some(), kept, "{read}");
    }
}

#[test]
fn a_template_has_no_managers_to_forget() {
    let template = json!({"metadata": {"name": "t", "managedFields": []}, "spec": {}});
    let read = conformed(
        "apps.v1.Deployment",
        &json!({"spec": {"template": template}}),
    );
    assert!(
        read["spec"]["template"]["metadata"]
            .get("managedFields")
            .is_none(),
        "{read}"
    );
}
