//! kubectl commands against `neap up`.
//!
//! One server per test. Texts that differ between releases of kubectl are matched only in their common
//! part. Tests of running pods start a server with a node; the other servers are bare, and there
//! commands that need pods (`rollout status`, `logs`, `exec`) must fail with a clear message.

mod apply;
mod authorization;
mod change;
mod create;
mod custom_resources;
mod delete;
mod describe;
mod failing_pods;
mod identity;
mod kubectl_cluster;
mod logs_and_exec;
mod maintenance;
mod manifests;
mod port_forward;
mod read;
mod unprivileged;
mod unsupported;
mod watch;
mod webhooks;
mod workloads;
