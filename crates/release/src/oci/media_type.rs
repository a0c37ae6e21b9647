//! Media types of manifests, configurations and layers, in their two families.

/// Docker's image manifest.
pub const DOCKER_MANIFEST: &str = "application/vnd.docker.distribution.manifest.v2+json";
/// Docker's manifest list.
pub const DOCKER_LIST: &str = "application/vnd.docker.distribution.manifest.list.v2+json";
/// Docker's image configuration.
pub const DOCKER_CONFIG: &str = "application/vnd.docker.container.image.v1+json";
/// Docker's layers.
pub const DOCKER_LAYER: &str = "application/vnd.docker.image.rootfs.diff.tar.gzip";
/// The image manifest of the OCI.
pub const OCI_MANIFEST: &str = "application/vnd.oci.image.manifest.v1+json";
/// The list of manifests of the OCI.
pub const OCI_INDEX: &str = "application/vnd.oci.image.index.v1+json";
/// The image configuration of the OCI.
pub const OCI_CONFIG: &str = "application/vnd.oci.image.config.v1+json";
/// Layers of the OCI.
pub const OCI_LAYER: &str = "application/vnd.oci.image.layer.v1.tar+gzip";

/// What we ask registries for.
pub const ACCEPTED: [&str; 4] = [OCI_MANIFEST, OCI_INDEX, DOCKER_MANIFEST, DOCKER_LIST];

/// Manifests, configurations and layers come in two families, which are not mixed in one image.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Family {
    /// Docker, schema 2.
    Docker,
    /// The OCI.
    Oci,
}

impl Family {
    /// The family of a manifest.
    pub fn of(media_type: &str) -> Self {
        if media_type.starts_with("application/vnd.oci.") {
            Self::Oci
        } else {
            Self::Docker
        }
    }

    /// Its image manifest.
    pub fn manifest(self) -> &'static str {
        match self {
            Self::Docker => DOCKER_MANIFEST,
            Self::Oci => OCI_MANIFEST,
        }
    }

    /// Its configuration.
    pub fn config(self) -> &'static str {
        match self {
            Self::Docker => DOCKER_CONFIG,
            Self::Oci => OCI_CONFIG,
        }
    }

    /// Its gzip layer.
    pub fn layer(self) -> &'static str {
        match self {
            Self::Docker => DOCKER_LAYER,
            Self::Oci => OCI_LAYER,
        }
    }
}

/// Whether it is a list of manifests.
pub fn is_list(media_type: &str) -> bool {
    matches!(media_type, DOCKER_LIST | OCI_INDEX)
}
