//! Admission webhooks over TLS, under a paused clock. What they are shown and what is said of them
//! was observed on a kube-apiserver of the same version.

#![expect(clippy::unwrap_used, reason = "a test ends where it is surprised")]

#[path = "webhooks/cases.rs"]
mod cases;
#[path = "webhooks/failing.rs"]
mod failing;
#[path = "webhooks/mutating.rs"]
mod mutating;
#[path = "webhooks/shown.rs"]
mod shown;
#[path = "webhooks/town.rs"]
mod town;
