//! What operators and resolvers answer over HTTP: the endpoints of KubeElasti with their verbs,
//! statuses and bodies, and ours beside them.
//!
//! Routes are values over small traits, so they are tested without a socket; [`serve`] is the one
//! place that has one.

mod answer;
mod operator;
mod resolver;
mod serve;

pub use self::{
    answer::{Answer, Answers, Asked},
    operator::OperatorRoutes,
    resolver::{Resolver, ResolverRoutes},
    serve::serve,
};
