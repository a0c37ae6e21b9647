//! Whom the data plane reaches.

use std::{fmt, net::IpAddr};

use futures::future::BoxFuture;
use jiff::Timestamp;

use super::facts::Resolver;
use crate::api::Towards;

/// What is to be proved: that connections to an address of a Service end where they should.
#[derive(Debug, Clone, PartialEq)]
pub struct Question {
    /// Who is to take them.
    pub towards: Towards,
    /// Which change of who answers this is about.
    pub since: Timestamp,
    /// Whether resolvers are still in the path: a proof from before they left it says nothing about
    /// after.
    pub beside: bool,
}

/// Everything that is needed to find out.
#[derive(Debug, Clone)]
pub struct Search {
    /// What is to be proved.
    pub question: Question,
    /// The addresses of the Service.
    pub addresses: Vec<IpAddr>,
    /// Its ports.
    pub ports: Vec<i32>,
    /// Those who connect and say what they took.
    pub resolvers: Vec<Resolver>,
}

/// What was found out.
#[derive(Debug, Clone, PartialEq)]
pub struct Proof {
    /// Of what.
    pub question: Question,
    /// Whether it is so.
    pub holds: bool,
}

/// Finds out whom the data plane reaches, by connections that send no byte.
pub trait Prover: fmt::Debug + Send + Sync {
    /// Whether it is so, from every resolver and for every port. It ends within seconds; whatever
    /// keeps it from knowing means that it is not proved.
    fn prove<'a>(&'a self, search: &'a Search) -> BoxFuture<'a, bool>;
}
