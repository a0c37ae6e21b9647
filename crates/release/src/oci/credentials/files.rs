//! Where files with credentials lie.

use std::path::{Path, PathBuf};

use super::{Credentials, Error, MAX_FILE};

/// What decides where files are looked for.
#[derive(Debug, Clone, Default)]
pub struct Environment {
    /// `REGISTRY_AUTH_FILE`.
    pub registry_auth_file: Option<PathBuf>,
    /// `XDG_RUNTIME_DIR`.
    pub runtime_dir: Option<PathBuf>,
    /// `XDG_CONFIG_HOME`.
    pub config_home: Option<PathBuf>,
    /// `DOCKER_CONFIG`.
    pub docker_config: Option<PathBuf>,
    /// `HOME`.
    pub home: Option<PathBuf>,
    /// The user's number.
    pub uid: Option<u32>,
}

/// Why a file was not read.
#[derive(Debug, thiserror::Error)]
pub enum FileError {
    /// It cannot be read.
    #[error("the credentials in {path} cannot be read")]
    Io {
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// It is too large.
    #[error("{0} is too large for a file with credentials")]
    TooLarge(PathBuf),
    /// Its content is not understood.
    #[error("the credentials in {path} are not understood")]
    Content {
        /// The file.
        path: PathBuf,
        /// Why.
        source: Error,
    },
}

/// The files that are read, the preferred first. A file that the user names is the only one.
pub fn candidates(environment: &Environment, named: Option<&Path>) -> Vec<PathBuf> {
    if let Some(named) = named.or(environment.registry_auth_file.as_deref()) {
        return vec![named.to_owned()];
    }
    let auth = "containers/auth.json";
    let uid = environment.uid;
    let run = uid.map(|uid| PathBuf::from(format!("/run/containers/{uid}/auth.json")));
    let home = environment.home.as_deref();
    let config = environment.config_home.clone();
    let config = config.or_else(|| home.map(|home| home.join(".config")));
    let docker = environment.docker_config.clone();
    let docker = docker.or_else(|| home.map(|home| home.join(".docker")));
    [
        environment.runtime_dir.as_ref().map(|dir| dir.join(auth)),
        run,
        config.map(|dir| dir.join(auth)),
        docker.map(|dir| dir.join("config.json")),
        home.map(|home| home.join(".dockercfg")),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// Reads the files. One that the user named must exist; of the others, those that do.
pub fn load(environment: &Environment, named: Option<&Path>) -> Result<Credentials, FileError> {
    let must_exist = named.is_some();
    let mut credentials = Credentials::none();
    for path in candidates(environment, named) {
        match read(&path) {
            Ok(found) => credentials = credentials.then(found),
            Err(FileError::Io { source, .. })
                if !must_exist && source.kind() == std::io::ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
    }
    Ok(credentials)
}

fn read(path: &Path) -> Result<Credentials, FileError> {
    let failed = |source| FileError::Io {
        path: path.to_owned(),
        source,
    };
    if std::fs::metadata(path).map_err(failed)?.len() > MAX_FILE {
        return Err(FileError::TooLarge(path.to_owned()));
    }
    let text = std::fs::read_to_string(path).map_err(failed)?;
    let old = path.file_name().is_some_and(|name| name == ".dockercfg");
    let parsed = if old {
        Credentials::parse_old(&text)
    } else {
        Credentials::parse(&text)
    };
    parsed.map_err(|source| FileError::Content {
        path: path.to_owned(),
        source,
    })
}
