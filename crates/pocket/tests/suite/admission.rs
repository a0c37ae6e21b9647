//! Admission under a paused clock: webhooks over TLS, and the built-in plugins. Reviews and
//! messages were recorded from a kube-apiserver of the same version.

mod cases;
mod failing;
mod mutating;
mod plugins;
mod shown;
mod webhooks;
