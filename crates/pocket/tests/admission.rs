//! Admission under a paused clock: webhooks over TLS, and the built-in plugins. What is shown and said
//! was observed on a kube-apiserver of the same version.

#![expect(clippy::unwrap_used, reason = "a test ends where it is surprised")]

#[path = "admission/cases.rs"]
mod cases;
#[path = "admission/failing.rs"]
mod failing;
#[path = "admission/mutating.rs"]
mod mutating;
#[path = "admission/plugins.rs"]
mod plugins;
#[path = "admission/shown.rs"]
mod shown;
#[path = "admission/town.rs"]
mod town;
