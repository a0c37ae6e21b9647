//! Whole definitions, as operators ship them, and the laws that hold for every object.

mod derived;
mod laws;
mod shipped;
