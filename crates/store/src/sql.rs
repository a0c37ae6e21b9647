//! The store on SQLite and on PostgreSQL.
//!
//! One set of statements serves both: the few differences are words of a [`Dialect`]. SQLite has one
//! connection that writes, because it has one writer in any case, and several that read.

mod dialect;
mod keys;
mod lineage;
mod read;
mod schema;
#[cfg(test)]
mod tests;
mod work;
mod write;

use std::time::Duration;

use sqlx::{
    AnyPool, Connection, Executor,
    any::{AnyPoolOptions, install_default_drivers},
    postgres::PgListener,
};

use self::dialect::Dialect;
use crate::error::Error;

/// The maximum number of connections that write, or on PostgreSQL do anything.
const POSTGRES_CONNECTIONS: u32 = 16;
/// The maximum number of connections that read from SQLite.
const SQLITE_READERS: u32 = 4;
/// The time that a call waits for a free connection.
const ACQUIRE_TIMEOUT: Duration = Duration::from_secs(10);
/// A connection that was idle for this long is tested before it is used: the server may have restarted.
const TESTED_AFTER: Duration = Duration::from_secs(1);
/// The channel of announcements.
const CHANNEL: &str = "neap_work";

/// A store on a database.
#[derive(Debug)]
pub(crate) struct Sql {
    dialect: Dialect,
    writer: AnyPool,
    reader: AnyPool,
    address: String,
    #[cfg(test)]
    pub(crate) lose_commit_answers: std::sync::atomic::AtomicBool,
}

impl Sql {
    /// Checks the address without connecting. Creates the file of SQLite, which only its owner may read.
    pub(crate) fn prepare(address: &str) -> Result<(), Error> {
        Dialect::of(address)?.prepare(address)
    }

    /// Opens the database and creates or upgrades its tables.
    pub(crate) async fn open(address: &str) -> Result<Self, Error> {
        let sql = Self::connect(address).await?;
        sql.create_or_upgrade().await?;
        Ok(sql)
    }

    /// Opens the database as it is.
    async fn connect(address: &str) -> Result<Self, Error> {
        install_default_drivers();
        let dialect = Dialect::of(address)?;
        let address = dialect.connect_address(address);
        let pool = |size| {
            AnyPoolOptions::new()
                .max_connections(size)
                .acquire_timeout(ACQUIRE_TIMEOUT)
                // A round trip before each statement would double the cost of a read.
                .test_before_acquire(false)
                .before_acquire(|connection, metadata| {
                    Box::pin(async move {
                        // SQLite ends a transaction by itself when the disk is full, and the driver then
                        // keeps a transaction open that is none: such a connection begins no other.
                        let is_stuck = connection.is_in_transaction();
                        if is_stuck || metadata.idle_for >= TESTED_AFTER {
                            connection.ping().await?;
                        }
                        Ok(!is_stuck || !connection.is_in_transaction())
                    })
                })
                .after_connect(move |connection, _| {
                    Box::pin(async move {
                        for statement in dialect.on_connect() {
                            connection.execute(*statement).await?;
                        }
                        if let Some(jump) = dialect.on_reconnect() {
                            connection.execute(jump).await?;
                        }
                        Ok(())
                    })
                })
        };
        let (writer, reader) = if dialect == Dialect::Sqlite {
            let writer = pool(1).connect(&address).await.map_err(unavailable)?;
            (writer, pool(SQLITE_READERS).connect_lazy(&address))
        } else {
            let both = pool(POSTGRES_CONNECTIONS).connect(&address).await;
            let both = both.map_err(unavailable)?;
            (both.clone(), Ok(both))
        };
        Ok(Self {
            dialect,
            writer,
            reader: reader.map_err(unavailable)?,
            address,
            #[cfg(test)]
            lose_commit_answers: false.into(),
        })
    }

    /// Calls `announced` for each commit of another process that queues work.
    pub(crate) async fn listen(&self, announced: impl Fn()) -> Result<(), Error> {
        if self.dialect == Dialect::Sqlite {
            return std::future::pending().await;
        }
        let mut listener = PgListener::connect(&self.address)
            .await
            .map_err(unavailable)?;
        listener.listen(CHANNEL).await.map_err(unavailable)?;
        loop {
            listener.recv().await.map_err(unavailable)?;
            announced();
        }
    }
}

fn unavailable(error: sqlx::Error) -> Error {
    if is_full(&error) {
        return Error::Full(error.into());
    }
    Error::Unavailable(error.into())
}

/// Whether the database has no room: `disk_full` of PostgreSQL, or `SQLITE_FULL`.
fn is_full(error: &sqlx::Error) -> bool {
    let code = error
        .as_database_error()
        .and_then(sqlx::error::DatabaseError::code);
    matches!(code.as_deref(), Some("53100" | "13"))
}
