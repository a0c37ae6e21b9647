//! Holds `neap up` against a real kube-apiserver: random requests go to both, and their answers,
//! watch streams and orders of revisions are compared.
//!
//! It knows both servers by their APIs alone. What is asked follows from a seed and from what was
//! answered, and can be recorded, so that a difference can be shown again.

pub mod allow;
pub mod call;
pub mod compare;
pub mod draw;
pub mod kinds;
pub mod mask;
pub mod recordings;
pub mod report;
pub mod run;
pub mod schema;
pub mod side;
pub mod stream;
pub mod summary;
