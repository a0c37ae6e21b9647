//! From zero to as many as it takes.
