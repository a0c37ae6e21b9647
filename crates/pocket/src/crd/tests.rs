//! Whole definitions, as operators ship them, and properties that hold for every object.

mod derived;
mod laws;
mod shipped;
