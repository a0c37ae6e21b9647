//! A figure that was measured, what was asked of it, and whether it holds.

/// A figure that was measured.
#[derive(Debug)]
pub(super) struct Row {
    pub(super) figure: &'static str,
    pub(super) unit: &'static str,
    pub(super) better: Better,
    pub(super) ours: f64,
    /// The same figure of the peer, if there is one.
    pub(super) peer: Option<f64>,
    pub(super) asked: Requirement,
}

/// Which of two figures is the better one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Better {
    Less,
    More,
}

/// When a row holds.
#[derive(Debug, Clone, Copy)]
pub(super) enum Requirement {
    /// Our figure is no worse than this, whatever the peer's is.
    Limit(f64),
    /// The least ratio by which our figure is better than the peer's.
    Times(f64),
    /// Nothing is asked; the figure is there to be known.
    Nothing,
}

impl Row {
    /// How many times as good as the peer's our figure is.
    pub(super) fn ratio(&self) -> Option<f64> {
        let peer = self.peer?;
        Some(match self.better {
            Better::Less => peer / self.ours,
            Better::More => self.ours / peer,
        })
    }

    /// Nothing if nothing is asked, or if there is no peer to compare with.
    pub(super) fn holds(&self) -> Option<bool> {
        match (self.asked, self.better) {
            (Requirement::Nothing, _) => None,
            (Requirement::Limit(limit), Better::Less) => Some(self.ours <= limit),
            (Requirement::Limit(limit), Better::More) => Some(self.ours >= limit),
            (Requirement::Times(times), _) => self.ratio().map(|ratio| ratio >= times),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_hold_by_limit_or_by_ratio() {
        use {
            Better::{Less, More},
            Requirement::{Limit, Nothing, Times},
        };
        for (ours, peer, better, asked, holds) in [
            (100.0, None, Less, Limit(100.0), Some(true)),
            (100.1, None, Less, Limit(100.0), Some(false)),
            (100.0, None, More, Limit(100.0), Some(true)),
            (99.9, None, More, Limit(100.0), Some(false)),
            (5.0, Some(10.0), Less, Times(2.0), Some(true)),
            (6.0, Some(10.0), Less, Times(2.0), Some(false)),
            (20.0, Some(10.0), More, Times(2.0), Some(true)),
            (19.0, Some(10.0), More, Times(2.0), Some(false)),
            (1.0, None, Less, Times(2.0), None),
            (1.0, Some(2.0), Less, Nothing, None),
        ] {
            let row = Row {
                figure: "start",
                unit: "ms",
                better,
                ours,
                peer,
                asked,
            };
            assert_eq!(row.holds(), holds, "{row:?}");
        }
    }
}
