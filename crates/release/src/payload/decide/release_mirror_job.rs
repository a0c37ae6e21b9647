//! Which Job mirrors the image, if any does.

use super::Draft;
use crate::api::{CreationJobCoordinates, ReleaseJobResult};

pub(super) fn decide(draft: &mut Draft<'_>) {
    let known = &draft.status.release_mirror_job_result.coordinates;
    if !known.name.is_empty() && !known.namespace.is_empty() {
        return;
    }
    let config = &draft.facts.payload.spec.payload_creation_config;
    let wanted = &config.release_mirror_coordinates;
    draft.status.release_mirror_job_result = ReleaseJobResult {
        coordinates: CreationJobCoordinates {
            name: wanted.release_mirror_job_name.clone(),
            namespace: wanted.namespace.clone(),
        },
        ..ReleaseJobResult::default()
    };
}
