//! Documents with etags, leases and a change feed: in memory, on SQLite and on PostgreSQL.
