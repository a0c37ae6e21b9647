//! Proofs of where the data plane routes: to resolvers or pods.

use std::{fmt, net::IpAddr};

use futures::future::BoxFuture;
use jiff::Timestamp;
use neap_kit::key::Key;

use super::facts::ResolverEndpoint;
use crate::api::{Breakdown, Towards};

/// What is to be proved: that connections to the address of a Service end at the right place.
#[derive(Debug, Clone, PartialEq)]
pub struct Claim {
    /// Who has to accept them.
    pub towards: Towards,
    /// The start of the hand-off that the claim is about.
    pub since: Timestamp,
    /// Whether resolvers are still in the path: a proof from before they left proves nothing about the time
    /// after.
    pub beside_resolvers: bool,
    /// The resolvers among which it is proved: each of them connects, and each may be reached. With other
    /// resolvers it is another claim.
    pub resolvers: Vec<IpAddr>,
}

/// A claim and what a prover needs to check it.
#[derive(Debug, Clone)]
pub struct ProofRequest {
    /// What is to be proved.
    pub claim: Claim,
    /// The addresses of the Service.
    pub addresses: Vec<IpAddr>,
    /// Its ports.
    pub ports: Vec<i32>,
    /// The resolver ports that stand in for them, in the same order.
    pub resolver_ports: Vec<i32>,
    /// The addresses of the resolvers' own Service, behind which there are only resolvers.
    pub resolver_service_addresses: Vec<IpAddr>,
    /// The resolvers, which open connections and report those that they accepted.
    pub resolvers: Vec<ResolverEndpoint>,
}

/// The result of a check.
#[derive(Debug, Clone, PartialEq)]
pub struct Proof {
    /// What was checked.
    pub claim: Claim,
    /// Whether it is true.
    pub holds: bool,
}

/// Finds out where the data plane routes, with connections that send no byte.
pub trait Prover: fmt::Debug + Send + Sync {
    /// Whether the claim holds, from every resolver and for every port. It returns within seconds; if
    /// something prevents the check, the claim is not proved.
    fn prove<'a>(&'a self, request: &'a ProofRequest) -> BoxFuture<'a, bool>;

    /// Those of `resolvers` that can stand in for services. Resolvers of KubeElasti may be ready beside
    /// them while one kind replaces the other.
    fn select_compatible<'a>(
        &'a self,
        resolvers: &'a [ResolverEndpoint],
    ) -> BoxFuture<'a, Vec<ResolverEndpoint>> {
        Box::pin(async { resolvers.to_vec() })
    }

    /// The wait of the request that waited longest for this Service since `since`, in its parts; none if no
    /// resolver reports one.
    fn cold_start<'a>(
        &'a self,
        service: &'a Key,
        since: Timestamp,
        resolvers: &'a [ResolverEndpoint],
    ) -> BoxFuture<'a, Option<Breakdown>> {
        let _ = (service, since, resolvers);
        Box::pin(async { None })
    }
}
