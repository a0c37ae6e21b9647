//! The pod spec and the pod template: defaults and rules shared by pods and all workload kinds.
//!
//! Enumerations and plainly required fields are judged from the schema by the kind-independent
//! walkers; here are the rules a schema cannot say.

mod defaults;

use serde_json::Value;

pub use defaults::{default_pod_spec, default_pod_template};

use crate::status::Problems;

/// Rules on a pod template of a workload; `path` is where it is, such as `spec.template`.
pub fn validate_pod_template(template: &Value, path: &str, problems: &mut Problems) {
    validate_pod_spec(&template["spec"], &format!("{path}.spec"), problems);
}

/// Rules on a pod spec; `path` is where it is, such as `spec`.
pub fn validate_pod_spec(_spec: &Value, _path: &str, _problems: &mut Problems) {}
