//! What a code means.

use std::io::Write;

use neap_kit::why::{self, Entry};

use crate::{
    ask::print,
    cli::Output,
    exit::{Exit, Failure},
};

/// Whether somebody who types this means a code.
pub(super) fn is_one(text: &str) -> bool {
    text.trim().to_ascii_uppercase().starts_with("NT-") || !why::nearest(text).is_empty()
}

/// Says what the code means.
pub(super) fn explain(text: &str, output: Output, out: &mut dyn Write) -> Result<(), Failure> {
    let entry = why::find(text).ok_or_else(|| unknown(text))?;
    match output {
        Output::Text => print::text(out, &entry.to_string()),
        Output::Json => print::json(out, "Code", entry),
    }
}

fn unknown(text: &str) -> Failure {
    let what = format!("there is no code {text}");
    let near: Vec<_> = why::nearest(text).into_iter().map(meant).collect();
    let why = if near.is_empty() {
        "it is not in the catalogue of this version".to_owned()
    } else {
        format!("near to it are {}", near.join(", "))
    };
    Failure::new("NT-CLI-0009", Exit::Usage, &what, &why).remedy("take one that is there")
}

fn meant(entry: &Entry) -> String {
    format!("{} ({})", entry.code, entry.title)
}
