//! What things are called that are made for a Service. Users and other tools know these names.

use std::fmt::Write;

use aws_lc_rs::digest::{SHA256, digest};

/// No Service has a longer name.
const SERVICE: usize = 63;
/// No other object has a longer name.
const OBJECT: usize = 253;

/// The Service that reaches the pods while the public one reaches resolvers.
pub fn private_service(public: &str) -> String {
    named(public, "pvt", SERVICE)
}

/// The EndpointSlice that brings resolvers into the public Service, over IPv4.
pub fn resolver_slice(public: &str) -> String {
    named(public, "endpointslice-to-resolver", OBJECT)
}

/// The same over IPv6; nobody had one before.
pub fn resolver_slice_v6(public: &str) -> String {
    named(public, "endpointslice-to-resolver-v6", OBJECT)
}

/// `elasti-<service>-<what>-<hash>`, where the service is cut so that all of it has room. The hash is
/// of the whole name, so what is cut off still counts.
fn named(public: &str, what: &str, longest: usize) -> String {
    let digest = digest(&SHA256, public.as_bytes());
    let mut hash = String::new();
    for byte in digest.as_ref().iter().take(5) {
        // Writing to a string does not fail.
        let _ = write!(hash, "{byte:02x}");
    }
    let rest = "elasti-".len() + "-".len() + what.len() + "-".len() + hash.len();
    let room = longest.saturating_sub(rest);
    // Names of Services are ASCII, so a byte is a character.
    let cut = public.get(..room).unwrap_or(public).trim_end_matches('-');
    format!("elasti-{cut}-{what}-{hash}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_that_users_know() {
        for (public, hash) in [
            ("service", "9df6b026a8"),
            ("target-deployment", "9696239e87"),
            ("target-statefulset", "ff3e71892b"),
            ("target-grpc", "849ec905b5"),
            ("httpbin", "abbea20e59"),
            ("svc", "348c658682"),
        ] {
            assert_eq!(
                private_service(public),
                format!("elasti-{public}-pvt-{hash}")
            );
            assert_eq!(
                resolver_slice(public),
                format!("elasti-{public}-endpointslice-to-resolver-{hash}")
            );
        }
    }

    #[test]
    fn long_names_are_cut_and_stay_apart() {
        let long = "my-very-long-application-backend-service-v2-with-extra-suffix";
        let name = private_service(long);
        assert_eq!(
            name,
            "elasti-my-very-long-application-backend-service-pvt-d4e34bd477"
        );
        assert_eq!(name.len(), 62);
        let longer = format!("{}-{}", "a".repeat(63), "b".repeat(10));
        assert_eq!(
            private_service(&longer),
            format!("elasti-{}-pvt-5941b9cfa3", "a".repeat(41))
        );
    }
}
