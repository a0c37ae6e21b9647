//! Which Job creates the image.

use super::Draft;
use crate::api::{CreationJobCoordinates, ReleaseJobResult};

pub(super) fn decide(draft: &mut Draft<'_>) {
    let known = &draft.status.release_creation_job_result.coordinates;
    if !known.name.is_empty() && !known.namespace.is_empty() {
        return;
    }
    let config = &draft.facts.payload.spec.payload_creation_config;
    let wanted = &config.release_creation_coordinates;
    draft.status.release_creation_job_result = ReleaseJobResult {
        coordinates: CreationJobCoordinates {
            name: wanted.release_creation_job_name.clone(),
            namespace: wanted.namespace.clone(),
        },
        ..ReleaseJobResult::default()
    };
}
