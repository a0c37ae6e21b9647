//! Why a registry did not do what it was asked.

use std::{fmt, time::Duration};

use http::StatusCode;
use neap_kit::client;

use crate::oci::{
    digest::{self, Digest},
    manifest, platform,
    reference::ImageRef,
};

/// The part of an image that a request was about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum What {
    /// The registry as such.
    Registry,
    /// A token for the registry.
    Token,
    /// A manifest.
    Manifest,
    /// A blob: a configuration or a layer.
    Blob(Digest),
    /// An upload.
    Upload(Digest),
    /// The list of tags.
    Tags,
}

impl fmt::Display for What {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Registry => f.write_str("the registry"),
            Self::Token => f.write_str("the registry's token service"),
            Self::Manifest => f.write_str("the manifest"),
            Self::Blob(digest) => write!(f, "blob {digest}"),
            Self::Upload(digest) => write!(f, "the upload of {digest}"),
            Self::Tags => f.write_str("the list of tags"),
        }
    }
}

/// Why a registry did not do what it was asked. Each names the image.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// 401.
    #[error("{image}: {what}: the registry wants other credentials{hint}")]
    Unauthorized {
        /// The image.
        image: String,
        /// The part.
        what: What,
        /// Where credentials may be.
        hint: String,
    },
    /// 403.
    #[error("{image}: {what}: the credentials do not allow this")]
    Denied {
        /// The image.
        image: String,
        /// The part.
        what: What,
        /// The answer.
        #[source]
        source: Box<client::Error>,
    },
    /// 404.
    #[error("{image}: {what} does not exist")]
    NotFound {
        /// The image.
        image: String,
        /// The part.
        what: What,
    },
    /// Any other failure of a call.
    #[error("{image}: {what}")]
    Call {
        /// The image.
        image: String,
        /// The part.
        what: What,
        /// Why.
        #[source]
        source: Box<client::Error>,
    },
    /// The manifest cannot be used.
    #[error("{image}")]
    Manifest {
        /// The image.
        image: String,
        /// Why.
        #[source]
        source: manifest::Error,
    },
    /// No single image could be chosen from a list.
    #[error("{image}")]
    Platform {
        /// The image.
        image: String,
        /// Why.
        #[source]
        source: platform::Error,
    },
    /// The content is not what was asked for.
    #[error("{image}: {what}")]
    Content {
        /// The image.
        image: String,
        /// The part.
        what: What,
        /// Why.
        #[source]
        source: digest::Error,
    },
    /// The size is not that of the descriptor.
    #[error("{image}: {what} has {found} bytes, and its descriptor says {wanted}")]
    Size {
        /// The image.
        image: String,
        /// The part.
        what: What,
        /// The size that was announced.
        wanted: u64,
        /// The bytes that arrived, or that arrived until it was too many.
        found: u64,
    },
    /// It is larger than what is read.
    #[error("{image}: {what} has {size} bytes; at most {limit} are read")]
    TooLarge {
        /// The image.
        image: String,
        /// The part.
        what: What,
        /// The size.
        size: u64,
        /// The limit.
        limit: u64,
    },
    /// The registry's answer makes no sense.
    #[error("{image}: {what}: {reason}")]
    Protocol {
        /// The image.
        image: String,
        /// The part.
        what: What,
        /// What is wrong.
        reason: String,
    },
    /// A file of this machine.
    #[error("{image}: {what} cannot be read or stored on this machine")]
    Disk {
        /// The image.
        image: String,
        /// The part.
        what: What,
        /// Why.
        #[source]
        source: std::io::Error,
    },
}

impl Error {
    pub(super) fn not_found(image: &ImageRef, what: What) -> Self {
        let image = image.to_string();
        Self::NotFound { image, what }
    }

    pub(super) fn call(image: &ImageRef, what: What, source: client::Error) -> Self {
        Self::Call {
            image: image.to_string(),
            what,
            source: Box::new(source),
        }
    }

    pub(super) fn protocol(image: &ImageRef, what: What, reason: impl Into<String>) -> Self {
        Self::Protocol {
            image: image.to_string(),
            what,
            reason: reason.into(),
        }
    }

    /// The error that an answer without success stands for.
    pub(super) fn answered(
        image: &ImageRef,
        what: What,
        error: client::Error,
        helper: Option<String>,
    ) -> Self {
        match error.status() {
            Some(StatusCode::UNAUTHORIZED) => {
                let hint = helper.map(|name| format!("; they are kept by docker-credential-{name}, which is not run: log in with a file"));
                Self::Unauthorized {
                    image: image.to_string(),
                    what,
                    hint: hint.unwrap_or_default(),
                }
            }
            Some(StatusCode::FORBIDDEN) => Self::Denied {
                image: image.to_string(),
                what,
                source: Box::new(error),
            },
            Some(StatusCode::NOT_FOUND) => Self::not_found(image, what),
            _ => Self::call(image, what, error),
        }
    }

    /// Whether the registry may be spoken to by another scheme.
    pub(super) fn may_be_another_scheme(&self) -> bool {
        let Self::Call { source, .. } = self else {
            return false;
        };
        matches!(
            **source,
            client::Error::NotReached { .. }
                | client::Error::Untrusted { .. }
                | client::Error::Interrupted { .. }
        )
    }

    /// Whether the same request may succeed later although nothing was corrected.
    pub fn is_transient(&self) -> bool {
        match self {
            Self::Call { source, .. } => source.is_transient(),
            // A proxy or a broken connection may have cut or changed what a correct registry sent.
            Self::Content { .. } | Self::Size { .. } => true,
            _ => false,
        }
    }

    /// Whether the registry could not answer for a moment, whatever it was asked for.
    pub fn is_of_the_registry(&self) -> bool {
        matches!(self, Self::Call { .. }) && self.is_transient()
    }

    /// The time after which the registry wants to see the next request.
    pub fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::Call { source, .. } => source.retry_after(),
            _ => None,
        }
    }

    /// A word for conditions.
    pub fn reason(&self) -> &'static str {
        match self {
            Self::Unauthorized { .. } => "Unauthorized",
            Self::Denied { .. } => "Forbidden",
            Self::NotFound { .. } => "NotFound",
            Self::Call { source, .. } => match source.status() {
                Some(StatusCode::TOO_MANY_REQUESTS) => "TooManyRequests",
                Some(_) => "RegistryError",
                None if source.is_transient() => "RegistryUnreachable",
                None => "RegistryNotTrusted",
            },
            Self::Manifest { .. } | Self::Platform { .. } => "InvalidManifest",
            Self::Content { .. } | Self::Size { .. } => "DigestMismatch",
            Self::TooLarge { .. } => "TooLarge",
            Self::Protocol { .. } => "RegistryError",
            Self::Disk { .. } => "InternalError",
        }
    }
}
