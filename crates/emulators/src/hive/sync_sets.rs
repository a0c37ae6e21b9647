//! Which SyncSets concern a cluster, and what its ClusterSync says about them. Pure.

use std::collections::BTreeMap;

use jiff::Timestamp;
use k8s_openapi::{api::core::v1::Secret, apimachinery::pkg::apis::meta::v1::LabelSelector};
use kube::{
    ResourceExt,
    core::{Selector, SelectorExt},
};
use serde_json::{Value, json};

use super::{
    ClusterDeployment,
    api::{SecretMapping, SelectorSyncSet, SyncSet, SyncSetContent},
};

/// Whose result an entry of a ClusterSync is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Origin {
    SyncSet,
    SelectorSyncSet,
}

impl Origin {
    pub(super) const ALL: [Self; 2] = [Self::SyncSet, Self::SelectorSyncSet];

    /// The list in the status of a ClusterSync.
    pub(super) fn list(self) -> &'static str {
        match self {
            Self::SyncSet => "syncSets",
            Self::SelectorSyncSet => "selectorSyncSets",
        }
    }
}

/// What a cluster is to have because of one set.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Wanted {
    pub(super) origin: Origin,
    pub(super) name: String,
    pub(super) generation: i64,
    pub(super) content: SyncSetContent,
}

/// What came of one set.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Synced {
    pub(super) wanted: Wanted,
    /// Why it failed, if it did.
    pub(super) failure: Option<String>,
}

/// The sets that name the deployment or select its labels, by origin and name.
pub(super) fn wanted<'a>(
    deployment: &ClusterDeployment,
    sets: impl Iterator<Item = &'a SyncSet>,
    selector_sets: impl Iterator<Item = &'a SelectorSyncSet>,
) -> Vec<Wanted> {
    let (namespace, name) = (deployment.namespace(), deployment.name_any());
    let named = sets.filter(|set| {
        let references = &set.spec.cluster_deployment_refs;
        set.namespace() == namespace && references.iter().any(|it| it["name"] == *name)
    });
    let named = named.map(|set| Wanted {
        origin: Origin::SyncSet,
        name: set.name_any(),
        generation: set.metadata.generation.unwrap_or_default(),
        content: set.spec.content.clone(),
    });
    let selecting = selector_sets.filter(|set| {
        let selector = set.spec.cluster_deployment_selector.clone();
        selects(selector.unwrap_or_default(), deployment.labels())
    });
    let selecting = selecting.map(|set| Wanted {
        origin: Origin::SelectorSyncSet,
        name: set.name_any(),
        generation: set.metadata.generation.unwrap_or_default(),
        content: set.spec.content.clone(),
    });
    let mut all: Vec<_> = named.chain(selecting).collect();
    all.sort_by(|one, other| (one.origin, &one.name).cmp(&(other.origin, &other.name)));
    all
}

/// A selector that says nothing selects every cluster, and an invalid one selects none.
fn selects(selector: LabelSelector, labels: &BTreeMap<String, String>) -> bool {
    Selector::try_from(selector).is_ok_and(|selector| selector.matches(labels))
}

/// What identifies an object in a cluster.
pub(super) fn reference(object: &Value) -> Value {
    let mut reference = json!({
        "apiVersion": object["apiVersion"],
        "kind": object["kind"],
        "name": object["metadata"]["name"],
    });
    if let Some(namespace) = object["metadata"]["namespace"].as_str() {
        reference["namespace"] = namespace.into();
    }
    reference
}

/// The references to all that a set brings into a cluster.
fn references(content: &SyncSetContent) -> impl Iterator<Item = Value> {
    let resources = content.resources.iter().map(reference);
    let secrets = content.secret_mappings.iter().map(|mapping| {
        let target = &mapping.target_ref;
        reference(&json!({
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": {"name": target.name, "namespace": target.namespace},
        }))
    });
    resources.chain(secrets)
}

/// The namespace of the Secret that a mapping copies. A SyncSet copies only what is in its own namespace:
/// who may write there could read every Secret of Hive otherwise.
pub(super) fn source_namespace<'a>(
    wanted: &Wanted,
    mapping: &'a SecretMapping,
    own: &'a str,
) -> Result<&'a str, String> {
    let source = &mapping.source_ref;
    match (wanted.origin, source.namespace.as_str()) {
        (Origin::SyncSet, "") => Ok(own),
        (Origin::SyncSet, named) if named == own => Ok(own),
        (Origin::SyncSet, named) => Err(format!(
            "the source is in the namespace {named:?}, and a SyncSet copies only from its own"
        )),
        (Origin::SelectorSyncSet, "") => {
            Err("the source has no namespace, which a SelectorSyncSet must name".to_owned())
        }
        (Origin::SelectorSyncSet, named) => Ok(named),
    }
}

/// The copy of a Secret: its content, and nothing of the object that it was.
pub(super) fn copied(source: &Secret, mapping: &SecretMapping) -> Value {
    let target = &mapping.target_ref;
    let mut copy = json!({
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": target.name, "namespace": target.namespace},
        "data": source.data,
    });
    if let Some(kind) = &source.type_ {
        copy["type"] = kind.clone().into();
    }
    copy
}

/// Objects that sets of the mode Sync have applied and want no more.
pub(super) fn outdated(status: &Value, wanted: &[Wanted]) -> Vec<Value> {
    let still: Vec<_> = wanted
        .iter()
        .flat_map(|set| references(&set.content))
        .collect();
    let lists = Origin::ALL.iter().map(|origin| &status[origin.list()]);
    let entries = lists.filter_map(Value::as_array).flatten();
    let applied = entries.filter_map(|entry| entry["resourcesToDelete"].as_array());
    let applied = applied.flatten().filter(|it| !still.contains(it));
    applied.cloned().collect()
}

/// The status of the ClusterSync. Times of results that are as before stay.
pub(super) fn status(before: &Value, synced: &[Synced], now: Timestamp) -> Value {
    let mut status = json!({});
    for origin in Origin::ALL {
        let of = synced.iter().filter(|it| it.wanted.origin == origin);
        let entries: Vec<_> = of.map(|it| entry(before, it, now)).collect();
        if !entries.is_empty() {
            status[origin.list()] = entries.into();
        }
    }
    let failed: Vec<_> = synced
        .iter()
        .filter(|it| it.failure.is_some())
        .map(|it| it.wanted.name.as_str())
        .collect();
    let (is_failed, reason) = if failed.is_empty() {
        ("False", "Success")
    } else {
        ("True", "Failure")
    };
    let message = if failed.is_empty() {
        "All SyncSets and SelectorSyncSets have been applied to the cluster".to_owned()
    } else {
        format!("these failed: {}", failed.join(", "))
    };
    let old = &before["conditions"][0];
    let since = if old["status"] == is_failed && old["message"] == *message {
        old["lastTransitionTime"].clone()
    } else {
        now.to_string().into()
    };
    status["conditions"] = json!([{
        "type": "Failed", "status": is_failed, "reason": reason, "message": message,
        "lastTransitionTime": since, "lastProbeTime": since,
    }]);
    let first = &before["firstSuccessTime"];
    if first.is_string() {
        status["firstSuccessTime"] = first.clone();
    } else if failed.is_empty() {
        status["firstSuccessTime"] = now.to_string().into();
    }
    status
}

fn entry(before: &Value, synced: &Synced, now: Timestamp) -> Value {
    let Wanted {
        origin,
        name,
        generation,
        content,
    } = &synced.wanted;
    let old = before[origin.list()].as_array();
    let old = old.and_then(|all| all.iter().find(|it| it["name"] == **name));
    let old = old.unwrap_or(&Value::Null);
    let result = if synced.failure.is_some() {
        "Failure"
    } else {
        "Success"
    };
    let mut entry = json!({
        "name": name,
        "observedGeneration": generation,
        "result": result,
        "lastTransitionTime": now.to_string(),
    });
    let is_as_before = old["result"] == result
        && old["observedGeneration"] == *generation
        && old["failureMessage"].as_str() == synced.failure.as_deref();
    if is_as_before {
        entry["lastTransitionTime"] = old["lastTransitionTime"].clone();
    }
    if let Some(failure) = &synced.failure {
        entry["failureMessage"] = failure.clone().into();
    }
    if old["firstSuccessTime"].is_string() {
        entry["firstSuccessTime"] = old["firstSuccessTime"].clone();
    } else if synced.failure.is_none() {
        entry["firstSuccessTime"] = now.to_string().into();
    }
    if content.resource_apply_mode == "Sync" {
        entry["resourcesToDelete"] = references(content).collect();
    }
    entry
}

#[cfg(test)]
mod tests {
    use super::*;

    fn deployment(labels: &Value) -> ClusterDeployment {
        serde_json::from_value(json!({
            "apiVersion": "hive.openshift.io/v1", "kind": "ClusterDeployment",
            "metadata": {"namespace": "aro-1", "name": "cluster", "labels": labels},
            "spec": {},
        }))
        .unwrap()
    }

    fn set(namespace: &str, name: &str, of: &str) -> SyncSet {
        serde_json::from_value(json!({
            "apiVersion": "hive.openshift.io/v1", "kind": "SyncSet",
            "metadata": {"namespace": namespace, "name": name, "generation": 2},
            "spec": {
                "clusterDeploymentRefs": [{"name": of}], "resourceApplyMode": "Sync",
                "resources": [{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}],
            },
        }))
        .unwrap()
    }

    fn selecting(name: &str, selector: &Value) -> SelectorSyncSet {
        serde_json::from_value(json!({
            "apiVersion": "hive.openshift.io/v1", "kind": "SelectorSyncSet",
            "metadata": {"name": name},
            "spec": {"clusterDeploymentSelector": selector, "resources": []},
        }))
        .unwrap()
    }

    #[test]
    fn sets_concern_a_cluster_by_name_or_by_label() {
        let sets = [
            set("aro-1", "b", "cluster"),
            set("aro-1", "a", "cluster"),
            set("aro-1", "c", "other"),
            set("aro-2", "d", "cluster"),
        ];
        let selector_sets = [
            selecting("all", &json!({})),
            selecting("east", &json!({"matchLabels": {"region": "east"}})),
            selecting("west", &json!({"matchLabels": {"region": "west"}})),
            selecting(
                "invalid",
                &json!({"matchExpressions": [{"key": "a", "operator": "Odd"}]}),
            ),
        ];
        let east = deployment(&json!({"region": "east"}));
        let wanted = wanted(&east, sets.iter(), selector_sets.iter());
        let names: Vec<_> = wanted.iter().map(|it| &*it.name).collect();
        assert_eq!(names, ["a", "b", "all", "east"]);
    }

    #[test]
    fn a_status_keeps_times_until_a_result_changes() {
        let (first, later): (Timestamp, Timestamp) = (
            "2026-01-01T00:00:00Z".parse().unwrap(),
            "2026-01-02T00:00:00Z".parse().unwrap(),
        );
        let cluster = deployment(&json!({}));
        let one = set("aro-1", "a", "cluster");
        let mut synced: Vec<_> = wanted(&cluster, [&one].into_iter(), std::iter::empty())
            .into_iter()
            .map(|wanted| Synced {
                wanted,
                failure: None,
            })
            .collect();
        let before = status(&Value::Null, &synced, first);
        assert_eq!(before["syncSets"][0]["result"], "Success");
        assert_eq!(before["conditions"][0]["status"], "False");
        assert_eq!(status(&before, &synced, later), before);
        synced[0].failure = Some("no such kind".to_owned());
        let failed = status(&before, &synced, later);
        assert_eq!(failed["syncSets"][0]["failureMessage"], "no such kind");
        assert_eq!(
            failed["syncSets"][0]["lastTransitionTime"],
            later.to_string()
        );
        assert_eq!(failed["firstSuccessTime"], first.to_string());
        assert_eq!(failed["conditions"][0]["status"], "True");
    }

    fn mapping(source: &Value) -> SecretMapping {
        let target = json!({"name": "pull", "namespace": "openshift-config"});
        serde_json::from_value(json!({"sourceRef": source, "targetRef": target})).unwrap()
    }

    #[test]
    fn a_sync_set_copies_secrets_only_from_its_own_namespace() {
        let wanted_by = |origin| Wanted {
            origin,
            name: "a".to_owned(),
            generation: 1,
            content: SyncSetContent::default(),
        };
        let (set, selector) = (
            wanted_by(Origin::SyncSet),
            wanted_by(Origin::SelectorSyncSet),
        );
        let own = "aro-1";
        let plain = mapping(&json!({"name": "s"}));
        let same = mapping(&json!({"name": "s", "namespace": "aro-1"}));
        let other = mapping(&json!({"name": "s", "namespace": "aro-2"}));
        assert_eq!(source_namespace(&set, &plain, own), Ok("aro-1"));
        assert_eq!(source_namespace(&set, &same, own), Ok("aro-1"));
        source_namespace(&set, &other, own).unwrap_err();
        assert_eq!(source_namespace(&selector, &other, own), Ok("aro-2"));
        source_namespace(&selector, &plain, own).unwrap_err();
    }

    #[test]
    fn a_copy_has_the_content_of_a_secret_and_is_outdated_with_its_mapping() {
        let source: Secret = serde_json::from_value(json!({
            "metadata": {
                "name": "s", "namespace": "aro-1", "uid": "7", "resourceVersion": "9",
                "labels": {"of": "hive"},
            },
            "type": "kubernetes.io/dockerconfigjson", "data": {"a": "aHVzaA=="},
        }))
        .unwrap();
        let mapping = mapping(&json!({"name": "s"}));
        let target = json!({"name": "pull", "namespace": "openshift-config"});
        assert_eq!(
            copied(&source, &mapping),
            json!({
                "apiVersion": "v1", "kind": "Secret", "metadata": target,
                "type": "kubernetes.io/dockerconfigjson", "data": {"a": "aHVzaA=="},
            })
        );
        let wanted = Wanted {
            origin: Origin::SyncSet,
            name: "a".to_owned(),
            generation: 1,
            content: SyncSetContent {
                resource_apply_mode: "Sync".to_owned(),
                secret_mappings: vec![mapping],
                ..SyncSetContent::default()
            },
        };
        let synced = [Synced {
            wanted: wanted.clone(),
            failure: None,
        }];
        let status = status(&Value::Null, &synced, Timestamp::UNIX_EPOCH);
        assert_eq!(outdated(&status, &[wanted]), [Value::Null; 0]);
        assert_eq!(outdated(&status, &[])[0]["name"], "pull");
        assert!(!status.to_string().contains("aHVzaA"));
    }

    #[test]
    fn what_a_set_of_the_mode_sync_wants_no_more_is_outdated() {
        let cluster = deployment(&json!({}));
        let one = set("aro-1", "a", "cluster");
        let synced: Vec<_> = wanted(&cluster, [&one].into_iter(), std::iter::empty())
            .into_iter()
            .map(|wanted| Synced {
                wanted,
                failure: None,
            })
            .collect();
        let status = status(&Value::Null, &synced, Timestamp::UNIX_EPOCH);
        let still: Vec<_> = synced.into_iter().map(|it| it.wanted).collect();
        assert_eq!(outdated(&status, &still), [Value::Null; 0]);
        let gone = outdated(&status, &[]);
        assert_eq!(
            gone,
            [json!({"apiVersion": "v1", "kind": "Namespace", "name": "a"})]
        );
    }
}
