//! The ConfigMaps with which callers are checked: authorities of certificates, or keys of tokens.

use k8s_openapi::api::core::v1::ConfigMap;

use crate::farm::objects::hash_of;

/// What a component authenticates its callers with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TrustConfig {
    /// The ConfigMap does not exist.
    Missing,
    /// The ConfigMap does not have the key.
    MissingKey,
    /// The key exists.
    Present {
        /// A hash of its content, so that a change rolls the pods out.
        hash: String,
    },
}

impl TrustConfig {
    pub(super) fn of(config_map: Option<&ConfigMap>, key: &str) -> Self {
        let Some(config_map) = config_map else {
            return Self::Missing;
        };
        let text = config_map.data.as_ref().and_then(|it| it.get(key));
        let bytes = || Some(config_map.binary_data.as_ref()?.get(key)?.0.as_slice());
        match text.map(String::as_bytes).or_else(bytes) {
            Some(content) => Self::Present {
                hash: hash_of(content),
            },
            None => Self::MissingKey,
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_key_with_bytes_is_a_key() {
        let of = |field: &str, value: &str| {
            let object = json!({"metadata": {"name": "trust"}, field: {"ca.crt": value}});
            let config_map: ConfigMap = serde_json::from_value(object).unwrap();
            TrustConfig::of(Some(&config_map), "ca.crt")
        };
        assert_eq!(of("data", "trusted"), of("binaryData", "dHJ1c3RlZA=="));
        assert_ne!(of("data", "trusted"), of("data", "other"));
        // Bytes that are no text differ, too.
        assert_ne!(of("binaryData", "/w=="), of("binaryData", "/g=="));
        assert_eq!(TrustConfig::of(None, "ca.crt"), TrustConfig::Missing);
        let empty = ConfigMap::default();
        let found = TrustConfig::of(Some(&empty), "ca.crt");
        assert_eq!(found, TrustConfig::MissingKey);
    }
}
