//! The integration tests of `neap-pocket`, in one executable, because linking each takes seconds.
//!
//! None of them changes its process: no variables, panic hooks or global subscribers. Scenario files
//! have an executable of their own, whose list of tests is made when it runs.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test fails if its setup fails"
)]

mod access;
mod admission;
mod comes_to_rest;
mod controller;
mod documented;
mod edge;
mod histories;
mod hostile;
mod housekeeping;
mod identity;
mod in_process;
mod in_your_tests;
mod list_costs;
mod overtaken;
mod races;
mod support;
mod views;
mod watches;
