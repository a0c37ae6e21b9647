//! The objects from which the files and the environment of a pod are built.

use std::{collections::BTreeMap, path::PathBuf};

use k8s_openapi::api::core::v1::{ConfigMap, Pod, Secret};

use super::pod::WaitingReason;

/// Objects of the pod's namespace that it refers to, in their current state. An object that is not
/// here does not exist.
#[derive(Debug, Clone, Default)]
pub struct PodSources {
    /// The pod, with its addresses in its status.
    pub pod: Pod,
    /// ConfigMaps by name.
    pub config_maps: BTreeMap<String, ConfigMap>,
    /// Secrets by name.
    pub secrets: BTreeMap<String, Secret>,
    /// The folders of claims by the name of the claim, or why there is none.
    pub claims: BTreeMap<String, Result<PathBuf, String>>,
    /// Tokens by audience, or why there is none; the empty audience is the API server's.
    pub tokens: BTreeMap<String, Result<String, String>>,
}

impl PodSources {
    /// The values of a ConfigMap; empty if it does not exist and is optional.
    pub(super) fn config_map(
        &self,
        name: &str,
        optional: Option<bool>,
    ) -> Result<BTreeMap<String, Vec<u8>>, WaitingReason> {
        let Some(map) = self.config_maps.get(name) else {
            return missing("configmap", name, optional);
        };
        let text = map.data.iter().flatten();
        let text = text.map(|(key, value)| (key.clone(), value.clone().into_bytes()));
        let binary = map.binary_data.iter().flatten();
        let binary = binary.map(|(key, value)| (key.clone(), value.0.clone()));
        Ok(text.chain(binary).collect())
    }

    /// The values of a Secret; empty if it does not exist and is optional.
    pub(super) fn secret(
        &self,
        name: &str,
        optional: Option<bool>,
    ) -> Result<BTreeMap<String, Vec<u8>>, WaitingReason> {
        let Some(secret) = self.secrets.get(name) else {
            return missing("secret", name, optional);
        };
        let data = secret.data.iter().flatten();
        Ok(data
            .map(|(key, value)| (key.clone(), value.0.clone()))
            .collect())
    }
}

fn missing(
    kind: &str,
    name: &str,
    optional: Option<bool>,
) -> Result<BTreeMap<String, Vec<u8>>, WaitingReason> {
    if optional == Some(true) {
        return Ok(BTreeMap::new());
    }
    Err(WaitingReason {
        reason: "CreateContainerConfigError",
        message: format!("{kind} \"{name}\" not found"),
    })
}
