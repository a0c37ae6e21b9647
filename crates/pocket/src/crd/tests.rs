//! Whole definitions, as operators ship them, and the laws that hold for every object.

mod laws;
mod shipped;
