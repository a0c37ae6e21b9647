//! Whether a chain is as it was written.

use super::{
    Deed, Head,
    record::{Record, split},
};

/// What is wrong with a chain, and from which record on.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Fault {
    /// A line is no record.
    #[error("what stands where record {line} should be is no record")]
    Unreadable {
        /// The record, counted from one; in an audit of one part also the line.
        line: u64,
    },
    /// The last line has no end.
    #[error(
        "record {index}, the last, is incomplete: the process ended while it was written, or it was cut off"
    )]
    Torn {
        /// Which record.
        index: u64,
    },
    /// A record is not in its place.
    #[error(
        "record {found} stands where record {expected} should: records were taken out, put in or moved"
    )]
    Misplaced {
        /// The record that belongs there.
        expected: u64,
        /// The one that is there.
        found: u64,
    },
    /// A part of the audit is not there.
    #[error("records {first} to {last} are not there: a part of the audit is missing")]
    Missing {
        /// The first of them.
        first: u64,
        /// The last of them.
        last: u64,
    },
    /// A record differs from what was written.
    #[error("record {index} is not as it was written: it or its hash was changed")]
    Edited {
        /// Which record.
        index: u64,
    },
    /// Records at the end are missing.
    #[error(
        "the file ends with record {last}, and record {anchored} was anchored: the end was cut off"
    )]
    Truncated {
        /// The last record that is there.
        last: u64,
        /// The last that is known to have been.
        anchored: u64,
    },
    /// The whole chain is another.
    #[error(
        "record {index} is not the one that was anchored: the file was written anew up to there or exchanged"
    )]
    Rewritten {
        /// Which record.
        index: u64,
    },
}

/// Where the chain in `text` ends, if it is whole and leads through `anchor`.
pub fn verify(text: &str, anchor: Option<&Head>) -> Result<Head, Fault> {
    let mut chain = Chain::new(Head::default(), anchor);
    for line in text.split_inclusive('\n') {
        chain.take(line)?;
    }
    chain.end()
}

/// A chain of which some is read.
pub(super) struct Chain<'a> {
    pub(super) head: Head,
    anchor: Option<&'a Head>,
    /// Whether the next line is the first of a part.
    begins: bool,
}

impl<'a> Chain<'a> {
    /// A chain of which what comes up to `head` is known to be good.
    pub(super) fn new(head: Head, anchor: Option<&'a Head>) -> Self {
        Self {
            head,
            anchor,
            begins: false,
        }
    }

    /// The next line is the first of another part.
    pub(super) fn begin_part(&mut self) {
        self.begins = true;
    }

    /// Reads a line with its end.
    pub(super) fn take(&mut self, line: &str) -> Result<(), Fault> {
        let expected = self.head.index + 1;
        let begins = std::mem::take(&mut self.begins);
        let Some(line) = line.strip_suffix('\n') else {
            return Err(Fault::Torn { index: expected });
        };
        let unreadable = Fault::Unreadable { line: expected };
        let (text, hash) = split(line).ok_or_else(|| unreadable.clone())?;
        let record: Record<Deed> = serde_json::from_str(line).map_err(|_| unreadable)?;
        if record.index != expected {
            let found = record.index;
            return Err(if begins && found > expected {
                Fault::Missing {
                    first: expected,
                    last: found - 1,
                }
            } else {
                Fault::Misplaced { expected, found }
            });
        }
        if self.head.link(text) != hash {
            return Err(Fault::Edited { index: expected });
        }
        self.head = Head {
            index: expected,
            hash: hash.to_owned(),
        };
        match self.anchor {
            Some(anchor) if anchor.index == expected && anchor.hash != hash => {
                Err(Fault::Rewritten { index: expected })
            }
            _ => Ok(()),
        }
    }

    /// Where it ends.
    pub(super) fn end(self) -> Result<Head, Fault> {
        let last = self.head.index;
        match self.anchor {
            Some(anchor) if anchor.index > last => Err(Fault::Truncated {
                last,
                anchored: anchor.index,
            }),
            _ => Ok(self.head),
        }
    }
}
