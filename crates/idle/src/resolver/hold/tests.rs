mod held;
mod line;
