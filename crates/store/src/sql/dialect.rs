//! What differs between SQLite and PostgreSQL.

use sqlx::AssertSqlSafe;

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
        let words: [(&str, &str, &str); 7] = [
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

#[cfg(test)]
mod tests {
    use super::*;

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
