//! Why an attempt at a step failed.

use neap_kit::why::{Code, Coded};

use crate::{
    cloud_error::CloudError,
    cluster_api::ApiError,
    install::{InstallError, credentials::CredentialError},
};

/// Why an attempt failed.
#[derive(Debug, thiserror::Error)]
pub(super) enum StepError {
    #[error(transparent)]
    Store(#[from] neap_store::Error),
    #[error(transparent)]
    Api(#[from] ApiError),
    #[error(transparent)]
    Install(#[from] InstallError),
    #[error(transparent)]
    Credentials(#[from] CredentialError),
    #[error("{0}")]
    Told(CloudError),
    #[error("no Hive is configured: start the backend with --hive-kubeconfig")]
    NoInstaller,
    #[error("this version of the program has no step {0}")]
    Unknown(String),
}

impl Coded for StepError {
    fn code(&self) -> Code {
        Code(match self {
            Self::Store(neap_store::Error::LeaseLost(_)) => "NT-FLEET-0003",
            Self::Store(_) => "NT-FLEET-0001",
            Self::Api(_) => "NT-FLEET-0004",
            Self::Install(_) => "NT-FLEET-0005",
            Self::Credentials(_) => "NT-FLEET-0006",
            Self::Told(_) => "NT-FLEET-0007",
            Self::NoInstaller => "NT-FLEET-0008",
            Self::Unknown(_) => "NT-FLEET-0009",
        })
    }
}

impl StepError {
    pub(super) fn is_retryable(&self) -> bool {
        !matches!(
            self,
            Self::Told(_)
                | Self::NoInstaller
                | Self::Unknown(_)
                | Self::Store(neap_store::Error::LeaseLost(_))
        )
    }
}
