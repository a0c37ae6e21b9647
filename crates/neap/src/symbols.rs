//! Marks at the start of lines. A mark never carries information alone, and has an ASCII form.

/// The set of marks to print.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Symbols {
    pub(crate) done: &'static str,
    pub(crate) failed: &'static str,
    pub(crate) note: &'static str,
    pub(crate) dot: &'static str,
}

impl Symbols {
    pub(crate) const UNICODE: Self = Self {
        done: "✓",
        failed: "✗",
        note: "!",
        dot: "·",
    };
    pub(crate) const ASCII: Self = Self {
        done: "ok",
        failed: "x",
        note: "!",
        dot: "-",
    };

    pub(crate) fn choose(ascii: bool) -> Self {
        if ascii { Self::ASCII } else { Self::UNICODE }
    }
}
