//! Whether anybody asks for a service.
//!
//! A trigger is a question to somebody who knows: a Prometheus, or the resolvers. All of a service's
//! triggers together give a [`Verdict`]. What is not known never means that nobody asks: a service
//! sleeps only on evidence.

pub mod answer;
pub mod duration;
pub mod jitter;
pub mod judge;
mod metadata;
pub mod origin;
pub mod poll;
pub mod problem;
pub mod prometheus;
pub mod question;
pub mod verdict;
pub mod window;

pub use self::{
    judge::{Counters, Judge},
    origin::{Origin, Origins},
    poll::{Poll, Watched},
    problem::Problem,
    prometheus::{Oracle, Prometheus},
    question::{Defaults, Question},
    verdict::{Measurement, Quiet, Verdict, verdict},
    window::{Window, window},
};
