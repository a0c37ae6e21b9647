//! Verification of a chain.

use super::{
    AuditedAction, ChainHead,
    record::{AuditRecord, split},
};

/// What is wrong with a chain, and from which record on.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ChainFault {
    /// A line is not a record.
    #[error("the line of record {line} is not a record")]
    Unreadable {
        /// The index of the record; in an audit of one part also the line number.
        line: u64,
    },
    /// The last line has no line break.
    #[error(
        "record {index}, the last, is incomplete: the process ended while it was written, or it was cut off"
    )]
    Torn {
        /// The index of the record.
        index: u64,
    },
    /// A record is not in its position.
    #[error(
        "record {found} is in the position of record {expected}: records were removed, inserted or moved"
    )]
    Misplaced {
        /// The index that is expected in this position.
        expected: u64,
        /// The index that was found.
        found: u64,
    },
    /// A part of the audit is missing.
    #[error("records {first} to {last} are missing: a part of the audit is missing")]
    Missing {
        /// The first missing record.
        first: u64,
        /// The last missing record.
        last: u64,
    },
    /// A record differs from what was written.
    #[error("record {index} was changed after it was written, or its hash was")]
    Edited {
        /// The index of the record.
        index: u64,
    },
    /// Records at the end are missing.
    #[error(
        "the file ends with record {last}, and record {anchored} was anchored: the end was cut off"
    )]
    Truncated {
        /// The last record in the file.
        last: u64,
        /// The record that was anchored.
        anchored: u64,
    },
    /// The chain is not the one that was anchored.
    #[error(
        "record {index} is not the one that was anchored: the file was rewritten up to there or replaced"
    )]
    Rewritten {
        /// The index of the record.
        index: u64,
    },
}

/// The head of the chain in `text`, if it is intact and leads through `anchor`.
pub fn verify(text: &str, anchor: Option<&ChainHead>) -> Result<ChainHead, ChainFault> {
    let mut chain = Chain::new(ChainHead::default(), anchor);
    for line in text.split_inclusive('\n') {
        chain.verify_line(line)?;
    }
    chain.end()
}

/// A chain that is being verified.
pub(super) struct Chain<'a> {
    pub(super) head: ChainHead,
    anchor: Option<&'a ChainHead>,
    /// Whether the next line is the first of a part.
    at_part_start: bool,
}

impl<'a> Chain<'a> {
    /// A chain that is verified up to `head`.
    pub(super) fn new(head: ChainHead, anchor: Option<&'a ChainHead>) -> Self {
        Self {
            head,
            anchor,
            at_part_start: false,
        }
    }

    /// Marks the next line as the first of a part.
    pub(super) fn begin_part(&mut self) {
        self.at_part_start = true;
    }

    /// Verifies the next line, including its line break.
    pub(super) fn verify_line(&mut self, line: &str) -> Result<(), ChainFault> {
        let expected = self.head.index + 1;
        let at_part_start = std::mem::take(&mut self.at_part_start);
        let Some(line) = line.strip_suffix('\n') else {
            return Err(ChainFault::Torn { index: expected });
        };
        let unreadable = ChainFault::Unreadable { line: expected };
        let (text, hash) = split(line).ok_or_else(|| unreadable.clone())?;
        let record: AuditRecord<AuditedAction> =
            serde_json::from_str(line).map_err(|_| unreadable)?;
        if record.index != expected {
            let found = record.index;
            return Err(if at_part_start && found > expected {
                ChainFault::Missing {
                    first: expected,
                    last: found - 1,
                }
            } else {
                ChainFault::Misplaced { expected, found }
            });
        }
        if self.head.hash_next(text) != hash {
            return Err(ChainFault::Edited { index: expected });
        }
        self.head = ChainHead {
            index: expected,
            hash: hash.to_owned(),
        };
        match self.anchor {
            Some(anchor) if anchor.index == expected && anchor.hash != hash => {
                Err(ChainFault::Rewritten { index: expected })
            }
            _ => Ok(()),
        }
    }

    /// The head, if the chain reaches the anchor.
    pub(super) fn end(self) -> Result<ChainHead, ChainFault> {
        let last = self.head.index;
        match self.anchor {
            Some(anchor) if anchor.index > last => Err(ChainFault::Truncated {
                last,
                anchored: anchor.index,
            }),
            _ => Ok(self.head),
        }
    }
}
