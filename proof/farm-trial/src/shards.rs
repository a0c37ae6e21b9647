//! Storage that grows while its farm runs: shards are provisioned, copied to, and used.

use std::time::Duration;

use neap_trial::{UserRequest, Workload};
use serde_json::json;

use crate::{
    life::{STORAGE, components},
    processes::{self, Replicas, asking},
};

/// How long blobs are copied.
const WINDOW_SECONDS: u64 = 600;

/// The farm, and the growth of its storage.
pub fn workload() -> Workload {
    processes::workload("farm-shards", Replicas::One, asking)
        .step("create", components(2))
        .step(
            "storage grows",
            [UserRequest::Patch(
                STORAGE,
                json!({"spec": {"replicas": 2, "resharding": {"windowSeconds": WINDOW_SECONDS}}}),
            )],
        )
        .until(Duration::from_mins(45))
        .step("storage is deleted", [UserRequest::Delete(STORAGE)])
}

#[cfg(test)]
mod tests {
    use neap_trial::proof;

    use super::*;
    use crate::life::tests::every;

    #[test]
    fn growing_storage_survives_a_sample_of_faults() -> Result<(), proof::Failure> {
        let every = every(3499);
        let faults = proof::every_nth_fault(&workload(), every)?;
        assert!(faults > 0, "no fault struck");
        Ok(())
    }
}
