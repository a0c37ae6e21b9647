//! What a stream does and why it does nothing, as its source says in an annotation.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::options::{Architecture, Program, StreamOptions};

/// What a stream does, or what it waits for.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct StreamState {
    /// The name of the stream.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub stream: String,
    /// Whether it is a Stable stream.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub stable: bool,
    /// One CamelCase word.
    pub reason: String,
    /// The same for people.
    pub message: String,
    /// The newest release.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub newest: Option<String>,
    /// The newest accepted release.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub newest_accepted: Option<String>,
    /// When that was cut.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub newest_accepted_at: Option<Timestamp>,
    /// What keeps single releases from going on.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub problems: Vec<String>,
    /// What the controller that wrote this was started with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub controller: Option<ControllerSettings>,
}

/// What a controller was started with, as far as its decisions depend on it: `neap release plan` decides with
/// the same.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ControllerSettings {
    /// The namespaces of sources, targets and mirrors.
    pub release_namespaces: Vec<String>,
    /// Further namespaces that releases may be published to.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub publish_namespaces: Vec<String>,
    /// The namespace of Jobs.
    pub job_namespace: String,
    /// The namespace of ProwJobs.
    pub prow_namespace: String,
    /// The architecture of the releases.
    pub architecture: String,
    /// The registry of ImageStreams whose status names no public repository.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub registry: Option<String>,
    /// The suffix of the ImageStreams whose jobs also inform about Stable releases.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub art_suffix: String,
    /// Manifest lists are kept.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub manifest_list_mode: bool,
    /// Expired tags are marked and not removed.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub soft_delete: bool,
    /// Jobs use `oc`.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub oc: bool,
}

impl ControllerSettings {
    /// The settings that are part of these options.
    pub fn of(options: &StreamOptions) -> Self {
        Self {
            release_namespaces: options.release_namespaces.clone(),
            publish_namespaces: options.publish_namespaces.clone(),
            job_namespace: options.job_namespace.clone(),
            prow_namespace: options.prow_namespace.clone(),
            architecture: options.architecture.to_string(),
            registry: options.registry.clone(),
            art_suffix: options.art_suffix.clone(),
            manifest_list_mode: options.manifest_list_mode,
            soft_delete: options.soft_delete,
            oc: options.tools.program == Program::Oc,
        }
    }

    /// Options with these settings; all others have their defaults.
    pub fn options(&self) -> StreamOptions {
        let mut options = StreamOptions::new("", &self.job_namespace, &self.prow_namespace);
        options
            .release_namespaces
            .clone_from(&self.release_namespaces);
        options
            .publish_namespaces
            .clone_from(&self.publish_namespaces);
        options.architecture = self.architecture.parse().unwrap_or(Architecture::Amd64);
        options.registry.clone_from(&self.registry);
        options.art_suffix.clone_from(&self.art_suffix);
        options.manifest_list_mode = self.manifest_list_mode;
        options.soft_delete = self.soft_delete;
        if self.oc {
            options.tools.program = Program::Oc;
            options.tools.image = None;
        }
        options
    }
}

impl StreamState {
    /// A stream for this reason.
    pub fn new(reason: &str, message: impl Into<String>) -> Self {
        Self {
            reason: reason.to_owned(),
            message: message.into(),
            ..Self::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plan_decides_with_the_options_of_the_controller() {
        let mut options = StreamOptions::new("ocp", "ci-release", "ci");
        options.publish_namespaces = vec!["origin".to_owned()];
        options.registry = Some("reg.example".to_owned());
        options.architecture = Architecture::Multi;
        options.art_suffix = "-art-latest".to_owned();
        options.manifest_list_mode = true;
        options.soft_delete = true;
        options.tools.program = Program::Oc;
        options.tools.image = None;
        let text = serde_json::to_string(&ControllerSettings::of(&options)).unwrap();
        let read: ControllerSettings = serde_json::from_str(&text).unwrap();
        assert_eq!(read.options(), options);
    }

    #[test]
    fn the_state_of_an_older_version_is_read() {
        let text = r#"{"reason":"UpToDate","message":"m"}"#;
        let state: StreamState = serde_json::from_str(text).unwrap();
        assert_eq!(state, StreamState::new("UpToDate", "m"));
        assert_eq!(serde_json::to_string(&state).unwrap(), text);
    }
}
