//! The process that keeps services asleep while nobody asks for them. [`run`] puts it together.

pub mod asking;
pub(crate) mod certificate;
pub mod http;
pub mod prove;
pub mod resolvers;
pub mod run;
pub mod settings;
pub mod tokens;
