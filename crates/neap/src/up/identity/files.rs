//! The credentials on disk: loaded, created if missing, and renewed if they expire soon.

use std::{
    io,
    path::{Path, PathBuf},
};

use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use jiff::Timestamp;
use neap_pocket::{environment::Environment, identity::SigningKey};

use super::{
    super::private,
    CA_VALIDITY, Error, Identity, Origin, RENEW_BEFORE,
    authority::{self, CertificateWithKey, Subject},
};

/// The files of an identity, at one point in time.
pub(super) struct IdentityFiles<'a> {
    /// `None` if nothing is stored; then nothing is read or written.
    folder: Option<&'a Path>,
    now: Timestamp,
}

impl<'a> IdentityFiles<'a> {
    pub(super) fn at(folder: Option<&'a Path>, now: Timestamp) -> Self {
        Self { folder, now }
    }

    /// Loads the existing credentials and creates the rest.
    pub(super) fn identity(
        &self,
        names: &[String],
        environment: &Environment,
    ) -> Result<Identity, Error> {
        if let Some(folder) = self.folder {
            private::create_folder(folder).map_err(|source| self.error("", source))?;
        }
        match self.load("ca.pem")? {
            Some(authority) if self.is_fresh(&authority)? => {
                self.complete(authority, names, environment)
            }
            _ => self.create(names, environment),
        }
    }

    fn create(&self, names: &[String], environment: &Environment) -> Result<Identity, Error> {
        let authority = authority::create(self.now, CA_VALIDITY)?;
        let serving = self.issue(&authority, "serving.pem", &Subject::server(names))?;
        let admin = self.issue(&authority, "admin.pem", &Subject::admin())?;
        let (token, _) = self.token(environment)?;
        let signing_key = self.signing_key()?;
        self.write("ca.crt", authority.certificate())?;
        self.write("ca.pem", &authority.to_pem())?;
        Ok(Identity {
            authority,
            serving,
            admin,
            token,
            signing_key,
            origin: Origin::Created,
        })
    }

    fn complete(
        &self,
        authority: CertificateWithKey,
        names: &[String],
        environment: &Environment,
    ) -> Result<Identity, Error> {
        let mut origin = Origin::Loaded;
        let mut load_or_issue = |file, subject: &Subject, names: &[String]| {
            if let Some(pair) = self.load(file)?
                && self.is_fresh(&pair)?
                // One that was issued under a clock that was ahead is issued again.
                && pair.valid_from()? <= self.now
                && pair
                    .covers(names)
                    .map_err(|source| self.damaged(file, source))?
            {
                return Ok::<_, Error>(pair);
            }
            origin = Origin::Renewed;
            self.issue(&authority, file, subject)
        };
        let serving = load_or_issue("serving.pem", &Subject::server(names), names)?;
        let admin = load_or_issue("admin.pem", &Subject::admin(), &[])?;
        let (token, loaded) = self.token(environment)?;
        if !loaded {
            origin = Origin::NewToken;
        }
        let signing_key = self.signing_key()?;
        Ok(Identity {
            authority,
            serving,
            admin,
            token,
            signing_key,
            origin,
        })
    }

    fn issue(
        &self,
        authority: &CertificateWithKey,
        file: &str,
        subject: &Subject,
    ) -> Result<CertificateWithKey, Error> {
        let pair = authority.issue(subject, self.now)?;
        self.write(file, &pair.to_pem())?;
        Ok(pair)
    }

    /// The token, and whether it was loaded.
    fn token(&self, environment: &Environment) -> Result<(String, bool), Error> {
        if let Some(token) = self.read("token")?.map(|text| text.trim().to_owned())
            && !token.is_empty()
        {
            return Ok((token, true));
        }
        let mut bytes = [0; 32];
        environment.entropy.fill(&mut bytes);
        let token = URL_SAFE_NO_PAD.encode(bytes);
        self.write("token", &token)?;
        Ok((token, false))
    }

    /// The key that signs tokens of service accounts.
    fn signing_key(&self) -> Result<SigningKey, Error> {
        const FILE: &str = "service-accounts.pem";
        let text = if let Some(text) = self.read(FILE)? {
            text
        } else {
            let key = authority::signing_key()?;
            self.write(FILE, &key)?;
            key
        };
        SigningKey::from_pem(&text).map_err(|source| Error::DamagedKey {
            path: self.path(FILE).unwrap_or_default(),
            source,
        })
    }

    fn load(&self, file: &str) -> Result<Option<CertificateWithKey>, Error> {
        let text = self.read(file)?;
        text.map(|text| {
            CertificateWithKey::from_pem(&text).map_err(|source| self.damaged(file, source))
        })
        .transpose()
    }

    fn is_fresh(&self, pair: &CertificateWithKey) -> Result<bool, Error> {
        Ok(pair.expires_at()?
            > self
                .now
                .saturating_add(RENEW_BEFORE)
                .unwrap_or(Timestamp::MAX))
    }

    fn read(&self, file: &str) -> Result<Option<String>, Error> {
        let read = self.path(file).map(|path| private::read(&path));
        let text = read
            .transpose()
            .map_err(|source| self.error(file, source))?;
        Ok(text.flatten())
    }

    fn write(&self, file: &str, contents: &str) -> Result<(), Error> {
        self.path(file)
            .map_or(Ok(()), |path| private::write(&path, contents))
            .map_err(|source| self.error(file, source))
    }

    fn error(&self, file: &str, source: io::Error) -> Error {
        let path = self.path(file).unwrap_or_default();
        Error::File { path, source }
    }

    fn damaged(&self, file: &str, source: authority::Error) -> Error {
        let path = self.path(file).unwrap_or_default();
        Error::Damaged { path, source }
    }

    fn path(&self, file: &str) -> Option<PathBuf> {
        self.folder.map(|folder| folder.join(file))
    }
}
