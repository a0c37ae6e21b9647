//! Output formats: the same flags for every command.

use clap::{Args, ValueEnum};

/// Output format of a command that prints one report.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Output {
    /// Human-readable text
    Text,
    /// YAML
    Yaml,
    /// JSON
    Json,
}

/// A format for programs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum DataFormat {
    Yaml,
    Json,
}

impl Output {
    /// The format for programs; none for text.
    pub(crate) fn data(self) -> Option<DataFormat> {
        match self {
            Self::Text => None,
            Self::Yaml => Some(DataFormat::Yaml),
            Self::Json => Some(DataFormat::Json),
        }
    }
}

/// Output format of a command that lists objects.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ListOutput {
    /// A table
    Text,
    /// A table with more columns
    Wide,
    /// One KIND/NAME per line
    Name,
    /// YAML
    Yaml,
    /// JSON
    Json,
}

/// Flags of a command that lists objects.
#[derive(Debug, Clone, Copy, Args)]
pub(crate) struct ListingOptions {
    /// Output format
    #[arg(short, long, value_enum, default_value_t = ListOutput::Text)]
    pub(crate) output: ListOutput,

    /// Print the list, then each object when it changes, until Ctrl-C
    #[arg(short, long)]
    pub(crate) watch: bool,
}
