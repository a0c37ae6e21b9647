//! Tests of the trial, in one executable.

#![expect(clippy::unwrap_used, reason = "a test may fail loudly")]

mod declarations;
mod docs_page;
mod fanout;
mod forty_steps;
mod operation;
mod oracles;
mod outside;
mod regression_test;
mod toy;
mod waiting_operations;
mod your_own;
