use super::*;
use crate::environment::Environment;

mod certificates;
mod jwt;
mod table;

/// A moment in whole seconds.
fn at(second: i64) -> jiff::Timestamp {
    jiff::Timestamp::from_second(second).unwrap()
}
