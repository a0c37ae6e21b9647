//! Compares `neap up` with a real kube-apiserver: random requests go to both, and their responses,
//! watch streams and orders of revisions are compared.
//!
//! Both servers are used only through their APIs. The requests depend on a seed and on earlier
//! responses, and can be recorded, so that a difference can be reproduced.

pub mod call;
pub mod compare;
pub mod generate;
pub mod kinds;
pub mod mask;
pub mod permitted;
pub mod recordings;
pub mod report;
pub mod run;
pub mod schema;
pub mod server_side;
pub mod stream;
pub mod summary;
