//! Whom the data plane reaches.

use std::{fmt, net::IpAddr};

use futures::future::BoxFuture;
use jiff::Timestamp;
use neap_kit::key::Key;

use super::facts::Resolver;
use crate::api::{Breakdown, Towards};

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
    /// Between which resolvers: each of them connects, and any of them may be reached. With others it
    /// is another question.
    pub resolvers: Vec<IpAddr>,
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
    /// Where resolvers stand in for them, in the same order.
    pub resolver_ports: Vec<i32>,
    /// The addresses of the Service of the resolvers, behind which nobody but them can be.
    pub mirrors: Vec<IpAddr>,
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

    /// Those of `resolvers` that can stand in for services. Others may be ready beside them while one
    /// kind of resolver takes the place of another.
    fn ours<'a>(&'a self, resolvers: &'a [Resolver]) -> BoxFuture<'a, Vec<Resolver>> {
        Box::pin(async { resolvers.to_vec() })
    }

    /// Where the time of those went that waited for this Service since then, by whoever waited
    /// longest. Nothing if nobody says.
    fn cold<'a>(
        &'a self,
        service: &'a Key,
        since: Timestamp,
        resolvers: &'a [Resolver],
    ) -> BoxFuture<'a, Option<Breakdown>> {
        let _ = (service, since, resolvers);
        Box::pin(async { None })
    }
}
