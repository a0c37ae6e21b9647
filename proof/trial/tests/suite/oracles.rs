//! Oracles that no controller of this workspace should ever violate: each one reports a toy
//! controller that does what it forbids.

mod blast;
mod own_writes;
mod secrets;
