//! Keeps as many pods as a ReplicaSet asks for.
//!
//! The pods it has are its own by owner reference; pods that fit its selector and are nobody's are
//! adopted, its own that no longer fit are released. The one to go is the one that is missed least.

mod decide;
mod run;
#[cfg(test)]
mod tests;

pub use self::run::service;
