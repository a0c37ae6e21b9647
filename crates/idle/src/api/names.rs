//! Names of the objects that are made for a Service. They are those of KubeElasti, on which users and
//! other tools rely.

use std::fmt::Write;

use aws_lc_rs::digest::{SHA256, digest};

/// The longest name of a Service.
const MAX_SERVICE_NAME: usize = 63;
/// The longest name of any other object.
const MAX_OBJECT_NAME: usize = 253;

/// The private Service, which selects the pods while the public one leads to resolvers.
pub fn private_service(public: &str) -> String {
    named(public, "pvt", MAX_SERVICE_NAME)
}

/// The EndpointSlice that adds resolvers to the public Service, over IPv4.
pub fn resolver_slice(public: &str) -> String {
    named(public, "endpointslice-to-resolver", MAX_OBJECT_NAME)
}

/// The same over IPv6, which KubeElasti does not have.
pub fn resolver_slice_v6(public: &str) -> String {
    named(public, "endpointslice-to-resolver-v6", MAX_OBJECT_NAME)
}

/// The first ten hexadecimal digits of the SHA-256 of a text.
pub fn short_hash(text: &str) -> String {
    let digest = digest(&SHA256, text.as_bytes());
    let mut hash = String::new();
    for byte in digest.as_ref().iter().take(5) {
        // Writing to a string does not fail.
        let _ = write!(hash, "{byte:02x}");
    }
    hash
}

/// `elasti-<service>-<what>-<hash>`. A long name of a Service is truncated; the hash is of the whole
/// name, so two that are truncated alike stay distinct.
fn named(public: &str, what: &str, max_length: usize) -> String {
    let hash = short_hash(public);
    let rest = "elasti-".len() + "-".len() + what.len() + "-".len() + hash.len();
    let room = max_length.saturating_sub(rest);
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
