//! What differs between SQLite and PostgreSQL.

use std::{fs::File, io, os::unix::fs::OpenOptionsExt, path::Path};

use sqlx::{AssertSqlSafe, postgres::PgConnectOptions, sqlite::SqliteConnectOptions};

use crate::error::Error;

/// A database.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Dialect {
    Sqlite,
    Postgres,
}

impl Dialect {
    pub(super) fn of(address: &str) -> Result<Self, Error> {
        match address.split_once(':') {
            Some(("sqlite", _)) => Ok(Self::Sqlite),
            Some(("postgres" | "postgresql", _)) => Ok(Self::Postgres),
            // The address may contain a password, so only its scheme is repeated.
            Some((scheme, _)) => Err(Error::Address(format!("{scheme}:…"))),
            None => Err(Error::Address(address.to_owned())),
        }
    }

    /// The address as the driver expects it: SQLite creates a file only if told so.
    pub(super) fn connect_address(self, address: &str) -> String {
        let file = address.strip_prefix("sqlite:");
        match (self, file) {
            (Self::Sqlite, Some(file)) if !file.contains('?') => {
                format!("sqlite://{}?mode=rwc", file.trim_start_matches("//"))
            }
            _ => address.to_owned(),
        }
    }

    /// Checks the address without connecting. Creates the file of SQLite, which only its owner may read.
    pub(super) fn prepare(self, address: &str) -> Result<(), Error> {
        // The address may contain a password, so only its scheme is repeated.
        let invalid = |_| Error::Address(format!("this {self:?} address").to_lowercase());
        if self == Self::Postgres {
            return address
                .parse::<PgConnectOptions>()
                .map(drop)
                .map_err(invalid);
        }
        let address = self.connect_address(address);
        let options = address.parse::<SqliteConnectOptions>().map_err(invalid)?;
        let path = options.get_filename();
        // Other modes create nothing, and a database in memory has no file.
        if !address.contains("mode=rwc") || address.contains(":memory:") {
            return Ok(());
        }
        create_private(path).map_err(|error| {
            let what = format!("cannot open {}: {error}", path.display());
            Error::Unavailable(io::Error::new(error.kind(), what).into())
        })
    }

    /// Statements for every new connection.
    pub(super) fn on_connect(self) -> &'static [&'static str] {
        match self {
            Self::Sqlite => &[
                "PRAGMA journal_mode = WAL",
                // An acknowledged commit survives a loss of power.
                "PRAGMA synchronous = FULL",
                "PRAGMA busy_timeout = 10000",
            ],
            Self::Postgres => &[
                "SET application_name = 'neap-store'",
                // A process that stops inside a transaction would keep its work locked: another one
                // could not claim it although the lease is over.
                "SET idle_in_transaction_session_timeout = '10s'",
            ],
        }
    }

    /// Begins a transaction that writes.
    pub(super) fn begin(self) -> &'static str {
        match self {
            // Two transactions that read first and write then would block each other.
            Self::Sqlite => "BEGIN IMMEDIATE",
            Self::Postgres => "BEGIN",
        }
    }

    /// The statement `text` in this dialect. Only words of this file replace its placeholders.
    pub(super) fn sql(self, text: &str) -> AssertSqlSafe<String> {
        let words: [(&str, &str, &str); 9] = [
            (
                "{now}",
                "CAST(unixepoch('subsec') * 1000 AS BIGINT)",
                "CAST(extract(epoch FROM clock_timestamp()) * 1000 AS BIGINT)",
            ),
            (
                "{revision}",
                "(SELECT value FROM neap_meta WHERE name = 'revision')",
                "nextval('neap_revision')",
            ),
            (
                "{transaction}",
                "0",
                "CAST(CAST(pg_current_xact_id() AS TEXT) AS BIGINT)",
            ),
            // Transactions below the horizon have ended: nothing can still appear before it.
            (
                "{horizon}",
                "1",
                "CAST(CAST(pg_snapshot_xmin(pg_current_snapshot()) AS TEXT) AS BIGINT)",
            ),
            ("{skip_locked}", "", "FOR UPDATE OF w SKIP LOCKED"),
            ("{for_update}", "", "FOR UPDATE"),
            ("{for_share}", "", "FOR SHARE"),
            // The order of texts is that of their bytes, as in memory, and not that of a language. SQLite has
            // no other.
            ("{bytes}", "", "COLLATE \"C\""),
            (
                "{last_revision}",
                "(SELECT value FROM neap_meta WHERE name = 'revision')",
                "(SELECT last_value FROM neap_revision)",
            ),
        ];
        let mut text = text.to_owned();
        for (word, sqlite, postgres) in words {
            if text.contains(word) {
                let replacement = match self {
                    Self::Sqlite => sqlite,
                    Self::Postgres => postgres,
                };
                text = text.replace(word, replacement);
            }
        }
        AssertSqlSafe(text)
    }
}

/// Creates a file that only its owner may read, if it does not exist. SQLite gives its other files the permissions
/// of this one.
fn create_private(path: &Path) -> io::Result<()> {
    let mut options = File::options();
    options.create(true).append(true).mode(0o600);
    options.open(path).map(drop)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    fn prepare(address: &str) -> Result<(), Error> {
        Dialect::of(address)?.prepare(address)
    }

    #[test]
    fn only_the_owner_may_read_a_new_database() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.db");
        prepare(&format!("sqlite:{}", path.display())).unwrap();
        assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o600);
        // One that exists is left as it is.
        std::fs::write(&path, "content").unwrap();
        prepare(&format!("sqlite://{}?mode=rwc", path.display())).unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), b"content");
    }

    #[test]
    fn an_address_that_cannot_work_is_refused_before_it_is_used() {
        let folder = tempfile::tempdir().unwrap();
        let below = |name: &str| format!("sqlite:{}", folder.path().join(name).display());
        let missing = prepare(&below("none/a.db")).unwrap_err();
        assert!(missing.to_string().len() > 5, "{missing}");
        assert!(matches!(missing, Error::Unavailable(_)), "{missing}");
        prepare(&below("")).unwrap_err();
        assert!(matches!(prepare("foo:bar"), Err(Error::Address(_))));
        let error = prepare("postgres://user:hush@host:port/x").unwrap_err();
        assert!(!error.to_string().contains("hush"), "{error}");
        prepare("postgres://user:hush@db.example.com/x").unwrap();
        prepare("sqlite::memory:").unwrap();
    }

    #[test]
    fn a_refused_address_is_not_repeated_with_its_password() {
        let error = Dialect::of("mysql://user:hush@db.example.com/x").unwrap_err();
        assert!(!error.to_string().contains("hush"), "{error}");
        assert!(matches!(Dialect::of("nothing"), Err(Error::Address(_))));
    }

    #[test]
    fn no_connection_to_a_server_keeps_locks_without_doing_anything() {
        let statements = Dialect::Postgres.on_connect();
        let bound = statements
            .iter()
            .any(|it| it.contains("idle_in_transaction_session_timeout"));
        assert!(bound, "{statements:?}");
    }

    #[test]
    fn sqlite_creates_its_file() {
        let dialect = Dialect::of("sqlite:/tmp/a.db").unwrap();
        let address = dialect.connect_address("sqlite:/tmp/a.db");
        assert_eq!(address, "sqlite:///tmp/a.db?mode=rwc");
    }
}
