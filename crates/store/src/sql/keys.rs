//! The fingerprints of sealing keys, which the database keeps.
//!
//! Two processes that seal with different keys of one version could not read each other's secrets. So the first
//! process that uses a version records the fingerprint of its key, and one with another key is refused.

use sqlx::Row;

use super::{Sql, unavailable};
use crate::error::Error;

/// How the name of a fingerprint begins in `neap_meta`.
const PREFIX: &str = "key:";

impl Sql {
    /// Whether the database has a fingerprint, of any version.
    pub(crate) async fn knows_keys(&self) -> Result<bool, Error> {
        let rows = sqlx::query("SELECT name FROM neap_meta")
            .fetch_all(&self.reader)
            .await
            .map_err(unavailable)?;
        let mut names = rows.iter().map(|row| row.get::<String, _>(0));
        Ok(names.any(|name| name.starts_with(PREFIX)))
    }

    /// Records the fingerprints of versions that the database does not know, and refuses the others if they
    /// differ.
    pub(crate) async fn register_keys<'a>(
        &self,
        keys: impl Iterator<Item = (&'a str, i64)>,
    ) -> Result<(), Error> {
        for (version, fingerprint) in keys {
            let name = format!("{PREFIX}{version}");
            let text = "INSERT INTO neap_meta (name, value) VALUES ($1, $2)
                ON CONFLICT (name) DO NOTHING";
            sqlx::query(text)
                .bind(&name)
                .bind(fingerprint)
                .execute(&self.writer)
                .await
                .map_err(unavailable)?;
            let row = sqlx::query("SELECT value FROM neap_meta WHERE name = $1")
                .bind(&name)
                .fetch_one(&self.writer)
                .await
                .map_err(unavailable)?;
            if row.get::<i64, _>(0) != fingerprint {
                return Err(Error::OtherKey(version.to_owned()));
            }
        }
        Ok(())
    }
}
