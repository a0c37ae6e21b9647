//! The process that keeps services asleep while nobody asks for them.

pub mod http;
pub mod resolvers;
pub mod settings;
pub mod tokens;
