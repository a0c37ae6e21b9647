use super::*;
use crate::{api::Resharding, farm::settings::wanted_shards};

fn spec(replicas: i32) -> BuildbarnStorageSpec {
    BuildbarnStorageSpec {
        replicas: Some(replicas),
        resharding: Some(Resharding {
            window_seconds: Some(3600),
        }),
        ..BuildbarnStorageSpec::default()
    }
}

fn at(minutes: i64) -> Timestamp {
    Timestamp::from_second(minutes * 60).unwrap()
}

fn settled<'a>(
    status: Option<&'a StorageStatus>,
    spec: &'a BuildbarnStorageSpec,
    minutes: i64,
) -> StorageFacts<'a> {
    StorageFacts {
        status,
        spec,
        wanted: wanted_shards(spec),
        storage_settled: true,
        farm_settled: true,
        now: at(minutes),
    }
}

fn adopted(replicas: i32) -> StorageStatus {
    decide(&settled(None, &spec(replicas), 0)).status
}

#[test]
fn a_new_storage_has_the_shards_of_its_spec() {
    let status = adopted(2);
    assert_eq!(status.shards.len(), 2);
    let spec = spec(2);
    let again = decide(&settled(Some(&status), &spec, 1));
    assert_eq!(again.status, status);
    assert_eq!(again.refused, None);
}

#[test]
fn growth_is_staged_and_needs_no_acknowledgement() {
    use ReshardingStage::{Copying, Finishing, Provisioning};

    let (mut status, spec) = (adopted(2), spec(3));
    let mut stages = Vec::new();
    let mut decision = StorageDecision::default();
    for minute in [1, 2, 3, 4, 62, 63, 64, 65] {
        decision = decide(&settled(Some(&status), &spec, minute));
        assert_eq!(decision.refused, None);
        status = decision.status.clone();
        let stage = status.resharding.as_ref().map(|it| it.stage);
        stages.push((stage, status.shards.len()));
    }
    assert_eq!(
        stages,
        [
            (Some(Provisioning), 2),
            (Some(Copying), 3),
            (Some(Copying), 3),
            (Some(Copying), 3),
            (Some(Copying), 3),
            (Some(Finishing), 3),
            (None, 3),
            (None, 3),
        ]
    );
    assert!(decision.events.is_empty());
}

#[test]
fn clients_use_new_shards_only_when_they_are_ready() {
    let (status, spec) = (adopted(2), spec(3));
    let begun = decide(&settled(Some(&status), &spec, 1)).status;
    let mut facts = settled(Some(&begun), &spec, 2);
    facts.storage_settled = false;
    assert_eq!(decide(&facts).status, begun);
}

#[test]
fn the_window_begins_when_the_last_client_has_changed() {
    let (status, spec) = (adopted(2), spec(3));
    let begun = decide(&settled(Some(&status), &spec, 1)).status;
    let copying = decide(&settled(Some(&begun), &spec, 2)).status;
    let mut facts = settled(Some(&copying), &spec, 500);
    facts.farm_settled = false;
    assert_eq!(decide(&facts).status, copying);
    facts.farm_settled = true;
    let since = decide(&facts).status.resharding.unwrap().since;
    assert_eq!(since, Some(at(500)));
}

#[test]
fn what_loses_data_waits_for_an_acknowledgement_of_exactly_that() {
    let status = adopted(3);
    let mut shrunk = spec(2);
    let refused = decide(&settled(Some(&status), &shrunk, 1));
    let plan = refused.status.plan.clone().unwrap();
    assert!(!plan.safe);
    assert_eq!(plan.moved_percent, "33.3");
    assert!(refused.refused.unwrap().contains(&plan.id));
    assert_eq!(refused.status.shards.len(), 3);
    assert_eq!(refused.status.resharding, None);
    shrunk.acknowledged_plan = Some(plan.id.clone());
    assert!(
        decide(&settled(Some(&status), &shrunk, 1))
            .status
            .resharding
            .is_some()
    );
    // The same acknowledgement is not one of another change.
    shrunk.replicas = Some(1);
    assert!(
        decide(&settled(Some(&status), &shrunk, 1))
            .refused
            .is_some()
    );
}

#[test]
fn a_change_of_sizes_is_a_flush() {
    let status = adopted(2);
    let mut larger = spec(2);
    let store = crate::api::Store {
        size: Some("31Gi".to_owned()),
        ..crate::api::Store::default()
    };
    larger.stores = Some(crate::api::Stores {
        cas: Some(store),
        ..crate::api::Stores::default()
    });
    let decision = decide(&settled(Some(&status), &larger, 1));
    let plan = decision.status.plan.unwrap();
    assert!(plan.summary.contains("empties it"), "{}", plan.summary);
    larger.acknowledged_plan = Some(plan.id);
    let decision = decide(&settled(Some(&status), &larger, 1));
    assert_eq!(decision.refused, None);
    assert_eq!(decision.status.geometry, Some(geometry_hash(&larger)));
}

#[test]
fn new_keys_and_swapped_keys_are_not_safe() {
    let status = adopted(2);
    let shard = |key: &str| Shard {
        key: key.to_owned(),
        weight: 1,
    };
    for keys in [["x", "y"], ["1", "0"]] {
        let mut renamed = spec(2);
        renamed.shards = keys.iter().map(|key| shard(key)).collect();
        let decision = decide(&settled(Some(&status), &renamed, 1));
        assert!(decision.refused.is_some(), "{keys:?}");
    }
}

#[test]
fn a_change_can_be_taken_back_until_clients_use_it() {
    let (status, grown) = (adopted(2), spec(3));
    let begun = decide(&settled(Some(&status), &grown, 1)).status;
    let back = spec(2);
    let decision = decide(&settled(Some(&begun), &back, 2));
    assert_eq!(decision.status.resharding, None);
    assert_eq!(decision.status.shards.len(), 2);
}

#[test]
fn shards_with_a_users_own_configuration_are_staged_and_its_sizes_are_its_own() {
    let (status, mut shrunk) = (adopted(3), spec(1));
    shrunk.config_map_name = Some("mine".to_owned());
    let refused = decide(&settled(Some(&status), &shrunk, 1));
    assert!(refused.refused.is_some());
    assert_eq!(refused.status.shards.len(), 3);
    let mut grown = spec(4);
    grown.config_map_name = shrunk.config_map_name.clone();
    let decision = decide(&settled(Some(&status), &grown, 1));
    let stage = decision.status.resharding.map(|it| it.stage);
    assert_eq!(stage, Some(ReshardingStage::Provisioning));
    let mut larger = spec(3);
    larger.config_map_name = shrunk.config_map_name;
    larger.stores = Some(crate::api::Stores {
        ac: Some(crate::api::Store {
            size: Some("30Mi".to_owned()),
            ..crate::api::Store::default()
        }),
        ..crate::api::Stores::default()
    });
    let decision = decide(&settled(Some(&status), &larger, 1));
    assert_eq!(decision.refused, None);
    assert_eq!(decision.status.geometry, Some(geometry_hash(&larger)));
}

#[test]
fn the_recorded_hash_of_the_sizes_stays_the_same() {
    assert_eq!(geometry_hash(&spec(2)), "c70e0e6753");
}
