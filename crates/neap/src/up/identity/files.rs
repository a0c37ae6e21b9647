//! The credentials on disk: found, made where missing, renewed where they end soon.

use std::{
    io,
    path::{Path, PathBuf},
};

use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use jiff::Timestamp;
use neap_pocket::{environment::Environment, identity::SigningKey};

use super::{
    super::private,
    Error, Identity, LONG, Origin, RENEW_BEFORE,
    authority::{self, Pair, Subject},
};

/// The files of an identity, at one moment.
pub(super) struct Files<'a> {
    /// None if nothing is kept: then nothing is found and nothing written.
    folder: Option<&'a Path>,
    now: Timestamp,
}

impl<'a> Files<'a> {
    pub(super) fn at(folder: Option<&'a Path>, now: Timestamp) -> Self {
        Self { folder, now }
    }

    /// Finds what is there, and makes the rest.
    pub(super) fn identity(
        &self,
        names: &[String],
        environment: &Environment,
    ) -> Result<Identity, Error> {
        if let Some(folder) = self.folder {
            private::create_folder(folder).map_err(|source| self.error("", source))?;
        }
        match self.load("ca.pem")? {
            Some(authority) if self.lasts(&authority)? => {
                self.complete(authority, names, environment)
            }
            _ => self.create(names, environment),
        }
    }

    fn create(&self, names: &[String], environment: &Environment) -> Result<Identity, Error> {
        let authority = authority::create(self.now, LONG)?;
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
            origin: Origin::Made,
        })
    }

    fn complete(
        &self,
        authority: Pair,
        names: &[String],
        environment: &Environment,
    ) -> Result<Identity, Error> {
        let mut origin = Origin::Found;
        let mut found_or_issued = |file, subject: &Subject, names: &[String]| {
            if let Some(pair) = self.load(file)?
                && self.lasts(&pair)?
                && pair
                    .holds(names)
                    .map_err(|source| self.damaged(file, source))?
            {
                return Ok::<_, Error>(pair);
            }
            origin = Origin::Renewed;
            self.issue(&authority, file, subject)
        };
        let serving = found_or_issued("serving.pem", &Subject::server(names), names)?;
        let admin = found_or_issued("admin.pem", &Subject::admin(), &[])?;
        let (token, kept) = self.token(environment)?;
        if !kept {
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

    fn issue(&self, authority: &Pair, file: &str, subject: &Subject) -> Result<Pair, Error> {
        let pair = authority.issue(subject, self.now)?;
        self.write(file, &pair.to_pem())?;
        Ok(pair)
    }

    /// The token, and whether it was there before.
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
            let made = authority::signing_key()?;
            self.write(FILE, &made)?;
            made
        };
        SigningKey::from_pem(&text).map_err(|source| Error::DamagedKey {
            path: self.path(FILE).unwrap_or_default(),
            source,
        })
    }

    fn load(&self, file: &str) -> Result<Option<Pair>, Error> {
        let text = self.read(file)?;
        text.map(|text| Pair::from_pem(&text).map_err(|source| self.damaged(file, source)))
            .transpose()
    }

    fn lasts(&self, pair: &Pair) -> Result<bool, Error> {
        Ok(pair.ends()?
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
