//! Image streams become release payloads: assembled, verified by jobs, judged and published.
//!
//! The modules are listed in the order of their dependencies, not of the alphabet: a module uses only those
//! above it, and `cargo xtask check` fails otherwise. The comment before each keeps rustfmt from sorting them.

// Images in registries: names, digests, manifests, layers, credentials, and the client.
pub mod oci;

// ImageStreams on any cluster: the kind, and the controller that imports tags.
pub mod image_stream;

// Payloads as images: assemble, read, compare, extract, mirror, verify.
pub mod payload_image;

// Versions: reading, order, increment.
pub mod version;

// Names of objects, and hashes of inputs.
pub mod names;

// The configuration of a stream.
pub mod config;

// The ReleasePayload, annotations and labels: the contract with the outside. No I/O.
pub mod api;

// The verdict about each release.
pub mod payload;

// A verdict, computed again.
pub mod replay;

// The verdicts of another controller, compared with ours.
pub mod shadow;

// Which controller owns a stream, and how that changes.
pub mod hand_over;

// Streams of releases: what is cut, verified, published and removed.
pub mod stream;

// The checks of configurations in files.
pub mod validate;

// Asks again for imports that failed.
pub mod reimport;

// Deletes release images from mirrors.
pub mod mirror_cleanup;

// What the area registers with the program.
pub mod area;
